#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""process_state_test.py SOURCE_ROOT LIBRARY...

Every variable of the process or of a thread that a LIBRARY can write has a row in the table "What a forked child
has" of docs/notes.md, which says what a child does with it; and each row names a source in which the variable is.
"""

import collections
import pathlib
import re
import subprocess
import sys

root, *libraries = (pathlib.Path(argument) for argument in sys.argv[1:])
NOTES = root / "docs" / "notes.md"
HEADING = "## What a forked child has"
ROW = re.compile(r"^\| `([\w:]+)` \| `([\w/.]+)` \| (.+) \|$")
WRITABLE = re.compile(r"\.(data|bss|tdata|tbss)(?!\.rel\.ro)(\.|$)")
# Of the compiler and its C library, in each shared library; and what a template of somebody else's has.
NOT_OURS = re.compile(r"DW\.ref\.|__TMC_END__$|__dso_handle$|completed\.\d+$|(guard variable for )?(std|absl)::")


def short(name):
    """The name of a variable as the table has it: `g_first`, `IncidentListeners::first`, `WatchForks::s_valid_for`."""
    name = re.sub(r"^cuguest_door_\w+$", "cuguest_door", name)  # of a library with a suffix
    name = re.sub(r"^guard variable for |\[abi:\w+\]|\(anonymous namespace\)::", "", name)
    while (inner := re.sub(r"<[^<>]*>|\([^()]*\)", "", name)) != name:
        name = inner
    return re.sub(r"\bcuguest(_\w+)?::(v\d+_\d+::)?|\b(internal|impl|records|nesting|cudaimage)::", "", name)


def variables(library):
    """The short names of what can be written, and of how many sources each is. A template counts once."""
    listed = subprocess.run(["nm", "--demangle", "--format=sysv", "--defined-only", str(library)], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    found = collections.defaultdict(set)
    member = ""
    for line in listed.splitlines():
        fields = [field.strip() for field in line.rsplit("|", 6)]
        if len(fields) < 7:
            member = line
        elif fields[3] in ("OBJECT", "TLS") and WRITABLE.match(fields[6]) and not NOT_OURS.match(fields[0]):
            is_of_one_source = fields[2] in "bd" and "::s_" not in fields[0] and "<" not in fields[0]
            found[short(fields[0])].add((member, fields[1]) if is_of_one_source else None)
    return {name: len(places) for name, places in found.items()}


failed = []
rows = collections.defaultdict(list)
section = NOTES.read_text().partition(HEADING + "\n")[2].partition("\n## ")[0]
for line in section.splitlines():
    if row := ROW.match(line):
        rows[row[1]].append(row[2])
for name, sources in rows.items():
    word = re.compile(rf"\b{name.split('::')[-1]}\b")
    for source in sources:
        path = root / source
        if not path.is_file() or not word.search(path.read_text()):
            failed.append(f"docs/notes.md, {HEADING[3:]}: {source} has no {name}")

seen = 0
for library in libraries:
    found = variables(library)
    seen += len(found)
    if not found:
        failed.append(f"{library.name}: no variables; is it stripped?")
    for name, count in sorted(found.items()):
        if len(rows[name]) < count:
            failed.append(f"{library.name}: of {count} `{name}`, {len(rows[name])} in docs/notes.md, {HEADING[3:]}: what "
                          "does a child of a fork do with it?")
print(*failed, sep="\n", end="\n" if failed else "")
print(f"cases: {seen - min(seen, len(failed))} passed, {len(failed)} failed, 0 skipped")
sys.exit(1 if failed or not seen else 0)

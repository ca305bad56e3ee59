#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""coverage.py SOURCE_ROOT BUILD [--html DIRECTORY]

Prints what of lib/, include/cuguest and the auditor was run through, by folder and file: lines and branches as
clang counts them. 1 if a room has less than it must have (docs/architecture.md has the rooms).
Called by test/coverage, which has built BUILD with counters and run its tests.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

root, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
html = sys.argv[4] if sys.argv[3:4] == ["--html"] else None

LEAST_LINES = 95.0     # of everything
LEAST_BRANCHES = 85.0  # of the core and of the bridge
# Folders or files that are not counted, and why.
LEFT_OUT = {
    "lib/image": "cudaimage has tests of its own",
    "include/cuguest/testing/stack_probe.h": "names of cudasim's",
}
CORE = {f"lib/{line.strip()}" for line in (root / "lib" / "core.list").read_text().split()}


def tool(name):
    """An LLVM tool of the release that clang++ has."""
    release = re.search(r"version (\d+)", subprocess.check_output(["clang++", "--version"], text=True))[1]
    return shutil.which(f"{name}-{release}") or name


def objects():
    """The programs and shared libraries that counted."""
    for path in sorted(build.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.suffix in (".o", ".a", ".h", ".py", ".json"):
            continue
        with open(path, "rb") as file:
            if file.read(4) != b"\x7fELF":
                continue
        sections = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True).stdout
        if "__llvm_covmap" in sections:
            yield path


def part_of(name):
    """core, bridge, library: what a file belongs to."""
    if name in CORE:
        return "core"
    if name.startswith(("include/cuguest/runtime/", "include/cuguest/libraries/", "lib/libraries/")):
        return "bridge"
    return "library"


profile = build / "profiles" / "all.profdata"
raw = sorted((build / "profiles").glob("*.profraw"))
if not raw:
    sys.exit(f"nothing was counted in {build / 'profiles'}")
subprocess.check_call([tool("llvm-profdata"), "merge", "-sparse", "-o", profile, *raw])
programs = list(objects())
arguments = [f"-instr-profile={profile}", str(programs[0])]
arguments += [word for program in programs[1:] for word in ("-object", str(program))]
sources = [str(root / "lib"), str(root / "include" / "cuguest"), str(root / "subprojects" / "cuguest-audit" / "audit")]
exported = json.loads(subprocess.check_output(
    [tool("llvm-cov"), "export", "-summary-only", *arguments, *sources], stderr=subprocess.DEVNULL))
if html:
    subprocess.check_call([tool("llvm-cov"), "show", "-format=html", f"-output-dir={html}", *arguments, *sources],
                          stderr=subprocess.DEVNULL)


def percent(counts):
    return 100.0 * counts[1] / counts[0] if counts[0] else 100.0


def add(to, name, summary):
    entry = to.setdefault(name, {"lines": [0, 0], "branches": [0, 0]})
    for kind, counts in entry.items():
        counts[0] += summary[kind]["count"]
        counts[1] += summary[kind]["covered"]


files, folders, parts = {}, {}, {}
for file in exported["data"][0]["files"]:
    name = str(pathlib.Path(file["filename"]).resolve().relative_to(root))
    if any(name == out or name.startswith(out + "/") for out in LEFT_OUT) or not name.startswith(("lib/", "include/", "subprojects/cuguest-audit/")):
        continue
    add(files, name, file["summary"])
    add(folders, str(pathlib.Path(name).parent), file["summary"])
    add(parts, part_of(name), file["summary"])
    add(parts, "all", file["summary"])


def show(name, entry, indent=""):
    columns = [f"{percent(entry[kind]):6.1f} % of {entry[kind][0]:5}" for kind in ("lines", "branches")]
    print(f"{indent + name:48} {columns[0]} lines {columns[1]} branches")


for folder in sorted(folders):
    show(folder + "/", folders[folder])
    for name in sorted(files):
        if str(pathlib.Path(name).parent) == folder:
            show(pathlib.Path(name).name, files[name], "  ")
print()
for name in ("core", "bridge", "library", "all"):
    show(name, parts[name])
too_little = []
if percent(parts["all"]["lines"]) < LEAST_LINES:
    too_little.append(f"lines: less than {LEAST_LINES:.0f} %")
for name in ("core", "bridge"):
    if percent(parts[name]["branches"]) < LEAST_BRANCHES:
        too_little.append(f"branches of the {name}: less than {LEAST_BRANCHES:.0f} %")
for text in too_little:
    print(f"FAILED: {text}")
sys.exit(1 if too_little else 0)

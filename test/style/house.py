#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""house.py SOURCE_ROOT [--names]

How large the house is, by product: lines of code and of comments, files, public types, the largest room. --names prints
the public types instead, with their headers.

A line of code has something on it that is not a comment. A public type is a class, struct or enumeration of a public
header that is in no other type and in no namespace `internal` or `impl`; those of c.h are not counted.
"""

import collections
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from products import ROOMS  # noqa: E402

CODE = {".c", ".cc", ".cu", ".cuh", ".h"}
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
OPENS = re.compile(r"""
    (?P<namespace>(?:inline\ )?namespace\s+(?P<space>[\w:]+)?\s*(?:__attribute__\(\(.*?\)\)\s*)?\{)
  | (?P<type>\b(?:class|struct|union|enum(?:\ class|\ struct)?)\b(?P<head>[^;{}()=]*(?:\([^;{}]*?\)[^;{}()=]*)*)\{)
  | \{ | \}""", re.VERBOSE)


def without_comments(text):
    """`text` and its comments apart, each with the same number of lines as before."""
    comments = []

    def blank(match):
        words = match[0]
        if not words.startswith(("//", "/*")):
            return words
        comments.extend(range(text.count("\n", 0, match.start()), text.count("\n", 0, match.end()) + 1))
        return "\n" * words.count("\n")

    return TOKEN.sub(blank, text), set(comments)


def count(paths):
    """(lines of code, lines of comments alone)"""
    code = comment = 0
    for path in paths:
        if path.suffix == ".py":
            kept = [line for line in path.read_text().splitlines() if line.strip()]
            alone = sum(line.lstrip().startswith("#") for line in kept)
            code, comment = code + len(kept) - alone, comment + alone
            continue
        text, commented = without_comments(path.read_text())
        lines = [number for number, line in enumerate(text.split("\n")) if line.strip()]
        code, comment = code + len(lines), comment + len(commented - set(lines))
    return code, comment


def types(header):
    """The names of the public types of a header."""
    text, _ = without_comments(header.read_text())
    text = re.sub(r"^ *#.*?(?<!\\)$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"\bCUGUEST_BEGIN_(\w*?)_?NAMESPACE\b", lambda m: f"namespace {m[1].lower() or 'cuguest'} {{", text)
    text = re.sub(r"\bCUGUEST_END_\w*NAMESPACE\b", "}", text)
    text = TOKEN.sub('""', text)
    inside = []  # for each open brace, whether what is in it is public and of a namespace
    for match in OPENS.finditer(text):
        if match[0] == "}":
            inside.pop()
        elif match["namespace"]:
            inside.append(match["space"] is not None and not re.search(r"\b(internal|impl)\b", match["space"]))
        else:
            if match["type"] and all(inside):
                head = re.sub(r"\[\[.*?\]\]|\bCUGUEST_\w+|\bfinal\b|alignas\(.*?\)", "", match["head"])
                name = re.match(r"\s*(\w+)\s*(:(?!:)|$)", head.split("\n\n")[-1])
                if name:
                    yield name[1]
            inside.append(False)


def main():
    root = pathlib.Path(sys.argv[1])
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, text=True, stdout=subprocess.PIPE, check=True).stdout
    tracked = [pathlib.Path(name) for name in listed.split("\0") if name and (root / name).is_file()]

    def below(*places, suffixes=CODE):
        return [root / path for path in tracked if path.suffix in suffixes and any(path.is_relative_to(p) for p in places)]

    include = root / "include" / "cuguest"
    public = [path for path in below("include") if "internal" not in path.parts]
    found = {path.relative_to(include): sorted(types(path)) for path in public
             if path.name != "c.h"}
    if "--names" in sys.argv:
        for header, names in sorted(found.items()):
            for name in names:
                print(f"{name:28}{header}")
        return
    heart_rooms = ROOMS["heart"].split()
    products = {
        "heart and conversions": [
            *(path for path in below("include/cuguest") if path.parent.name in ("cuguest", "runtime") or
              path.parent == include / "internal"), *below(*(f"lib/{room}" for room in heart_rooms))],
        "objects": below("include/cuguest/objects", "lib/objects"),
        "libraries": below("include/cuguest/libraries", "lib/libraries"),
    }
    names = collections.Counter()
    for header, found_here in found.items():
        names["heart and conversions" if header.parts[0] not in products else header.parts[0]] += len(found_here)
    for product, files in products.items():
        code, comment = count(files)
        print(f"{product:24}{len(files):4} files {code:7,} lines of code {comment:7,} of comments {names[product]:4} public types")
    rooms = collections.Counter(path.parent.relative_to(root) for path in below("lib", suffixes={".cc"}))
    room, sources = rooms.most_common(1)[0]
    code, comment = count(below("include"))
    rows = {
        "code of test/, C++ and C": f"{count(below('test'))[0]:,}",
        "code of test/, Python": f"{count(below('test', suffixes={'.py'}))[0]:,}",
        "files outside of subprojects/": f"{sum(path.parts[0] != 'subprojects' for path in tracked):,}",
        "entries of the heart's driver table": str(len(re.findall(r"^  X\(", (include / "driver_table.h").read_text(), re.M))),
        "lines of comments for one of code in include": f"{comment / code:.2f}",
        f"sources in the largest room, {room}": f"{sources}",
    }
    for what, number in rows.items():
        print(f"{what:50}{number:>8}")


main()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of this folder share. A folder N.N beside this file is what the release of that number promised, in
lists of a row each and in bundles of files; `freeze` writes it."""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VERSION = re.search(r"^  version: '(\d+\.\d+)\.", (ROOT / "meson.build").read_text(), re.M)[1]
OWN = HERE / VERSION
FREEZES = "--fix" in sys.argv  # writes what this version promises
if FREEZES:
    OWN.mkdir(exist_ok=True)
passed = failed = skipped = 0


def check(what, holds, details=""):
    global passed, failed
    print("ok:" if holds else "not ok:", what)
    if not holds:
        print(details)
    passed, failed = passed + bool(holds), failed + (not holds)


def skip(why):
    global skipped
    print("skipped:", why)
    skipped += 1


def done():
    print(f"cases: {passed} passed, {failed} failed, {skipped} skipped")
    if FREEZES:
        sys.exit(1 if failed or skipped else 0)
    sys.exit(1 if failed else 0 if passed else 77)  # nothing is stored, or what compares it is missing


def stored(name):
    """The files of this name, of each release that has one."""
    return sorted(HERE.glob(f"[0-9]*.[0-9]*/{name}"))


def by_head(rows):
    """Of each row what is behind its first `; `, where it may have more."""
    return {head: set(more) for head, *more in (row.split("; ") for row in rows)}


def check_rows(name, rows):
    """`rows` has each row that a release has listed in `name`, with all that is behind it. More are additions."""
    if FREEZES:
        (OWN / name).write_text("".join(f"{row}\n" for row in sorted(set(rows))))
        return
    found = by_head(rows)
    for path in stored(name):
        listed = by_head(path.read_text().splitlines())
        gone = [f"gone or changed: {head}" for head in listed if head not in found]
        gone += [f"gone or changed: {head}: {one}" for head, more in listed.items() for one in sorted(more - found.get(head, more))]
        check(f"the {len(listed)} rows of {path.relative_to(ROOT)} are there", listed and not gone, "\n".join(gone))


MARK = "==== "


def write_bundle(name, files):
    """`files`: a path and a text each."""
    (OWN / name).write_text("".join(f"{MARK}{path}\n{text}" for path, text in files.items()))


def unpack(bundle, folder):
    """Writes the files of a bundle below `folder`, and returns their paths within it."""
    files = re.findall(rf"^{MARK}(.*)\n((?:(?!{MARK}).*\n)*)", bundle.read_text(), re.M)
    for path, text in files:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return [path for path, _ in files]

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""links_test.py SOURCE_ROOT

A copy of the repository that follows its links (cp -rL) ends: none of them leads to a folder that it is in, by itself or
through others, and each leads to something in the repository.
"""

import os
import pathlib
import subprocess
import sys
import tempfile


def endless(folder, within=()):
    """The first path below `folder` by which a copy would come back to a folder that it is in."""
    here = os.path.realpath(folder)
    if here in within:
        return folder
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.is_dir() and entry.name != ".git" and not entry.name.startswith("build"):
            found = endless(entry.path, (*within, here))
            if found:
                return found
    return None


def links(root):
    """Those that Git has, or in a tree without Git those that there are."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-s"], capture_output=True, text=True)
    if listed.returncode == 0:
        return [root / line.split("\t")[1] for line in listed.stdout.splitlines() if line.startswith("120000")]
    return [path for path in root.rglob("*") if path.is_symlink()]


def wrong(root):
    """A line for each link that is wrong."""
    found = []
    for link in links(root):
        target = link.resolve()
        if not target.exists() or root not in target.parents:
            found.append(f"{link.relative_to(root)}: leads to {os.readlink(link)}, which is not in the repository")
    path = endless(root)
    return found + ([f"{os.path.relpath(path, root)}: is in the folder that it leads to"] if path else [])


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    complaints = wrong(root)
    # What it is to find: a link to the root, two folders that link each other, and a link that leaves it.
    with tempfile.TemporaryDirectory() as name:
        for number, made in enumerate(({"a/b/c": "../.."}, {"a/c": "../b", "b/d": "../a"}, {"a/c": "../.."})):
            tree = pathlib.Path(name).resolve() / str(number)
            for link, target in made.items():
                (tree / link).parent.mkdir(parents=True, exist_ok=True)
                (tree / link).symlink_to(target)
            if not wrong(tree):
                complaints.append(f"nothing is found in a tree of {made}")
    print(*complaints, sep="\n")
    count = len(links(root))
    print(f"cases: {count if not complaints else 0} passed, {len(complaints)} failed, 0 skipped")
    return 1 if complaints or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

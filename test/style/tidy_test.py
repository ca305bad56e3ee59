#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tidy_test.py SOURCE_ROOT BUILD_ROOT [DIRECTORY...]

clang-tidy, with the checks of .clang-tidy, finds nothing in the library: in the sources of
lib/DIRECTORY, in the reader of images ("cudaimage"), in the auditor ("audit_command" is audit/command of
subprojects/cuguest-audit) and in the public headers ("headers"); in all of them, unless told.

Much of the time that clang-tidy takes for a source is for the headers that it includes. So it
is given the sources of a directory as one, or as several where they do not compile as one.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "headers"))
from flags import compile_commands, headers_that_can_be_included
from tool import VERSION, find, skip

HEADERS = "headers"
AUDIT = "subprojects/cuguest-audit"
FINDING = re.compile(r"^(\S+?):(\d+):(\d+): (?=warning|error|note)", re.MULTILINE)

root, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
COMMANDS = {source: words for source, _, words in compile_commands(build)}


class Batch:
    """Sources, one after the other in one file."""

    def __init__(self, name, sources, scratch):
        self.name, self.sources = name, sources
        self.path = scratch / f"{name}.cc"
        self.lines = []  # where each line of the file is from
        text = []
        for source in sources:
            for number, line in enumerate(source.read_text().splitlines(), 1):
                self.lines.append((source, number))
                text.append(line)
        self.path.write_text("\n".join(text) + "\n")
        # What the build's compiler is told of includes and macros.
        command = COMMANDS.get(sources[0]) or COMMANDS[root / "lib/core/error.cc"]
        self.flags = ["-std=c++17", *(word for word in command if word.startswith(("-I", "-isystem", "-D"))), f"-I{root / AUDIT}"]

    def compiles(self, clang):
        return subprocess.run([clang, "-fsyntax-only", "-w", *self.flags, self.path], cwd=build,
                              stderr=subprocess.DEVNULL).returncode == 0

    def check(self, clang_tidy):
        """What clang-tidy says of it; empty: nothing."""
        done = subprocess.run([clang_tidy, "--quiet", f"--config-file={root}/.clang-tidy", self.path, "--", *self.flags],
                              cwd=build, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return FINDING.sub(self.place, done.stdout or done.stderr) if done.returncode else ""

    def place(self, match):
        """In the sources, of a line of the batch."""
        path, line, column = match.groups()
        path, line = pathlib.Path(path), int(line)
        if path == self.path:
            path, line = self.lines[line - 1]
        return f"{os.path.relpath(path, root)}:{line}:{column}: "


def batches(name, sources, scratch, clang):
    batch = Batch(name, sources, scratch)
    if len(sources) == 1 or batch.compiles(clang):
        return [batch]
    middle = len(sources) // 2
    return [*batches(name + "_1", sources[:middle], scratch, clang), *batches(name + "_2", sources[middle:], scratch, clang)]


def write_headers(scratch, clang):
    """A source that includes every public header."""
    headers = headers_that_can_be_included(sorted((root / "include").rglob("*.h")), build, clang)
    source = scratch / "include.cc"
    source.write_text("".join(f'#include "{header.relative_to(root / "include")}"\n' for header in headers))
    return source


def main():
    clang_tidy = find("clang-tidy")
    clang = pathlib.Path(clang_tidy).resolve().with_name("clang++")
    if not clang.exists():
        skip(f"no clang++ {VERSION} beside {clang_tidy}")
    with tempfile.TemporaryDirectory() as directory, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        scratch = pathlib.Path(directory)
        groups = {HEADERS: [write_headers(scratch, clang)]}
        for source in sorted((root / "lib").rglob("*.cc")):
            if not source.stem.endswith("_windows"):  # which is compiled elsewhere
                groups.setdefault("_".join(source.relative_to(root / "lib").parts[:-1]), []).append(source)
        for source in sorted((root / AUDIT / "audit").rglob("*.cc")):
            groups.setdefault("_".join(source.relative_to(root / AUDIT).parts[:-1]), []).append(source)
        groups["cudaimage"] = sorted((root / "subprojects/cudaimage/src").glob("*.cc"))
        todo = [batch for name in sys.argv[3:] or groups for batch in batches(name, groups[name], scratch, clang)]
        # The largest first: their end is not waited for with one core at rest.
        todo.sort(key=lambda batch: -len(batch.lines))
        findings = [text for text in pool.map(lambda batch: batch.check(clang_tidy), todo) if text]
    print("".join(findings))
    print(f"cases: {len(todo) - len(findings)} passed, {len(findings)} failed, 0 skipped")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

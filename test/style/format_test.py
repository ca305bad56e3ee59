#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""format_test.py SOURCE_ROOT [--fix]

Every tracked C, C++ and CUDA source is as clang-format writes it. --fix writes it.
"""

import pathlib
import re
import subprocess
import sys

from tool import find, skip

PATTERNS = ("*.c", "*.cc", "*.h", "*.cu")

root = pathlib.Path(sys.argv[1])
clang_format = find("clang-format")
listed = subprocess.run(["git", "ls-files", "-z", *PATTERNS], cwd=root, text=True, capture_output=True)
if listed.returncode:
    skip("no git repository, which says what is tracked")
sources = [name for name in listed.stdout.split("\0") if name and (root / name).exists()]
fix = sys.argv[2:] == ["--fix"]
mode = ["-i"] if fix else ["--dry-run", "-Werror"]
done = subprocess.run([clang_format, *mode, *sources], cwd=root, text=True, stderr=subprocess.PIPE)
different = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error:", done.stderr, re.MULTILINE)))
for name in different:
    print(f"{name}: clang-format would change it")
if different:
    print("test/style/format_test.py . --fix writes these files")
elif done.returncode:
    print(done.stderr)
print(f"cases: {len(sources) - len(different)} passed, {len(different)} failed, 0 skipped")
sys.exit(1 if done.returncode or not sources else 0)

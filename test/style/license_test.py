#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""license_test.py SOURCE_ROOT

Every tracked source names the licence in its first three lines, a project that declares one declares this one, and the
copies of its text do not differ.
"""

import pathlib
import re
import subprocess
import sys

from tool import skip

LICENSE = "Apache-2.0 WITH LLVM-exception"
NAMED = re.compile(r"SPDX-License-" r"Identifier: (.*?)(?: -->)?$", re.MULTILINE)
DECLARED = re.compile(r"^ *license: '(.*?)'", re.MULTILINE)
SOURCES = {".c", ".cc", ".cmake", ".cu", ".cuh", ".h", ".py", ".sh"}
NAMES = {"CMakeLists.txt", "meson.build", "meson_options.txt"}

root = pathlib.Path(sys.argv[1])
listed = subprocess.run(["env", "git", "ls-files", "-z"], cwd=root, text=True, capture_output=True)
if listed.returncode:
    skip("no git repository, which says what is tracked")
tracked = [root / name for name in listed.stdout.split("\0") if name and (root / name).is_file()]

failed = []
checked = 0
for path in tracked:
    if path.suffix not in SOURCES and path.name not in NAMES:
        continue
    checked += 1
    text = path.read_text()
    if NAMED.findall("\n".join(text.splitlines()[:3])) != [LICENSE]:
        failed.append(f"{path.relative_to(root)}: its first lines do not name {LICENSE}")
    if path.name == "meson.build" and DECLARED.findall(text) not in ([], [LICENSE]):
        failed.append(f"{path.relative_to(root)}: the project's licence is not {LICENSE}")
whole = "\n".join((root / "LICENSES" / f"{name}.txt").read_text() for name in ("Apache-2.0", "LLVM-exception"))
failed += [] if whole == (root / "LICENSE").read_text() else ["LICENSE: not what is in LICENSES"]
texts = [path for path in tracked if path.name == "LICENSE"]
failed += [f"{path.relative_to(root)}: not as LICENSE" for path in texts if path.read_bytes() != texts[0].read_bytes()]
failed += [] if "LLVM Exceptions to the Apache 2.0 License" in texts[0].read_text() else ["LICENSE: no exception in it"]
print(*failed, sep="\n", end="\n" if failed else "")
print(f"cases: {checked + len(texts) - len(failed)} passed, {len(failed)} failed, 0 skipped")
sys.exit(1 if failed or not checked else 0)

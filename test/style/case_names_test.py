#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""case_names_test.py SOURCE_ROOT [--list]

The name of a test case has at most six words. Those with more are counted: the number is printed, and may only fall.
--list prints their names.
"""

import pathlib
import re
import sys

MOST_WORDS = 6
LONG = 985

root = pathlib.Path(sys.argv[1])
CASE = re.compile(r"\bBOOST_(?:AUTO|DATA|FIXTURE)_TEST_CASE\(\s*(\w+)")
places = [root / "test", *sorted((root / "subprojects").glob("*/test"))]
names = [(path, name) for place in places for path in sorted(place.rglob("*.cc")) for name in CASE.findall(path.read_text())]
long = [(path, name) for path, name in names if len(name.split("_")) > MOST_WORDS]
if "--list" in sys.argv:
    for path, name in long:
        print(f"{path.relative_to(root)}: {name}")
print(f"{len(long)} of {len(names)} test names have more than six words")
if len(long) > LONG:
    print(f"not ok: there were {LONG}: shorten the new ones (--list)")
if len(long) < LONG:
    print(f"there were {LONG}: lower LONG in {pathlib.Path(__file__).name}")
failed = len(long) > LONG or not names
print(f"cases: {1 - failed} passed, {int(failed)} failed, 0 skipped")
sys.exit(1 if failed else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cost_test.py SOURCE_ROOT [--fix]

What docs/cost.md shows of a benchmark, between `<!-- benchmark: NAME -->` and `<!-- end -->`, is what
the report that the page names has of it. --fix copies it from there.
"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
page = root / "docs" / "cost.md"
text = page.read_text()
named = re.search(r"`(test/hardware/[\w.-]+\.md)`", text)
if not named:
    sys.exit("not ok: docs/cost.md names no report")
report = (root / named[1]).read_text()
BLOCK = re.compile(r"(<!-- benchmark: (\w+) -->\n)(.*?)(<!-- end -->)", re.S)


def measured(name):
    """What the benchmark printed after the line that says which driver it was, or None."""
    found = re.search(rf"^## Benchmark: {name}\n\n```\n[^\n]*\n(.*?)^```", report, re.M | re.S)
    return found and f"{found[1].strip()}\n"


passed = failed = skipped = 0
for _, name, shown, _ in BLOCK.findall(text):
    printed = measured(name)
    if printed is None:
        print(f"skipped: {name}: {named[1]} is older than this benchmark")
        skipped += 1
    elif shown == printed or "--fix" in sys.argv:
        passed += 1
    else:
        print(f"not ok: docs/cost.md does not show what {named[1]} has of {name}: test/docs/cost_test.py . --fix")
        failed += 1
if "--fix" in sys.argv:
    page.write_text(BLOCK.sub(lambda block: block[1] + (measured(block[2]) or block[3]) + block[4], text))
print(f"cases: {passed} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed or not passed + skipped else 0)

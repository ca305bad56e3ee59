#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cost_test.py SOURCE_ROOT [--fix]

What docs/cost.md shows of a benchmark, between `<!-- benchmark: NAME -->` and `<!-- end -->`, is what
the report that the page names has of it, and the nanoseconds of README.md are those of its table. --fix
copies them from there.
"""

import pathlib
import re
import subprocess
import sys

root = pathlib.Path(sys.argv[1])
page = root / "docs" / "cost.md"
text = page.read_text()
named = re.search(r"`(test/hardware/reports/[\w.-]+\.md)`", text)
if not named:
    sys.exit("not ok: docs/cost.md names no report")
report = (root / named[1]).read_text()
BLOCK = re.compile(r"(<!-- benchmark: (\w+) -->\n)(.*?)(<!-- end -->)", re.S)


def measured(name):
    """What the benchmark printed after the line that says which driver it was, or None."""
    found = re.search(rf"^## Benchmark: {name}\n\n```\n[^\n]*\n(.*?)^```", report, re.M | re.S)
    return found and f"{found[1].strip()}\n"


# Rows of README.md: the group and the row of the table that they are.
FINDING = "finding a context, which is current"
PRIMARY = "the device's primary context is current already"
CUBLAS = "a cuBLAS handle, its context current"
ROWS = {
    "`cuStreamGetCtx`, push, pop": (FINDING, "`cuStreamGetCtx`, push, pop"),
    "`AcquiredGuard(stream)`": (FINDING, "`AcquiredGuard(stream)`"),
    "`cuPointerGetAttribute`, push, pop": (FINDING, "`cuPointerGetAttribute`, push, pop"),
    "`AcquiredGuard(pointer)`": (FINDING, "`AcquiredGuard(pointer)`"),
    "PyTorch's `CUDAGuard`: its calls": (PRIMARY, "what PyTorch's `CUDAGuard` calls, shared runtime"),
    "`runtime::DeviceGuard`": (PRIMARY, "`runtime::DeviceGuard`"),
    "push, `cublasSetStream`, pop": (CUBLAS, "push, `cublasSetStream`, pop"),
    "`CublasScope`": (CUBLAS, "`CublasScope`"),
}


def in_readme(table, row):
    """What README.md shows of `row`: the nanoseconds with one thread, and with 16."""
    group, name = ROWS[row]
    rows = dict(re.findall(r"^\| (.*?) \| (.*) \|$", table.split(f"| {group} |")[1].split("\n\n")[0], re.M))
    columns = [cell.split()[0] for cell in rows[name].split(" | ")]
    return [f"{float(ns.replace(',', '')):,.0f}" for ns in (columns[0], columns[2])]


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
readme = (root / "README.md").read_text()
for row in ROWS:
    match = re.search(rf"^(\| {re.escape(row)} \|[^|]*\| )(.*?) \| (.*?) \|$", readme, re.M)
    wanted = in_readme(measured("table"), row)
    if match and ([match[2], match[3]] == wanted or "--fix" in sys.argv):
        passed += 1
        readme = readme.replace(match[0], f"{match[1]}{wanted[0]} | {wanted[1]} |")
    else:
        print(f"not ok: README.md does not show {' and '.join(wanted)} of {row}: test/docs/cost_test.py . --fix")
        failed += 1
if "--fix" in sys.argv:
    (root / "README.md").write_text(readme)
    page.write_text(BLOCK.sub(lambda block: block[1] + (measured(block[2]) or block[3]) + block[4], text))
# Its curves are drawn from the page.
drawn = subprocess.run([sys.executable, root / "docs" / "growth_picture.py", *([] if "--fix" in sys.argv else ["--check"])])
passed, failed = passed + (drawn.returncode == 0), failed + (drawn.returncode != 0)
print(f"cases: {passed} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed or not passed + skipped else 0)

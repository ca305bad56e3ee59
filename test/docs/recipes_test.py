#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""recipes_test.py SOURCE_ROOT

The tables of docs/recipes have the rows that tests hold: those of a page, in its order, are those of a constant in the
test's source.
"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
passed = failed = 0


def check(what, holds, details=""):
    global passed, failed
    print("ok:" if holds else "not ok:", what)
    if not holds:
        print(details)
    passed, failed = passed + bool(holds), failed + (not holds)


def constant(source, name):
    """The rows of an array of structs of strings."""
    body = re.search(rf"\b{name}\[\] = \{{(.*?)^\}};", (root / source).read_text(), re.M | re.S)[1]
    rows = re.findall(r"^    \{(.*?)\},", re.sub(r"//[^\n]*", "", body), re.M | re.S)
    return [["".join(re.findall(r'"([^"]*)"', cell)) for cell in re.split(r'(?<="),\s*(?=")', row)] for row in rows]


def table(page, head):
    """The cells of the rows of the table that begins with the line `head`, without backquotes."""
    body = (root / page).read_text().split(f"\n{head}\n")[1].split("\n\n")[0]
    return [[cell.strip().replace("`", "") for cell in line.strip("|").split("|")] for line in body.splitlines()[1:]]


def same(page, head, source, name):
    held, shown = constant(source, name), table(page, head)
    check(f"{page}: the {len(held)} rows are those of {name}", held and held == shown,
          "\n".join(f"{'test' if row in held else 'page'}: {row}" for row in held + shown if row not in held or row not in shown))


same("docs/recipes/driver_table.md", "| without | returns 36 |", "test/process/driver_table_test.cc", "kNeeds")

print(f"cases: {passed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed else 0)

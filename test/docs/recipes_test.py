#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""recipes_test.py SOURCE_ROOT

The tables of docs/recipes have the rows that tests hold: those of a page, in its order, are those of a constant in the
test's source. Of a recipe with code before and after, the counts in the page are those of the code, the code after calls
nothing of the driver that is about contexts, and each case that the page names is one of the test.
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
    """The cells of the rows of the tables that begin with the line `head`, without backquotes."""
    bodies = [text.split("\n\n")[0] for text in (root / page).read_text().split(f"\n{head}\n")[1:]]
    return [[cell.strip().replace("`", "") for cell in line.strip("|").split("|")]
            for body in bodies for line in body.splitlines()[1:]]


def same(page, head, source, name):
    held, shown = constant(source, name), table(page, head)
    check(f"{page}: the {len(held)} rows are those of {name}", held and held == shown,
          "\n".join(f"{'test' if row in held else 'page'}: {row}" for row in held + shown if row not in held or row not in shown))


same("docs/recipes/driver_table.md", "| without | returns 36 |", "test/process/driver_table_test.cc", "kNeeds")
same("docs/recipes/small_read.md", "| what is current | `Read` | `ReadInside` |", "test/cache/small_read_test.cc", "kCounts")
same("docs/recipes/small_read.md", "| call of `Read` | for |", "test/cache/small_read_test.cc", "kMade")

# The page has each entry of cuguest's tables but one, and each is what the simulation says that a driver says.
ENTER, FACTS = "docs/recipes/do_you_need_to_enter.md", "subprojects/cudasim/test/current_context_facts_test.cc"
HEAD = "| call | nothing current | another context current | works in |"
same(ENTER, HEAD, FACTS, "kRows")
# Of CUDA 13.1; and what one process alone cannot be tried with: ipc_facts_test.cc.
ELSEWHERE = {"cuDevSmResourceSplit", "cuIpcOpenMemHandle", "cuIpcCloseMemHandle", "cuIpcOpenEventHandle"}
entries = {f"cu{name}" for header in ("driver_table.h", "objects/driver.h")
           for name in re.findall(r"^  X\((\w+), \d", (root / "include/cuguest" / header).read_text(), re.M)}
names = {row[0] for row in table(ENTER, HEAD) if "stream 0" not in row[0]}
check(f"{ENTER} has the {len(entries)} calls that cuguest makes", len(entries) == 133 and entries - names == ELSEWHERE
      and names <= entries, f"missing: {sorted(entries - names)}, more: {sorted(names - entries)}")


def code(name):
    """The lines of a recipe's code: without comments, empty lines and directives."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", (root / "examples" / "recipes" / f"{name}.h").read_text(), flags=re.S)
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


# What finds, keeps and enters contexts, tells them apart, and sets the mode of captures.
OF_CONTEXTS = re.compile(r"\b(?:cuCtx|cuDevicePrimaryCtx|cuPointerGetAttribute|cuThreadExchangeStreamCaptureMode)\w*\(")


def before_and_after(page, test):
    versions = [code(f"{page}_{version}") for version in ("before", "after")]
    counts = [["lines of code", *(str(len(lines)) for lines in versions)],
              ["calls of the driver about contexts", *(str(len(OF_CONTEXTS.findall("\n".join(lines)))) for lines in versions)]]
    name = f"docs/recipes/{page}.md"
    shown = table(name, "| | before | after |")
    check(f"{name}: the counts are those of the code", shown == counts, f"page: {shown}\ncode: {counts}")
    check(f"{name}: after, no call of the driver is about contexts", counts[1][2] == "0" != counts[1][1], counts[1])
    named = [case for row in table(name, "| when | before | after | cases |") for case in row[3].split(", ")]
    cases = re.findall(r'\bC(?:ASE\(|ase\(")(\w+)', (root / test).read_text())
    check(f"{name}: the {len(named)} cases are in {test}", named and set(named) <= set(cases), sorted(set(named) - set(cases)))


before_and_after("caches", "test/process/caches_test.cc")
before_and_after("retain", "test/capi/retain_test.c")
before_and_after("pair", "test/capi/pair_test.c")

print(f"cases: {passed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed else 0)

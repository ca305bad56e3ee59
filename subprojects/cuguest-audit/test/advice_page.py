#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""advice_page.py ROWS PAGE

Writes the advice of the rows, which the program ROWS prints, into the sections of PAGE, docs/audit.md.
"""

import json
import re
import subprocess
import sys
import textwrap

CODE = re.compile(r"\b(?:cu[A-Z]\w+|cuda[A-Z]\w+|CU(?:DA)?_[A-Z_]+|(?:\w+::)*[A-Z]\w*[a-z][A-Z]\w*(?:::\w+)?|IsActive)"
                  r"(?:\(\w*\))?")
OLD = re.compile(r"^(?:To do: |\| done by ).*?(?=\n\n)", re.M | re.S)


def marked(text):
    """With code as such."""
    return CODE.sub(lambda found: f"`{found[0]}`", text)


def block(rows):
    """Of the rows of one kind."""
    if len(rows) == 1:
        row = rows[0]
        text = f"To do: {marked(row['plain'])}." + (f" With cuguest: {marked(row['cuguest'])}." if row["cuguest"] else "")
        return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)
    lines = ["| done by | to do | with cuguest |", "|---|---|---|"]
    lines += [f"| {marked(row['of']) or 'other calls'} | {marked(row['plain'])} | {marked(row['cuguest'])} |" for row in rows]
    return "\n".join(lines)


def written(page, rows):
    for kind in dict.fromkeys(row["kind"] for row in rows):
        begin = page.index(f"(`{kind}`)\n")
        end = page.index("\n#", begin)
        new = block([row for row in rows if row["kind"] == kind])
        page = page[:begin] + OLD.sub(lambda found: new, page[begin:end] + "\n") .rstrip("\n") + "\n" + page[end:]
    return page


def faults(page, rows):
    """The kinds whose section does not have the rows."""
    return [f"the section of {kind} has not its advice; test/advice_page.py writes it"
            for kind in dict.fromkeys(row["kind"] for row in rows)
            if f"\n{block([row for row in rows if row['kind'] == kind])}\n" not in page]


if __name__ == "__main__":
    rows = json.loads(subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True).stdout)
    with open(sys.argv[2], "r+", encoding="utf-8") as file:
        page = file.read()
        file.seek(0)
        file.truncate()
        file.write(written(page, rows))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""output_test.py ARCHIVE SOURCE_ROOT

The library prints nothing and throws nothing by itself: no object of it refers to a function or an object that
writes to a file or a terminal (but for what assert() calls before it ends the process), and no source of it has a
throw. What the standard library and operator new throw comes through.
"""

import pathlib
import re
import subprocess
import sys

archive, root = sys.argv[1], pathlib.Path(sys.argv[2])
WRITES = re.compile(r"(?:v?d?f?w?printf|v?printf|__v?f?printf_chk|perror|psignal|puts|fputs|fputws|putw?c|fputw?c|putw?char|_IO_putc|fwrite|"
                    r"p?writev?2?|write|send(?:to|msg|file)?|v?syslog|std::w?c(?:out|err|log)|"
                    r"std::basic_(?:ofstream|fstream)<.*|std::__ostream_insert<.*)(?:@.*)?$")
THROW = re.compile(r"\bthrow\b")
passed = failed = 0


def report(name, found):
    global passed, failed
    passed += not found
    failed += bool(found)
    if found:
        print(f"not ok: {name} has {', '.join(sorted(found))}")


symbols = subprocess.run(["nm", "-C", "--undefined-only", archive], check=True, capture_output=True, text=True).stdout
objects = re.findall(r"^(\S+):\n((?:.*\S\n)*)", symbols, re.M)
for name, undefined in objects:
    names = (line.split(maxsplit=1)[1] for line in undefined.splitlines())
    report(name, {symbol for symbol in names if WRITES.match(symbol)})

for source in sorted(path for folder in ("include", "lib") for path in (root / folder).rglob("*") if path.suffix in (".h", ".cc")):
    text = re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", "", source.read_text(), flags=re.S)
    report(source.relative_to(root), set(THROW.findall(text)))

print(f"cases: {passed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed or not objects else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""abi_test.py SOURCE_ROOT [--fix]

The ABI of the C API is what abi.xml says: the functions of cuguest/c.h and of objects/c_*.h with the versions that lib/exports.map
gives them, their parameters, and the layout of what those lead to, as libabigail reads them from a library
of such functions. And the map has each function that the header declares.

What was released never changes. What is added is written by --fix, with a version of its own in the map.
"skipped" where there is no libabigail (Debian's package is abigail-tools).
"""

import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

root, fix = pathlib.Path(sys.argv[1]).resolve(), "--fix" in sys.argv
DUMP = root / "test" / "capi" / "abi.xml"
MACHINE = "x86_64"
passed = failed = skipped = 0


def check(what, holds, details=""):
    global passed, failed
    print("ok:" if holds else "not ok:", what)
    if not holds:
        print(details)
    passed, failed = passed + bool(holds), failed + (not holds)


include = root / "include"
HEADERS = [include / "cuguest/c.h", *sorted((include / "cuguest/objects").glob("c_*.h"))]
text = "".join(header.read_text() for header in HEADERS)
declared = set(re.findall(r"\b(cuguest_\w+)\(", re.sub(r"//.*", "", text)))
mapped = set(re.findall(r"^ +(cuguest_\w+);", (root / "lib" / "exports.map").read_text(), re.M))
check(f"lib/exports.map has the {len(declared)} functions of c.h and objects/c_*.h", declared and declared == mapped,
      sorted(declared ^ mapped))

tools = [shutil.which(tool) for tool in ("abidw", "abidiff", "gcc")]
if not all(tools) or platform.machine() != MACHINE:
    print(f"skipped: the ABI: it takes abidw and abidiff (abigail-tools), gcc and {MACHINE}")
    skipped = 1
else:
    with tempfile.TemporaryDirectory() as scratch:
        library = pathlib.Path(scratch) / "libcuguest.so"
        all_of_them = "".join(f'#include "{header}"\n' for header in HEADERS)
        header = subprocess.run(["gcc", "-E", "-P", "-x", "c", "-I", include, "-"], check=True, text=True, input=all_of_them,
                                capture_output=True).stdout
        functions = re.sub(r"(\bcuguest_\w+\([^;]*\));", r"\1 { __builtin_trap(); }", header)
        subprocess.run(["gcc", "-x", "c", "-", "-w", "-g", "-fPIC", "-fvisibility=hidden", "-shared", "-o", library,
                        f"-Wl,--version-script={root / 'lib' / 'exports.map'}"], check=True, text=True, input=functions)
        dump = pathlib.Path(scratch) / "abi.xml"
        subprocess.run(["abidw", "--no-corpus-path", "--no-show-locs", "--no-comp-dir-path", "--drop-undefined-syms",
                        "--no-elf-needed", "--out-file", dump, library],
                       check=True)
        symbols = set(re.findall(r"elf-symbol name='(\w+)'", dump.read_text()))
        check("it has no other symbols", symbols == declared, sorted(symbols ^ declared))
        if fix:
            shutil.copy(dump, DUMP)
        run = subprocess.run(["abidiff", "--no-show-locs", DUMP, library], text=True, capture_output=True)
        check("the ABI is that of abi.xml", run.returncode == 0,
              f"{run.stdout}{run.stderr}What was released never changes. Of an addition: {' '.join(sys.argv)} --fix")

print(f"cases: {passed} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed else 0)

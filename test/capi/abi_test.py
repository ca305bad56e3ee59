#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""abi_test.py SOURCE_ROOT [--fix]

The ABI of the C API has what each release had (test/stable): the functions of cuguest/c.h and of objects/c_*.h with the
versions that lib/exports.map gives them, their parameters, and the layout of what those lead to, as libabigail reads them
from a library of such functions. And the map has each function that the header declares.

What was released never changes; what is added has a version of its own in the map. --fix writes that of this version.
"skipped" where there is no libabigail (Debian's package is abigail-tools).
"""

import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "stable"))
from kept import FREEZES, OWN, check, done, skip, stored  # noqa: E402

root = pathlib.Path(sys.argv[1]).resolve()
MACHINE = "x86_64"


def versioned(dump):
    """The version of each function."""
    return dict(re.findall(r"elf-symbol name='(\w+)' version='(\w+)'", dump.read_text()))


include = root / "include"
HEADERS = [include / "cuguest/c.h", *sorted((include / "cuguest/objects").glob("c_*.h"))]
text = "".join(header.read_text() for header in HEADERS)
declared = set(re.findall(r"\b(cuguest_\w+)\(", re.sub(r"//.*", "", text)))
mapped = set(re.findall(r"^ +(cuguest_\w+);", (root / "lib" / "exports.map").read_text(), re.M))
check(f"lib/exports.map has the {len(declared)} functions of c.h and objects/c_*.h", declared and declared == mapped,
      sorted(declared ^ mapped))

tools = [shutil.which(tool) for tool in ("abidw", "abidiff", "gcc")]
if not all(tools) or platform.machine() != MACHINE:
    skip(f"the ABI: it takes abidw and abidiff (abigail-tools), gcc and {MACHINE}")
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
        symbols = versioned(dump)
        check("it has no other symbols", set(symbols) == declared, sorted(set(symbols) ^ declared))
        if FREEZES:
            shutil.copy(dump, OWN / "c.xml")
        for before in stored("c.xml"):
            run = subprocess.run(["abidiff", "--no-show-locs", "--no-added-syms", before, library], text=True, capture_output=True)
            check(f"the ABI has what {before.parent.name} had", run.returncode == 0, f"{run.stdout}{run.stderr}")
            had = versioned(before)
            late = [name for name, version in symbols.items() if name not in had and version in had.values()]
            check(f"no version of {before.parent.name} has got more functions", not late, late)
done()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""sizes_test.py TOOLKIT_INCLUDE SIMDIR

What the two files add to a stripped shared library, with --gc-sections and without, is at most 5 % more than the table of
docs/two_files.md says.
"""

import pathlib
import re
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "embed"))
from common import ROOT, check, done, run, scratch, skip, toolkit_flags

toolkit, _ = sys.argv[1:]
PAGE = ROOT / "docs/two_files.md"
FLAGS = ["-O2", "-fPIC", "-ffunction-sections", "-fdata-sections", "-fno-exceptions", "-fno-rtti"]
NAMES = re.findall(r"^#define (cuguest_\w+) ", (ROOT / "include/cuguest/internal/c_names.h").read_text(), re.M)
VISIBLE = '__attribute__((visibility("default")))'
LIBRARIES = {
    "nothing": ("c", "typedef int Nothing;"),
    "a guard in C": ("c", f"""
        #include "cuguest_core.h"
        {VISIBLE} int Guarded(struct CUctx_st* context) {{
          CUGUEST_SCOPE(cuguest_guard, guard);
          return cuguest_guard_enter(&guard, context, CUGUEST_ELIDE, CUGUEST_HERE);
        }}"""),
    "with the texts of errors": ("c", f"""
        #include "cuguest_core.h"
        {VISIBLE} const char* Guarded(struct CUctx_st* context) {{
          CUGUEST_SCOPE(cuguest_guard, guard);
          return cuguest_error_text(cuguest_guard_enter(&guard, context, CUGUEST_ELIDE, CUGUEST_HERE));
        }}"""),
    "a guard in C++": ("c++", f"""
        #include "cuguest_core.h"
        extern "C" {VISIBLE} int Guarded(CUcontext context) {{ return cuguest::ContextGuard(context).result(); }}"""),
    # Each function of the C API, which has them from the classes.
    "all of it": ("c", f"""
        #include "cuguest_core.h"
        {VISIBLE} void (*const g_all[])(void) = {{{', '.join(f'(void (*)(void))&{name}' for name in NAMES)}}};"""),
}

with scratch() as tmp:
    run(sys.executable, ROOT / "packaging/two_files", tmp)
    include = [f"-I{tmp}", *toolkit_flags(toolkit)]
    run("g++", "-std=c++17", *FLAGS, *include, "-c", tmp / "cuguest_core.cc", "-o", tmp / "core.o")
    sizes = {}
    for what, (language, text) in LIBRARIES.items():
        run("gcc", *FLAGS[:4], *include, "-x", language, "-c", "-", "-o", tmp / "library.o", input=text)
        core = [tmp / "core.o"] if what != "nothing" else []
        for link in (["-Wl,--gc-sections"], []):
            run("g++", "-shared", "-s", *link, tmp / "library.o", *core, "-o", tmp / "library.so")
            sizes.setdefault(what, []).append((tmp / "library.so").stat().st_size)
    nothing = sizes.pop("nothing")
    print("| what | with --gc-sections | without |\n|---|---:|---:|")
    for what, (small, large) in sizes.items():
        sizes[what] = [(small - nothing[0]) / 1024, (large - nothing[1]) / 1024]
        print(f"| {what} | {sizes[what][0]:.0f} KB | {sizes[what][1]:.0f} KB |")
    check("what is not called is left out", sizes["a guard in C"][0] < sizes["all of it"][0] / 2, sizes)
    if not PAGE.exists():
        skip("there is no docs/two_files.md")
    for what, measured in sizes.items():
        row = re.search(rf"^\| {re.escape(what)} \| (\d+) KB \| (\d+) KB \|$", PAGE.read_text(), re.M)
        check(f"docs/two_files.md has a row: {what}", row is not None)
        for number, size in zip(row.groups(), measured):
            check(f"{what}: at most {number} KB and 5 %", 0 < size <= 1.05 * int(number), size)
    done()

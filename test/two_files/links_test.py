#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""links_test.py TOOLKIT_INCLUDE SIMDIR

A shared library with the two files in it exports what it asks for, and nothing of theirs, with -fvisibility=hidden or
without. Twice in one link they are refused by the linker; with a suffix of the namespace each they work.
"""

import pathlib
import re
import shutil
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "embed"))
from common import ROOT, check, done, environment, run, scratch, toolkit_flags

toolkit, simdir = sys.argv[1:]
LIBRARIES = {
    "cc": """
#include "cuguest_core.h"
extern "C" __attribute__((visibility("default"))) int Guarded(CUcontext context) {
  return cuguest::ContextGuard(context).result();
}
""",
    "c": """
#include "cuguest_core.h"
__attribute__((visibility("default"))) int Guarded(struct CUctx_st* context) {
  CUGUEST_SCOPE(cuguest_guard, guard);
  return cuguest_guard_enter(&guard, context, CUGUEST_ELIDE, CUGUEST_HERE);
}
"""}
FLAGS = ["-fPIC", *toolkit_flags(toolkit)]
GUESTS = ROOT / "test/embed/suffixes"
STANDARDS = {"cc": "-std=c++17", "c": "-std=c99"}


def check_exports(cxx, cc):
    """Leaves core.o without optimisation."""
    for optimization, visibility in (("-O2", []), ("-O2", ["-fvisibility=hidden"]), ("-O0", [])):
        run(cxx, "-std=c++17", *FLAGS, optimization, *visibility, "-c", "cuguest_core.cc", "-o", "core.o", cwd=tmp)
        for suffix, standard in STANDARDS.items():
            run(cc, standard, *FLAGS, optimization, *visibility, "-c", f"library.{suffix}", "-o", "library.o", cwd=tmp)
            run(cxx, "-shared", "library.o", "core.o", "-o", "library.so", cwd=tmp)
            names = {line.split()[-1] for line in run("nm", "-D", "--defined-only", tmp / "library.so").splitlines()}
            # Inline functions of libstdc++, which it makes visible, are there without optimisation.
            strangers = {name for name in names if optimization != "-O0" or re.match(r"_Z[A-Z]*NK?7cuguest|cuguest", name)}
            check(f"{cxx} {' '.join([optimization, *visibility])}, a library in {suffix} exports its function alone",
                  "Guarded" in names and not strangers - {"Guarded"}, sorted(strangers))


def check_twice(cxx, cc):
    twice = subprocess.run([cxx, "-shared", "core.o", "core.o", "-o", "twice.so"], cwd=tmp, capture_output=True, text=True)
    check("twice in one link, the linker names what is there twice",
          twice.returncode != 0 and re.search(r"(multiple definition of|duplicate symbol).*cuguest", twice.stderr), twice.stderr[-2000:])
    (tmp / "cuguest").mkdir()
    (tmp / "cuguest/c.h").write_text('#include "cuguest_core.h"\n')
    objects = []
    for suffix in ("alpha", "beta"):
        define = f"-DCUGUEST_NAMESPACE_SUFFIX={suffix}"
        objects += [f"{suffix}.o", f"guest_{suffix}.o"]
        run(cxx, "-std=c++17", *FLAGS, define, "-c", "cuguest_core.cc", "-o", objects[-2], cwd=tmp)
        run(cc, "-std=c99", *FLAGS, define, f"-I{tmp}", "-c", GUESTS / "guest.c", "-o", objects[-1], cwd=tmp)
    run(cxx, "-w", "-x", "c", GUESTS / "two_guests.c", "-x", "none", *objects, "-o", "two", "-ldl", "-pthread", cwd=tmp)
    output = run(tmp / "two", env=environment(LD_LIBRARY_PATH=simdir))
    check("with a suffix each, two copies count apart in one program", output == "alpha 1\nbeta 0\n", output)


with scratch() as tmp:
    run(sys.executable, ROOT / "packaging/two_files", tmp)
    for suffix, text in LIBRARIES.items():
        (tmp / f"library.{suffix}").write_text(text)
    compilers = {cxx: cc for cxx, cc in (("clang++", "clang"), ("g++", "gcc")) if shutil.which(cxx)}
    for cxx, cc in compilers.items():
        check_exports(cxx, cc)
    check_twice(cxx, cc)
    done()

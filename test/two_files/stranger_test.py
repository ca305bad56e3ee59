#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""stranger_test.py COMPILER TOOLKIT_INCLUDE SIMDIR

The two files alone in a folder, by one command: each of three standards, with a toolkit and without, with exceptions and
run-time types and without, is parsed; the header is C99, C11 and C17; what BUILT names is built and passes, and so do the
tests of the C API with cuguest_core.h in place of cuguest/c.h. All warnings are errors. For aarch64 in an emulator, on
test/capi/fake_driver.c; test/embed/windows_test.py does the same for Windows.
"""

import itertools
import pathlib
import re
import shutil
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "embed"))
from common import ROOT, check, done, environment, run, scratch, skip, toolkit_flags

compiler, toolkit, simdir = sys.argv[1:]
name = pathlib.Path(compiler).name
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
PLAIN = ["-fno-exceptions", "-fno-rtti"]
# No enum: as in test/run. No function: what stands for each function that a driver lacks has one type.
SANITIZED = ["-O1", "-g1", "-fsanitize=address,undefined", "-fno-sanitize=enum", "-fno-sanitize-recover=all"]
DRIVERS = {"with a toolkit": toolkit_flags(toolkit), "without a toolkit": ["-DCUGUEST_NO_TOOLKIT"]}
BUILT = {
    "g++": [("c++17", PLAIN, "with a toolkit"), ("c++2b", SANITIZED, "without a toolkit")],
    "g++-11": [("c++20", [], "without a toolkit")],
    "clang++": [("c++17", [*SANITIZED, "-fno-sanitize=function"], "with a toolkit")],
    "clang++-19": [("c++2b", PLAIN, "without a toolkit")],
    "aarch64-linux-gnu-g++": [("c++20", PLAIN, "without a toolkit")],
}
IN_C = """
#include "cuguest_core.h"
int use(struct CUctx_st* context);
int use(struct CUctx_st* context) {
  CUGUEST_SCOPE(cuguest_guard, guard);
  return cuguest_guard_enter(&guard, context, CUGUEST_ELIDE, CUGUEST_HERE);
}
"""
c_compiler = re.sub(r"g\+\+", "gcc", re.sub(r"clang\+\+", "clang", compiler))

with scratch() as tmp:
    alone = tmp / "alone"
    run(sys.executable, ROOT / "packaging/two_files", alone)
    for standard, (what, driver), flags in itertools.product(("c++17", "c++20", "c++2b"), DRIVERS.items(), ([], PLAIN)):
        run(compiler, f"-std={standard}", *STRICT, *driver, *flags, "-fsyntax-only", "cuguest_core.cc", cwd=alone)
        check(f"{name}, {standard}, {what}, {' '.join(flags)}", True)
    for standard in ("c99", "c11", "c17"):
        run(c_compiler, "-x", "c", f"-std={standard}", *STRICT, f"-I{alone}", "-fsyntax-only", "-", input=IN_C)
        check(f"{name}: the header is {standard}", True)

    emulator, libraries = [], simdir
    if name.startswith("aarch64"):
        qemu = shutil.which("qemu-aarch64-static") or skip("what is built is not run: no qemu-user-static")
        emulator, libraries = [qemu, "-L", "/usr/aarch64-linux-gnu", "-E", f"LD_LIBRARY_PATH={tmp}"], ""
        run(c_compiler, "-shared", "-fPIC", ROOT / "test/capi/fake_driver.c", "-o", tmp / "libcuda.so.1")
    env = environment(LD_LIBRARY_PATH=libraries, UBSAN_OPTIONS="print_stacktrace=1", ASAN_OPTIONS="intercept_tls_get_addr=0")
    shutil.copy(ROOT / "test/two_files/stranger.cc", alone)
    (tmp / "cuguest").mkdir()
    (tmp / "cuguest/c.h").write_text('#include "cuguest_core.h"\n')
    for standard, flags, driver in BUILT[name]:
        how = f"{name}, {standard}, {driver}, {' '.join(flags)}"
        options = [f"-std={standard}", "-O2", *STRICT, *flags, *DRIVERS[driver]]
        sanitizers = [flag for flag in flags if "sanitize" in flag]
        run(compiler, *options, "-c", "cuguest_core.cc", "stranger.cc", cwd=alone)
        run(compiler, *sanitizers, "cuguest_core.o", "stranger.o", "-o", "stranger", "-ldl", "-pthread", cwd=alone)
        output = run(*emulator, alone / "stranger", env=env)
        check(f"{how}: a program guards", output == "guarded\n", output)
        run(c_compiler, "-std=c99", *STRICT[:3], "-Werror", *sanitizers, f"-I{tmp}", f"-I{alone}", f"-I{ROOT}", "-c",
            ROOT / "test/capi/c_test.c", "-o", tmp / "c_test.o")
        run(compiler, *sanitizers, tmp / "c_test.o", alone / "cuguest_core.o", "-o", tmp / "c_test", "-ldl", "-pthread")
        output = run(*emulator, tmp / "c_test", env=env)
        check(f"{how}: the tests of the C API pass", " passed, 0 failed, 0 skipped" in output, output)
    done()

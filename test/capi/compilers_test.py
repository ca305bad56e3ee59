#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""compilers_test.py SOURCE_ROOT BUILD_ROOT COMPILER LIBRARY...

cuguest/c.h and the C of docs/c.md, by a C compiler that is not the build's: alone, twice, before and after
<cuda.h> and ffnvcodec's header, in each standard of C, and as C++; cuguest/cxx.h in each standard of C++; a code that is
dropped, with a cast to void and without, in each of both. And c_test.c as C99 and cxx_test.cc as C++11 with each LIBRARY,
the shared one and the core's archive, linked by the C compiler, on the simulation. All warnings are errors.
"""

import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

root, build, compiler = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
sys.path.append(str(root / "test" / "headers"))
from flags import system_includes

STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{root / 'include'}", f"-I{root}",
          f"-I{root / 'subprojects' / 'cudasim' / 'include'}"]
FFNVCODEC = ["<ffnvcodec/dynlink_cuda.h>"]
passed = failed = skipped = 0
os.chdir(build)


def check(what, holds, details):
    global passed, failed
    print("ok:" if holds else "not ok:", what)
    if not holds:
        print(details)
    passed, failed = passed + holds, failed + (not holds)


def compiled(text, *options, language="c"):
    # To assembly: gcc warns of some results that are dropped after -fsyntax-only has ended.
    return subprocess.run([compiler, "-x", language, "-S", "-o", os.devnull, *STRICT, *options, *system_includes(build), "-"],
                          input=text, capture_output=True, text=True)


def compiles(what, text, *options, language="c"):
    run = compiled(text, *options, language=language)
    check(what, run.returncode == 0, run.stderr)


def have(header):
    return subprocess.run([compiler, "-x", "c", "-fsyntax-only", *system_includes(build), "-"], text=True,
                          input=f"#include {header}\n", capture_output=True).returncode == 0


USE = """
int use(struct CUctx_st* context);
int use(struct CUctx_st* context) {
  CUGUEST_SCOPE(cuguest_guard, guard);
  cuguest_ref ref = CUGUEST_REF_INIT;
  int code = cuguest_ref_borrow(&ref, context);
  return code ? code : cuguest_guard_enter_ref(&guard, &ref, CUGUEST_ELIDE, CUGUEST_HERE);
}
"""
OURS = '#include "cuguest/c.h"\n'
around = {"alone": OURS * 2}
for other in ("<cuda.h>", *FFNVCODEC):
    if have(other):
        around[f"after {other}"] = f"#include {other}\n{OURS}CUcontext of_theirs;\n"
        around[f"before {other}"] = f"{OURS}#include {other}\nCUcontext of_theirs;\n"
    else:
        print(f"skipped: beside {other}: it is not installed")
        skipped += 2
for where, text in around.items():
    compiles(f"{where}, C99", text + USE, "-std=c99")
    compiles(f"{where}, C++17", text + USE, "-std=c++17", language="c++")
for standard in ("c11", "c17", "c2x"):
    compiles(f"alone, {standard}", OURS + USE, f"-std={standard}")
for standard in ("c++11", "c++14", "c++17", "c++20"):
    for around in ("", "#include <cuda.h>\n"):
        compiles(f"cxx.h, {standard}{around and ', after <cuda.h>'}", f'{around}#include "cuguest/cxx.h"\ncuguest::CPrimary held;\n',
                 f"-std={standard}", language="c++")
compiles("the recipe of a driver table, C99", OURS + """#include "examples/recipes/driver_table.h"
int adopt(void* library);
int adopt(void* library) { return cuguest_driver_adopt(&driver_lookup, library); }
""", "-std=c99")
# Where a dropped code warns, by the language's [[nodiscard]] or by clang, a cast to void silences it.
DROPS = """
void drop(struct CUctx_st* context, cuguest_guard* guard);
void drop(struct CUctx_st* context, cuguest_guard* guard) {
  %scuguest_guard_enter(guard, context, CUGUEST_ELIDE, CUGUEST_HERE);
}
"""
is_clang = "clang" in subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
STANDARDS = {"c": ("c99", "c11", "c17", "c2x", "gnu17"), "c++": ("c++11", "c++14", "c++17", "c++20", "gnu++20")}
for language, standard in ((language, standard) for language, all_of in STANDARDS.items() for standard in all_of):
    options = [f"-std={standard}", *(["-DCUGUEST_STATIC"] if standard.startswith("gnu") else [])]
    compiles(f"a code is dropped by a cast, {standard}", OURS + DROPS % "(void)", *options, language=language)
    run = compiled(OURS + DROPS % "", *options, language=language)
    warns = is_clang or standard in ("c2x", "c++17", "c++20", "gnu++20")
    check(f"a code that is dropped without one {'warns' if warns else 'does not warn'}, {standard}",
          ("unused" in run.stderr or "ignoring return value" in run.stderr) == warns and (run.returncode != 0) == warns,
          run.stderr)
for number, block in enumerate(re.findall(r"^```c\n(.*?)^```", (root / "docs/c.md").read_text(), re.M | re.S), 1):
    compiles(f"docs/c.md, block {number}", block, "-std=c99")

with tempfile.TemporaryDirectory() as scratch:
    for source, library in itertools.product(("c_test.c", "cxx_test.cc"), sys.argv[4:]):
        file = (build / library).resolve()
        program = pathlib.Path(scratch) / "program"
        options = ["-std=c99"] if source == "c_test.c" else ["-x", "c++", "-std=c++11", "-fno-exceptions", "-fno-rtti"]
        link = subprocess.run(
            [compiler, *options, *STRICT, *(["-DCUGUEST_STATIC"] if file.suffix == ".a" else []), root / "test/capi" / source,
             "-o", program, "-x", "none", file, "-ldl", "-lpthread", f"-Wl,-rpath,{file.parent}"], capture_output=True, text=True)
        run = subprocess.run([program], capture_output=True, text=True) if link.returncode == 0 else link
        good = run.returncode == 0 and " passed, 0 failed, 0 skipped" in run.stdout
        check(f"{source} with {file.name}", good, run.stdout + run.stderr)

print(f"cases: {passed} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed or passed < 10 else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""no_cuda_test.py SOURCE_ROOT

cuguest_core.h with CUGUEST_NO_CUDA, as packaging/two_files writes it: the programs of no_cuda/, which are linked with
nothing, by gcc and clang in C99, C11, C++17 and C++20: without a cuda.h, beside another vendor's, which has macros of the
driver's names, and beside one that has types of them, included before cuguest_core.h and after it. What the library
defines and such a source does not; a program of a source with CUGUEST_NO_CUDA and one without. All warnings are errors.
"""

import itertools
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

root = pathlib.Path(sys.argv[1]).resolve()
sources = root / "test/two_files/no_cuda"
sys.dont_write_bytecode = True
sys.path.append(str(root / "packaging"))
import no_cuda

passed = failed = skipped = 0
scratch_folder = tempfile.TemporaryDirectory()
scratch = pathlib.Path(scratch_folder.name)
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", f"-I{scratch}"]
ANOTHER_VENDOR, TYPES = f"-I{sources / 'another_vendor'}", f"-I{root / 'lib/no_toolkit'}"
BESIDE = {
    "without a cuda.h": [],
    "after another vendor's cuda.h": [ANOTHER_VENDOR, "-DCUDA_H_BEFORE"],
    "before another vendor's cuda.h": [ANOTHER_VENDOR, "-DCUDA_H_AFTER"],
}
BESIDE_TYPES = {
    "after a cuda.h of types": [TYPES, "-DCUDA_H_BEFORE"],
    "before a cuda.h of types": [TYPES, "-DCUDA_H_AFTER", "-DCUGUEST_NO_CUDA_NAMES"],
}
# What the library defines, and nobody else calls.
PRIVATE = re.compile(r"::ThreadHome::(Bind|Place|Follow)\(|::SharedContext::SharedContext\(.*internal::Reference")


def check(what, holds, details=""):
    global passed, failed
    print("ok:" if holds else "not ok:", what)
    if not holds:
        print(details)
    passed, failed = passed + holds, failed + (not holds)


def run(*command):
    return subprocess.run(command, capture_output=True, text=True)


def compile_to(name, source, compiler, *options):
    """The object, or None after a failed check."""
    made = run(*compiler, *STRICT, *options, "-c", str(source), "-o", str(scratch / name))
    if made.returncode != 0:
        check(f"{pathlib.Path(source).name} compiles, {' '.join([*compiler, *options])}", False, made.stderr)
        return None
    return str(scratch / name)


def runs(what, linker, *objects):
    if None in objects:
        return
    program = str(scratch / "program")
    made = run(linker, *objects, "-o", program)
    if made.returncode == 0:
        made = run(program)
    check(what, made.returncode == 0 and " checks, 0 failed" in made.stdout, made.stdout + made.stderr)


def symbols(file, *options):
    return run("nm", *options, file).stdout.splitlines()


def signature(symbol):
    """As the library has it, of a symbol with CUGUEST_NO_CUDA, demangled."""
    symbol = re.sub(r"cuguest::v\w+_no_cuda::internal::AnyHandle<[\w:]+::cuguest_no_cuda_(\w+)>", r"\1*", symbol)
    symbol = re.sub(r"cuguest::v\w+_no_cuda::internal::Any(?:Code|Option)<[\w:]+::cuguest_no_cuda_(\w+)>", r"\1", symbol)
    return symbol.replace("_no_cuda", "")


def test_programs(c, cxx):
    for (where, beside), standard in itertools.product(BESIDE.items(), ("c99", "c11")):
        runs(f"use.c, {c}, {standard}, {where}", c,
             compile_to("use.o", sources / "use.c", [c, f"-std={standard}"], "-DCUGUEST_NO_CUDA", *beside))
    for (where, beside), standard in itertools.product((BESIDE | BESIDE_TYPES).items(), ("c++17", "c++20")):
        runs(f"use.cc, {cxx}, {standard}, {where}", cxx,
             compile_to("use.o", sources / "use.cc", [cxx, f"-std={standard}"], "-DCUGUEST_NO_CUDA", *beside))
    runs(f"use.c as C++, {cxx}", cxx, compile_to("use.o", sources / "use.c", [cxx, "-std=c++17", "-x", "c++"], "-DCUGUEST_NO_CUDA"))
    runs(f"use.cc, {cxx}, without exceptions and without the C++ library", c,
         compile_to("use.o", sources / "use.cc", [cxx, "-std=c++17"], "-DCUGUEST_NO_CUDA", "-fno-exceptions", "-fno-rtti"))
    suffixed = compile_to("use.o", sources / "use.cc", [cxx, "-std=c++17"], "-DCUGUEST_NO_CUDA", "-DCUGUEST_NAMESPACE_SUFFIX=acme")
    runs(f"use.cc, {cxx}, with a suffix", cxx, suffixed)
    named = [symbol for symbol in symbols(suffixed, "-C") if "cuguest" in symbol] if suffixed else []
    check(f"the suffix is in each name, {cxx}", named != [] and all("_acme_no_cuda" in symbol for symbol in named), "\n".join(named))


def test_pairs(c, cxx):
    """A source with CUGUEST_NO_CUDA and one without, in one program."""
    core = compile_to("core.o", scratch / "cuguest_core.cc", [cxx, "-std=c++17"], "-DCUGUEST_NO_TOOLKIT", "-Wno-conversion", "-Wno-shadow",
                      "-Wno-pedantic")
    halves = {}
    for name, options in {"with": ["-DCUGUEST_NO_TOOLKIT"], "without": ["-DCUGUEST_NO_CUDA"]}.items():
        halves[name] = [compile_to(f"{name}_cxx.o", sources / "pair.cc", [cxx, "-std=c++17"], *options),
                        compile_to(f"{name}_c.o", sources / "pair.c", [c, "-std=c99"], *options)]
    main = compile_to("main.o", sources / "pair_main.cc", [cxx, "-std=c++17"])
    empty = compile_to("empty.o", scratch / "cuguest_core.cc", [cxx, "-std=c++17"], "-DCUGUEST_NO_CUDA")
    for first, second in (("with", "without"), ("without", "with")):
        runs(f"a source {first} and one {second} CUDA, {cxx}", cxx, main, *halves[first], *halves[second], core, empty, "-ldl", "-lpthread")
    check(f"cuguest_core.cc is empty, {cxx}", empty is not None and symbols(empty) == [], empty and symbols(empty))
    return core


def test_functions(core):
    """Each public function that the library defines is defined by what only includes the header."""
    (scratch / "includes.cc").write_text('#include "cuguest_core.h"\n')
    includes = compile_to("includes.o", scratch / "includes.cc", ["g++", "-std=c++17"], "-DCUGUEST_NO_CUDA", "-fkeep-inline-functions")
    if core is None or includes is None:
        return
    defined = {signature(symbol) for symbol in re.findall(r"^\w+ [TW] (.*)", "\n".join(symbols(includes, "-C")), re.M)}
    expected = [symbol for symbol in dict.fromkeys(re.findall(r"^\w+ T (.*)", "\n".join(symbols(core, "-C")), re.M))
                if re.match(r"cuguest::v\w+::(?!internal::|\(anonymous)|cuguest_\w+$", symbol) and not PRIVATE.search(symbol)]
    for symbol in expected:
        if symbol not in defined:
            check(f"{symbol} is defined with CUGUEST_NO_CUDA", False)
    check(f"{len(expected)} functions are defined with CUGUEST_NO_CUDA", len(expected) > 150 and set(expected) <= defined)
    undefined = [symbol for symbol in symbols(includes, "-uC") if "cuguest" in symbol]
    check("what is defined calls nothing that is not", undefined == [], "\n".join(undefined))


def test_script():
    declared = "CUGUEST_C_NODISCARD CUGUEST_C_API int cuguest_new(cuguest_guard* guard);\n"
    try:
        no_cuda.c_functions((root / "include/cuguest/c.h").read_text().replace("CUGUEST_C_API CUGUEST_C_NODISCARD",
                                                                               "CUGUEST_C_NODISCARD CUGUEST_C_API") + declared, root)
        said = ""
    except SystemExit as end:
        said = str(end)
    check("a C function without a body is named", "cuguest_new has no body" in said, said)


made = run(sys.executable, str(root / "packaging/two_files"), str(scratch))
if made.returncode != 0:
    sys.exit(made.stderr)
cores = []
for c, cxx in (("gcc", "g++"), ("clang", "clang++")):
    if shutil.which(c) and shutil.which(cxx):
        test_programs(c, cxx)
        cores.append((cxx, test_pairs(c, cxx)))
    else:
        print(f"skipped: {cxx} is not installed")
        skipped += 1
if cores and cores[0][0] == "g++":
    test_functions(cores[0][1])
windows = "x86_64-w64-mingw32-g++"
if shutil.which(windows):
    check(f"use.cc, {windows}",
          compile_to("use.obj", sources / "use.cc", [windows, "-std=c++17"], "-DCUGUEST_NO_CUDA", ANOTHER_VENDOR, "-DCUDA_H_BEFORE") is not None)
else:
    print(f"skipped: {windows} is not installed")
    skipped += 1
test_script()

print(f"cases: {passed} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed or passed < 10 else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""clang_cl_test.py SOURCE_ROOT

clang-cl, which is clang with MSVC's language and options, and does not define __GNUC__: cuguest/c.h as C and C++, and the
core as two files (packaging/two_files), the header as C, both as C++17. The C++ headers are libc++'s of the same clang, on
mingw-w64's C library, made to fit by ADAPTER, since there are none of MSVC's. All warnings are errors.

What the compiler sees of the core has none of GNU's extensions, but for attributes, which others ignore.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

root = pathlib.Path(sys.argv[1]).resolve()
compiler = shutil.which("clang-cl") or shutil.which("clang-cl-14")
if compiler is None:
    print("skipped: there is no clang-cl\ncases: 0 passed, 0 failed, 1 skipped")
    sys.exit(77)
OPTIONS = ["--target=x86_64-pc-windows-msvc", "/nologo", "/W4", "/WX", "-Wpedantic", "-Wno-language-extension-token",
           "-DCUGUEST_NO_TOOLKIT", f"-I{root / 'include'}"]
LIBCXX = pathlib.Path(compiler).resolve().parents[1] / "include/c++/v1"
MINGW = pathlib.Path("/usr/share/mingw-w64/include")
# mingw-w64's headers put attributes where MSVC's do not stand, and lack what libc++ expects of Microsoft's.
ADAPTER = """
#include <_mingw.h>
#undef __MINGW_ATTRIB_NORETURN
#define __MINGW_ATTRIB_NORETURN
#undef __MINGW_ATTRIB_DEPRECATED
#define __MINGW_ATTRIB_DEPRECATED
#undef __MINGW_NOTHROW
#define __MINGW_NOTHROW
#undef __attribute__
#include <stddef.h>
#include <string.h>
#include <time.h>
extern "C" int at_quick_exit(void (*)(void));
extern "C" void quick_exit(int);
extern "C" void* aligned_alloc(size_t, size_t);
extern "C" int timespec_get(struct timespec*, int);
"""
# MSVC has __builtin_FILE() and __builtin_LINE(), too; clang's <stddef.h> has offsetof as the third.
OF_GNU = re.compile(r"\b__(?:builtin_(?!FILE\b|LINE\b|offsetof\b)|atomic_|sync_|asm|attribute|extension|thread\b|typeof|int128)|\basm\b")
USE = """
int use(struct CUctx_st* context);
int use(struct CUctx_st* context) {
  %s
  cuguest_ref ref = CUGUEST_REF_INIT;
  int code = cuguest_ref_borrow(&ref, context);
  return code ? code : cuguest_guard_enter_ref(&guard, &ref, CUGUEST_ELIDE, CUGUEST_HERE);
}
"""
SCOPED = USE % "CUGUEST_SCOPE(cuguest_guard, guard);"
# As for a compiler that is neither.
PLAIN = "#ifdef CUGUEST_SCOPE\n#error\n#endif\n" + USE % "cuguest_guard guard = CUGUEST_INIT(cuguest_guard);"
passed = failed = skipped = 0


def check(what, holds, details):
    global passed, failed
    print("ok:" if holds else "not ok:", what)
    if not holds:
        print(details)
    passed, failed = passed + holds, failed + (not holds)


with tempfile.TemporaryDirectory() as scratch:
    folder = pathlib.Path(scratch)
    subprocess.run([sys.executable, root / "packaging/two_files", folder], check=True)
    (folder / "adapter.h").write_text(ADAPTER)
    cxx = ["/TP", "/std:c++17", "/FIadapter.h", "-D_LIBCPP_NO_VCRUNTIME", "-D_LIBCPP_WCHAR_H_HAS_CONST_OVERLOADS",
           "-imsvc", LIBCXX, "-imsvc", MINGW]

    def run(source, *options):
        return subprocess.run([compiler, *OPTIONS, *options, source], cwd=folder, capture_output=True, text=True)

    def compiles(what, text, *options):
        (folder / "use.c").write_text(text)
        done = run("use.c", "/c", "/Fouse.obj", *options)
        check(what, done.returncode == 0, done.stdout + done.stderr)

    def sees_none(what, source, ours, *options):
        """Nothing of GNU's in what the compiler sees of the files that are `ours`."""
        done = run(source, "/E", *options)
        found, is_ours, lines = [], False, 0
        for line in done.stdout.splitlines():
            marker = re.match(r'# (?:line )?\d+ "([^"]*)"|#line \d+ "([^"]*)"', line)
            if marker:
                is_ours = pathlib.PurePath((marker[1] or marker[2]).replace("\\\\", "/")).name in ours
            elif is_ours:
                lines += bool(line.strip())
                found += [line] if OF_GNU.search(line) else []
        check(f"{what}: nothing of GNU's in {lines} lines", done.returncode == 0 and lines > 100 and not found,
              "\n".join(found) + done.stderr)

    for name in ("cuguest/c.h", "cuguest_core.h"):
        twice = f'#include "{name}"\n' * 2
        for standard in ([], ["/std:c11"], ["/std:c17"]):
            compiles(" ".join([name, "as C", *standard]), twice + SCOPED, "/TC", *standard)
        compiles(f"{name} as C, by neither gcc nor clang", twice + PLAIN, "/TC", "/U__clang__")
        sees_none(f"{name} as C, by neither", "use.c", {pathlib.PurePath(name).name}, "/TC", "/U__clang__")
    for standard in ("c++14", "c++17", "c++20"):
        compiles(f"cuguest/c.h, {standard}", '#include "cuguest/c.h"\n' * 2 + SCOPED, "/TP", f"/std:{standard}")
    compiles("cuguest/c.h, c++17, by neither", '#include "cuguest/c.h"\n' + PLAIN, "/TP", "/std:c++17", "/U__clang__")

    if LIBCXX.is_dir() and MINGW.is_dir():
        compiles("cuguest_core.h, c++17", '#include "cuguest_core.h"\ncuguest::ContextGuard* guard;\n', *cxx)
        done = run("cuguest_core.cc", "/c", "/Focore.obj", *cxx)
        check("cuguest_core.cc, c++17", done.returncode == 0, done.stdout + done.stderr)
        sees_none("the core", "cuguest_core.cc", {"cuguest_core.h", "cuguest_core.cc"}, *cxx)
    else:
        print("skipped: the core as C++: there is no libc++ of this clang, or no mingw-w64")
        skipped += 1

print(f"cases: {passed} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed else 0)

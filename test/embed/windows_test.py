#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""windows_test.py MESON...

The core and its C API for Windows, by mingw-w64, where no CUDA Toolkit is: Meson and CMake build the archive, without a
warning; the tests of C and of C++ (cxx.h) pass under Wine, with a driver that is found in the system's directory and
nowhere else; two libraries with a copy each count a shared context together, and a section that is none of theirs is not
followed. The core's two files (packaging/two_files) compile in each standard without a warning, and pass the same. For a
compiler that has no attributes, such as MSVC, the header has none.

Skipped without g++-mingw-w64-x86-64; what runs programs is, without wine64.
"""

import itertools
import os
import shutil
import subprocess

from common import ROOT, ccache_before, check, done, environment, hiding, run, scratch, skip, sys, without_fetched

meson = sys.argv[1:]
TOOLS = "x86_64-w64-mingw32-"
WINE = next((path for path in ("/usr/lib/wine/wine64", "/usr/bin/wine64") if os.path.exists(path)), None)
CROSS = f"""
[binaries]
c = {[*ccache_before(TOOLS), f"{TOOLS}gcc"]}
cpp = {[*ccache_before(TOOLS), f"{TOOLS}g++"]}
ar = '{TOOLS}ar'
[host_machine]
system = 'windows'
cpu_family = 'x86_64'
cpu = 'x86_64'
endian = 'little'
"""
CMAKE = f"""
cmake_minimum_required(VERSION 3.22)
project(guest C)
set(CUGUEST_ABSEIL OFF)
add_subdirectory({ROOT} cuguest)
add_library(guest_a SHARED guest.c)
target_link_libraries(guest_a PRIVATE cuguest::core)
"""
GUEST = """
#include "cuguest/c.h"
#define EXPORT __declspec(dllexport)
static cuguest_shared_context held;
EXPORT int make(struct CUctx_st** context) {
  cuguest_ref ref = CUGUEST_REF_INIT;
  int code = cuguest_shared_context_create(&held, 0, 0);
  if (code == 0) code = cuguest_shared_context_ref(&held, &ref);
  *context = ref.context;
  return code;
}
EXPORT int take(struct CUctx_st* context) { return cuguest_shared_context_attach(&held, context); }
EXPORT int drop(void) { return cuguest_shared_context_detach(&held); }
"""
TWO_GUESTS = """
#include <stdio.h>
#include <windows.h>
struct CUctx_st;
static void* find(HMODULE library, const char* name) {
  void* const found = (void*)GetProcAddress(library, name);
  if (found == NULL) printf("no %s\\n", name);
  return found;
}
int main(void) {
  HMODULE const driver = LoadLibraryA("nvcuda.dll"), a = LoadLibraryA("libguest_a.dll"), b = LoadLibraryA("libguest_b.dll");
  int (*const init)(unsigned) = find(driver, "cuInit");
  int (*const get_id)(struct CUctx_st*, unsigned long long*) = find(driver, "cuCtxGetId");
  int (*const make)(struct CUctx_st**) = find(a, "make");
  int (*const take)(struct CUctx_st*) = find(b, "take");
  int (*const drop_a)(void) = find(a, "drop");
  int (*const drop_b)(void) = find(b, "drop");
  unsigned long long id;
  struct CUctx_st* context;
  printf("%d ", init(0));
  printf("%d ", make(&context));
  printf("%d ", take(context));
  printf("%d ", drop_a());
  printf("%d ", FreeLibrary(a)); /* the registry is in it */
  printf("%d ", get_id(context, &id));
  printf("%d ", drop_b());
  printf("%d\\n", get_id(context, &id));
  return 0;
}
"""
FINDS = """
#include <stdio.h>
#include "cuguest/c.h"
int main(void) {
  cuguest_primary primary = CUGUEST_INIT(cuguest_primary);
  return printf("%s", cuguest_error_name(cuguest_primary_retain(&primary, 0))) < 0;
}
"""
# Makes the section of its own process first, as another process can, with an address that leads to no registry: 0 nowhere, 1 to
# memory of the heap that says what a registry says.
SQUATTED = """
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>
#include "cuguest/c.h"
int main(int argc, char** argv) {
  char name[64];
  snprintf(name, sizeof(name), "Local\\\\cuguest_registry_%lu", GetCurrentProcessId());
  HANDLE const section = CreateFileMappingA(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, 8, name);
  unsigned long long* const heap = calloc(1, 1 << 16);
  heap[0] = 4;
  unsigned long long* const view = MapViewOfFile(section, FILE_MAP_ALL_ACCESS, 0, 0, 8);
  *view = argc > 1 && *argv[1] == '1' ? (unsigned long long)heap : 0xdead0000;
  cuguest_primary primary = CUGUEST_INIT(cuguest_primary);
  cuguest_ref ref = CUGUEST_REF_INIT;
  cuguest_shared_context shared = CUGUEST_INIT(cuguest_shared_context);
  int code = cuguest_primary_retain(&primary, 0);
  if (code == 0) code = cuguest_primary_ref(&primary, &ref);
  if (code == 0) code = cuguest_shared_context_attach(&shared, ref.context);
  for (int i = 1; i < 1 << 13; ++i) code = heap[i] == 0 ? code : -1;
  return printf("%s", cuguest_error_name(code)) < 0;
}
"""
COUNTED = "0 0 0 0 1 0 0 709"
PLAIN = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-DCUGUEST_STATIC", f"-I{ROOT}/include", f"-I{ROOT}"]

if not shutil.which(f"{TOOLS}g++"):
    skip("no g++-mingw-w64-x86-64")
hidden = hiding()
env = environment(PATH=without_fetched(os.environ["PATH"]))


def in_root(*command, **options):
    """`run` where no toolkit is."""
    return run(*hidden, *command, env=env, **options)


def wine(program, directory, *words):
    """What it prints. To its standard error Wine's own processes write, too, one of which may crash on a busy machine."""
    options = {"WINEPREFIX": str(tmp / "wine"), "WINEDEBUG": "-all", "HOME": str(tmp)}
    result = subprocess.run([WINE, program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=environment(**options), cwd=directory)
    if result.returncode:
        sys.exit(f"{program} failed with {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


with scratch() as tmp:
    header = run("gcc", "-E", "-P", "-U__GNUC__", "-D_WIN32", "-dD", "-x", "c", ROOT / "include/cuguest/c.h")
    header = header[header.index("#define CUGUEST_C_API"):]
    check("without GCC's macro c.h has neither an attribute nor CUGUEST_SCOPE",
          "cuguest_guard_enter" in header and "__attribute__" not in header and "CUGUEST_SCOPE" not in header, header)

    (tmp / "cross.ini").write_text(CROSS)
    build, prefix, programs = tmp / "build", tmp / "prefix", tmp / "programs"
    in_root(*meson, "setup", build, ROOT, f"--cross-file={tmp}/cross.ini", f"--prefix={prefix}", "--libdir=lib", "--buildtype=release",
            "-Dabseil=disabled", "-Dwerror=true")
    in_root("ninja", "-C", build, "-j1")
    in_root(*meson, "install", "-C", build, "--no-rebuild")
    archive = prefix / "lib/libcuguest-core.a"
    check("Meson builds the core without a warning", archive.exists())
    text = (prefix / "lib/pkgconfig/cuguest-core.pc").read_text()
    check("whose pkg-config file has no library of POSIX", "-ldl" not in text and "-pthread" not in text, text)

    programs.mkdir()
    (programs / "guest.c").write_text(GUEST)
    (programs / "two.c").write_text(TWO_GUESTS)
    (programs / "finds.c").write_text(FINDS)
    (programs / "squatted.c").write_text(SQUATTED)
    run(f"{TOOLS}gcc", *PLAIN, ROOT / "test/capi/c_test.c", archive, "-o", programs / "c_test.exe", "-static", "-lpthread")
    # Linked by the C compiler: without the C++ library.
    run(f"{TOOLS}g++", "-std=c++11", "-fno-exceptions", "-fno-rtti", *PLAIN[1:], "-c", ROOT / "test/capi/cxx_test.cc",
        "-o", programs / "cxx_test.o")
    run(f"{TOOLS}gcc", programs / "cxx_test.o", archive, "-o", programs / "cxx_test.exe", "-static")
    run(f"{TOOLS}gcc", *PLAIN, "-shared", "-static-libgcc", programs / "guest.c", archive, "-o", programs / "libguest_b.dll")
    run(f"{TOOLS}gcc", "-w", programs / "two.c", "-o", programs / "two.exe")
    run(f"{TOOLS}gcc", *PLAIN, programs / "finds.c", archive, "-o", programs / "finds.exe", "-static")
    run(f"{TOOLS}gcc", "-w", "-DCUGUEST_STATIC", f"-I{ROOT}/include", programs / "squatted.c", archive, "-o",
        programs / "squatted.exe", "-static")
    run(f"{TOOLS}gcc", "-std=c99", "-Wall", "-Werror", "-shared", "-static-libgcc", ROOT / "test/capi/fake_driver.c",
        "-o", programs / "nvcuda.dll")
    check("its tests compile as C99 and as C++11", True)
    names = run(f"{TOOLS}objdump", "-p", programs / "libguest_b.dll")
    needed = sorted(line.split(":")[1].strip() for line in names.splitlines() if "DLL Name:" in line)
    check("a library with the core in it needs Windows and the C library alone", needed == ["KERNEL32.dll", "msvcrt.dll"], needed)

    two_files = programs / "two_files"
    run(sys.executable, ROOT / "packaging/two_files", two_files)
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", "-DCUGUEST_NO_TOOLKIT"]
    plain = ["-fno-exceptions", "-fno-rtti"]
    for standard, flags in itertools.product(("c++17", "c++20", "c++23"), ([], plain)):
        in_root(f"{TOOLS}g++", f"-std={standard}", *strict, *flags, "-fsyntax-only", two_files / "cuguest_core.cc")
    check("the two files compile without a warning", True)
    (two_files / "cuguest").mkdir()
    (two_files / "cuguest/c.h").write_text('#include "cuguest_core.h"\n')
    shutil.copy(ROOT / "test/two_files/stranger.cc", two_files)
    in_root(f"{TOOLS}g++", "-std=c++17", "-O2", *strict, *plain, "-c", "cuguest_core.cc", "stranger.cc", cwd=two_files)
    run(f"{TOOLS}g++", two_files / "cuguest_core.o", two_files / "stranger.o", "-o", programs / "stranger.exe", "-static")
    run(f"{TOOLS}gcc", f"-I{two_files}", *PLAIN, ROOT / "test/capi/c_test.c", two_files / "cuguest_core.o", "-o",
        programs / "two_files.exe", "-static", "-lpthread")

    if shutil.which("cmake"):
        (programs / "CMakeLists.txt").write_text(CMAKE)
        in_root("cmake", "-G", "Ninja", "-S", programs, "-B", tmp / "cmake", "-DCMAKE_SYSTEM_NAME=Windows",
                f"-DCMAKE_C_COMPILER={TOOLS}gcc", f"-DCMAKE_CXX_COMPILER={TOOLS}g++", "-DCMAKE_CXX_FLAGS=-Werror",
                "-DCMAKE_SHARED_LINKER_FLAGS=-static-libgcc",
                *(f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}" for launcher in ccache_before(TOOLS)))
        in_root("cmake", "--build", tmp / "cmake", "-j1")
        check("CMake builds the core into a library in C", (tmp / "cmake/libguest_a.dll").exists())
        shutil.copy(tmp / "cmake/libguest_a.dll", programs)
    else:
        shutil.copy(programs / "libguest_b.dll", programs / "libguest_a.dll")

    if not WINE:
        print("skipped: what runs the tests: no wine64")
        done(skipped=3)
    # Beside the program, where Windows looks first, unless it is told not to.
    output = wine("finds.exe", programs)
    check("a driver beside the program is none", output.endswith("CUDA_ERROR_SHARED_OBJECT_INIT_FAILED"), output)
    system = tmp / "wine/drive_c/windows/system32"
    shutil.move(programs / "nvcuda.dll", system / "nvcuda.dll")
    output = wine("finds.exe", programs)
    check("one of the system's directory is found", output == "CUDA_SUCCESS", output)
    for what, word in (("nowhere", "0"), ("to other memory", "1")):
        output = wine("squatted.exe", programs, word)
        check(f"a section that another process made, and that leads {what}, is not followed", output == "CUDA_SUCCESS", output)
    output = wine("stranger.exe", programs).strip()
    check("a program with the two files guards", output == "guarded", output)
    for program in ("c_test.exe", "cxx_test.exe", "two_files.exe"):
        output = wine(program, programs)
        print("   ", output.splitlines()[-1])
        check(f"{program} passes under Wine", " 0 failed, 0 skipped" in output and "cases: 0 passed" not in output, output)
    output = wine("two.exe", programs).strip()
    check("two copies count a shared context together, also when the first one is unloaded", output == COUNTED, output)
    subprocess.run([os.path.join(os.path.dirname(WINE), "wineserver64"), "-k"], env=environment(WINEPREFIX=str(tmp / "wine")))
    done()

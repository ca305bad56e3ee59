#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""no_toolkit_test.py COMPILER SIMDIR MESON...

Where no CUDA Toolkit is, the core and the tests of its C API are built by Meson, by CMake and by the commands of
docs/install.md, and pass on the simulation, and for aarch64 in an emulator on a driver in C; embedders in C take it from each. No file of a toolkit is read. A cuda.h
of another project is told as such, and is not read either.
"""

import os
import re
import shutil
import subprocess

from common import (ROOT, check, cmake_environment, done, environment, hiding, meson_environment, needed, run, scratch,
                    skip, sys, without_fetched)

compiler, simdir, *meson = sys.argv[1:]
hidden = hiding()
PATH = {"PATH": without_fetched(os.environ["PATH"])}
CROSS = "aarch64-linux-gnu-"
OURS = str(ROOT / "lib" / "no_toolkit" / "cuda.h")
FOREIGN = "typedef struct CUctx_st* CUcontext;\n#error another project's\n"
GUEST = """
#include "cuguest/c.h"
int guarded(struct CUctx_st* context) {
  CUGUEST_SCOPE(cuguest_guard, guard);
  return cuguest_guard_enter(&guard, context, CUGUEST_ELIDE, CUGUEST_HERE);
}
"""
IN_C = """
cmake_minimum_required(VERSION 3.22)
project(guest C)
%s
add_library(guest SHARED guest.c)
target_link_libraries(guest PRIVATE cuguest::core)
"""
TAKEN = {"as sources": f"set(CUGUEST_ABSEIL OFF)\nadd_subdirectory({ROOT} cuguest)",
         "installed": "find_package(cuguest 0.3 REQUIRED COMPONENTS core)"}


def in_root(*command, **options):
    """`run` where no toolkit is."""
    return run(*hidden, *command, **options)


def fails(*command, env):
    result = subprocess.run([*hidden, *map(str, command)], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return result.stdout if result.returncode else f"SUCCEEDED: {result.stdout}"


def check_reads_no_toolkit(what, depends):
    files = {os.path.realpath(os.path.join(build, name)) for name in re.findall(r"\S+\.h\b", depends)}
    strangers = {name for name in files if re.match(r"(cuda|cuviddec|crt/|nv).*\.h$", os.path.basename(name))} - {OURS}
    strangers |= {name for name in files if "/cuda" in name.replace(str(ROOT), "")} - {OURS}
    check(f"{what} reads our declarations, and no file of a toolkit", OURS in files and not strangers, sorted(strangers))


def check_c_tests(what, archive, cc="cc", emulator=()):
    program = tmp / f"c_test_{what.replace(' ', '_')}"
    in_root(cc, "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-DCUGUEST_STATIC", f"-I{ROOT}/include", f"-I{ROOT}",
            ROOT / "test/capi/c_test.c", archive, "-o", program, "-ldl", "-pthread")
    output = run(*emulator, program, env=environment(LD_LIBRARY_PATH=simdir))
    check(f"the tests of the C API pass with the core {what}", " passed, 0 failed, 0 skipped" in output, output)


with scratch() as tmp:
    env = meson_environment(compiler, **PATH)
    visible = subprocess.run([*hidden, compiler, "-E", "-x", "c++", "-"], input="#include <cuda.h>\n", text=True,
                             capture_output=True, env=env)
    if visible.returncode == 0:
        skip("a cuda.h is in the compiler's own path")

    prefix, build = tmp / "prefix", tmp / "build"
    setup = [*meson, "setup", f"--prefix={prefix}", "--libdir=lib", "--buildtype=release"]
    log = fails(*setup, tmp / "whole", ROOT, env=env)
    check("without -Dabseil=disabled, Meson says what to do", "the CUDA Toolkit was not found: no cuda.h of CUDA 12.0 or newer" in log
          and "-Dabseil=disabled, needs none" in log, log)
    log = in_root(*setup, build, ROOT, "-Dabseil=disabled", env=env)
    in_root("ninja", "-C", build, "-j1", env=env)
    check_reads_no_toolkit("Meson's build", run("ninja", "-C", build, "-t", "deps"))
    in_root(*meson, "install", "-C", build, "--no-rebuild", env=env)
    check_c_tests("by Meson", prefix / "lib/libcuguest-core.a")

    (tmp / "guest.c").write_text(GUEST)
    env = cmake_environment(compiler, CXXFLAGS="-Wall -Wextra -Werror", **PATH)
    for what, lines in TAKEN.items() if shutil.which("cmake") else ():
        project = tmp / what.replace(" ", "_")
        project.mkdir()
        shutil.copy(tmp / "guest.c", project)
        (project / "CMakeLists.txt").write_text(IN_C % lines)
        build = project / "build"
        configure = ["cmake", "-G", "Ninja", "-S", project, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}"]
        in_root(*configure, env=env)
        in_root("cmake", "--build", build, "-j1", env=env)
        check(f"an embedder in C takes it {what}, by CMake", not any("cuda" in name for name in needed(build / "libguest.so")))
        if what == "as sources":
            check_reads_no_toolkit("CMake's build", run("ninja", "-C", build, "-t", "deps"))
            check_c_tests("by CMake", build / "cuguest/libcuguest-core.a")
            log = fails("cmake", "-S", ROOT, "-B", tmp / "cmake_whole", env=env)
            check("with Abseil, CMake says what to do", "the CUDA Toolkit was not found: no cuda.h of CUDA 12.0 or newer" in " ".join(log.split())
                  and "CUGUEST_ABSEIL=OFF, needs none" in " ".join(log.split()), log)

    build = tmp / "plain"
    build.mkdir()
    (build / "cuguest").symlink_to(ROOT)
    page = (ROOT / "docs/install.md").read_text()
    commands = re.search(r"## Without a toolkit\n.*?```console\n(.*?)```", page, re.S)[1].replace("$ ", "")
    in_root("bash", "-euc", commands, env=environment(**PATH), cwd=build)
    depends = in_root("bash", "-euc", commands.replace(" -c ", " -M ").split("\n")[0], env=environment(**PATH), cwd=build)
    check_reads_no_toolkit("the commands of docs/install.md", depends)
    check_c_tests("by a compiler's command", build / "libcuguest-core.a")

    emulator = shutil.which("qemu-aarch64-static")
    if emulator and shutil.which(f"{CROSS}g++"):
        build = tmp / "aarch64"
        build.mkdir()
        (build / "cuguest").symlink_to(ROOT)
        in_root("bash", "-euc", re.sub(r"^(?=g\+\+|ar)", CROSS, commands, flags=re.M), env=environment(**PATH), cwd=build)
        in_root(f"{CROSS}gcc", "-shared", "-fPIC", ROOT / "test/capi/fake_driver.c", "-o", build / "libcuda.so.1")
        check_c_tests("for aarch64", build / "libcuguest-core.a", f"{CROSS}gcc",
                      [emulator, "-L", "/usr/aarch64-linux-gnu", "-E", f"LD_LIBRARY_PATH={build}"])

    foreign = tmp / "foreign"
    foreign.mkdir()
    (foreign / "cuda.h").write_text(FOREIGN)
    said = f"{foreign}/cuda.h is another project's, without CUDA_VERSION"
    env = meson_environment(compiler, **PATH)
    log = fails(*setup, tmp / "foreign_whole", ROOT, f"-Dcpp_args=-I{foreign}", env=env)
    check("Meson says that a cuda.h is another project's", said in log, log)
    log = fails(*setup, tmp / "foreign_named", ROOT, "-Dabseil=disabled", f"-Dtoolkit_include={foreign}", env=env)
    check("also where it was told to take it", said in log, log)
    build = tmp / "foreign_core"
    log = in_root(*setup, build, ROOT, "-Dabseil=disabled", f"-Dcpp_args=-I{foreign}", env=env)
    in_root("ninja", "-C", build, "-j1", env=env)
    check("and builds the core without it", said in log, log)
    if shutil.which("cmake"):
        env = cmake_environment(compiler, CXXFLAGS=f"-I{foreign}", **PATH)
        at = f"-Dcuguest_TOOLKIT_INCLUDE={foreign}"
        log = " ".join(fails("cmake", "-S", ROOT, "-B", tmp / "foreign_cmake", at, env=env).split())
        check("CMake says so, too", said in log, log)
        build = tmp / "foreign_cmake_core"
        log = in_root("cmake", "-G", "Ninja", "-S", tmp / "as_sources", "-B", build, env=env)
        in_root("cmake", "--build", build, "-j1", env=env)
        check("and builds the core without it", said in log, log)
    done()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""core_alone_test.py COMPILER TOOLKIT_INCLUDE MESON...

-Dabseil=disabled builds and installs cuguest-core and its headers, and asks for no Abseil; embedders take it from
there by pkg-config and by CMake, and its sources by CMake's add_subdirectory().
"""

import re
import shutil

from common import (ROOT, check, done, environment, files_below, needed, run, scratch, sys)

compiler, toolkit, *meson = sys.argv[1:]
GUEST = """
#include "cuguest/context_guard.h"
extern "C" [[gnu::visibility("default")]] int Guarded(CUcontext context) {
  cuguest::ContextGuard guard(context);
  return guard.result();
}
"""
FLAGS = ["-std=c++17", "-fPIC", "-fno-exceptions", "-fno-rtti", "-Wall", "-Wextra", "-Werror"]
PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(guest CXX)
%s
add_library(guest SHARED guest.cc)
target_link_libraries(guest PRIVATE cuguest::core)
"""
TAKEN = {
    "installed": "find_package(cuguest 0.2 REQUIRED COMPONENTS core)",
    "as sources": f"set(CUGUEST_ABSEIL OFF)\nadd_subdirectory({ROOT} cuguest)",
}


def check_guest(what, library):
    names = run("nm", "-DC", "--defined-only", library)
    check(f"a guest of the core {what} exports only its own", "Guarded" in names and "cuguest" not in names, names)
    check("and needs no libstdc++ of ours", not re.search(" U .*(std::|operator new|absl)", run("nm", "-DC", library)))


with scratch() as tmp:
    prefix = tmp / "prefix"
    log = run(*meson, "setup", tmp / "build", ROOT, f"--prefix={prefix}", "--libdir=lib", "--buildtype=release",
              "-Dabseil=disabled", f"-Dtoolkit_include={toolkit}", env=environment(CXX=compiler))
    asked = [line for line in log.splitlines() if "absl" in line and "skipped:" not in line]
    check("configures without asking for Abseil", not asked, asked)
    run("ninja", "-C", tmp / "build", "-j1")
    run(*meson, "install", "-C", tmp / "build", "--no-rebuild")
    installed = files_below(prefix)
    libraries = [name for name in installed if name.endswith((".a", ".so"))]
    check("installs the archive, and no other library", libraries == ["lib/libcuguest-core.a"], installed)
    headers = [name for name in installed if name.endswith(".h")]
    text = (ROOT / "include" / "meson.build").read_text()
    core = re.findall(r"'(cuguest/\S+\.h)'", text[text.index("core_headers = "):text.index("public_headers = ")])
    check("and its headers alone", headers == sorted(f"include/{name}" for name in core), headers)

    (tmp / "guest.cc").write_text(GUEST)
    env = environment(PKG_CONFIG_PATH=str(prefix / "lib" / "pkgconfig"))
    flags = run("pkg-config", "--cflags", "--libs", "cuguest-core", env=env).split()
    cflags = [word for word in flags if word.startswith(("-I", "-isystem", "-D"))]
    run(compiler, *FLAGS, *cflags, "-c", tmp / "guest.cc", "-o", tmp / "guest.o")
    run("cc", "-shared", "-Wl,-z,defs", tmp / "guest.o", "-o", tmp / "libguest.so", *flags)
    check_guest("by pkg-config", tmp / "libguest.so")
    check("which the C compiler's driver links", not any("stdc++" in name for name in needed(tmp / "libguest.so")))
    for what, lines in TAKEN.items() if shutil.which("cmake") else ():
        project = tmp / what.replace(" ", "_")
        project.mkdir()
        shutil.copy(tmp / "guest.cc", project)
        (project / "CMakeLists.txt").write_text(PROJECT % lines)
        hints = [f"-Dcuguest_TOOLKIT_INCLUDE={toolkit}"] if toolkit else []
        env = environment(CXX=compiler, CXXFLAGS=" ".join(FLAGS[2:]))
        log = run("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
                  "-DCMAKE_DISABLE_FIND_PACKAGE_absl=ON", *hints, env=env)
        run("cmake", "--build", project / "build", "-j1", env=env)
        check_guest(f"{what}, by CMake", project / "build" / "libguest.so")
    done()

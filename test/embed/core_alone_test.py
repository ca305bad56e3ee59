#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""core_alone_test.py COMPILER TOOLKIT_INCLUDE MESON...

-Dabseil=disabled builds and installs cuguest-core and its headers, and asks for no Abseil; embedders take it from
there by pkg-config and by CMake, and its sources by CMake's add_subdirectory(): those of C alone, too, and those that
are exported themselves.
"""

import re
import shutil

from common import (ROOT, check, cmake_environment, done, environment, files_below, meson_environment, needed, run, scratch, sys,
                    toolkit_flags, toolkit_options, visible)

compiler, toolkit, *meson = sys.argv[1:]
GUEST = """
#include "cuguest/acquired_guard.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
extern "C" [[gnu::visibility("default")]] int Guarded(CUcontext context) {
  const cuguest::SharedContext shared = cuguest::SharedContext::Attach(context);
  if (!shared.ok()) return shared.error().code;
  cuguest::ContextGuard guard(shared);
  return guard.result();
}
extern "C" [[gnu::visibility("default")]] int GuardedOn(int device, char* text, unsigned size) {
  const cuguest::PrimaryContext primary = cuguest::PrimaryContext::Retain(cuguest::Device::Borrow(device));
  const cuguest::AcquiredGuard guard(primary.device());
  guard.error().Write(text, size);
  return guard.error().code;
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
    "installed": "find_package(cuguest 0.3 REQUIRED COMPONENTS core)",
    "as sources": f"set(CUGUEST_ABSEIL OFF)\nadd_subdirectory({ROOT} cuguest)",
}

WRITES_PKG_CONFIG = """
project('guest', 'cpp', default_options: ['cpp_std=c++17'])
core = dependency('cuguest-core', fallback: 'cuguest')
simdir = dependency('cudasim').get_variable('simdir')
guest = library('guest', 'guest.cc', dependencies: core, install: true)
import('pkgconfig').generate(guest, description: 'A guest')
"""
GUEST_IN_C = """
#include "cuguest/c.h"
__attribute__((visibility("default"))) int Guarded(struct CUctx_st* context) {
  CUGUEST_SCOPE(cuguest_guard, guard);
  return cuguest_guard_enter(&guard, context, CUGUEST_ELIDE, CUGUEST_HERE);
}
"""
PROJECT_IN_C = PROJECT.replace("CXX", "C").replace("guest.cc", "guest.c") % TAKEN["as sources"] + """
add_executable(tested EXCLUDE_FROM_ALL guest.c)
target_link_libraries(tested PRIVATE cuguest::testing)
"""
EXPORTED = PROJECT % TAKEN["as sources"].replace("set(CUGUEST_ABSEIL OFF)", "") + """
install(TARGETS guest EXPORT guest-config ARCHIVE DESTINATION lib LIBRARY DESTINATION lib)
install(EXPORT guest-config NAMESPACE guest:: DESTINATION lib/cmake/guest)
export(EXPORT guest-config NAMESPACE guest:: FILE ${CMAKE_BINARY_DIR}/guest-config.cmake)
"""
USER = """
cmake_minimum_required(VERSION 3.22)
project(user CXX)
%s
add_executable(user user.cc)
target_link_libraries(user guest::guest)
"""


def check_guest(what, library):
    names = run("nm", "-DC", "--defined-only", library)
    check(f"a guest of the core {what} exports only its own", "Guarded" in names and "cuguest" not in names, names)
    check("and needs no libstdc++ of ours", not re.search(" U .*(std::|operator new|absl)", run("nm", "-DC", library)))


with scratch() as tmp:
    prefix = tmp / "prefix"
    log = run(*meson, "setup", tmp / "build", ROOT, f"--prefix={prefix}", "--libdir=lib", "--buildtype=release",
              "-Dabseil=disabled", *toolkit_options(toolkit, "toolkit_include"), env=meson_environment(compiler))
    asked = [line for line in log.splitlines() if "absl" in line and "skipped:" not in line]
    check("configures without asking for Abseil", not asked, asked)
    run("ninja", "-C", tmp / "build", "-j1")
    run(*meson, "install", "-C", tmp / "build", "--no-rebuild")
    installed = files_below(prefix)
    libraries = [name for name in installed if name.endswith((".a", ".so"))]
    check("installs the archive, and no other library", libraries == ["lib/libcuguest-core.a"], installed)
    headers = [name for name in installed if name.endswith(".h")]
    text = (ROOT / "include" / "meson.build").read_text()
    core = re.findall(r"'(cuguest/\S+\.h)'", text[text.index("core_headers = "):text.index("heart_headers = ")])
    check("and its headers alone", headers == sorted(f"include/{name}" for name in core), headers)

    (tmp / "guest.cc").write_text(GUEST)
    env = environment(PKG_CONFIG_PATH=str(prefix / "lib" / "pkgconfig"))
    flags = run("pkg-config", "--cflags", "--libs", "cuguest-core", env=env).split()
    cflags = [word for word in flags if word.startswith(("-I", "-isystem", "-D"))]
    check("which has no flag for the linker", not any(word.startswith("-Wl,") for word in flags), flags)
    strangers = visible(prefix / "lib" / "libcuguest-core.a")
    check("and needs none: the archive has no visible symbol", not strangers, strangers)
    run(compiler, *FLAGS, *cflags, *toolkit_flags(toolkit), "-c", tmp / "guest.cc", "-o", tmp / "guest.o")
    run("cc", "-shared", "-Wl,-z,defs", tmp / "guest.o", "-o", tmp / "libguest.so", *flags)
    check_guest("by pkg-config", tmp / "libguest.so")
    check("which the C compiler's driver links", not any("stdc++" in name for name in needed(tmp / "libguest.so")))
    # An embedder that writes a pkg-config file of its own.
    written = tmp / "written"
    (written / "subprojects").mkdir(parents=True)
    (written / "subprojects" / "cuguest").symlink_to(ROOT)
    (written / "meson.build").write_text(WRITES_PKG_CONFIG)
    shutil.copy(tmp / "guest.cc", written)
    for kind in ("shared", "static"):
        run(*meson, "setup", written / kind, written, f"-Ddefault_library={kind}", "--buildtype=release",
            "-Dcuguest:default_library=static", "-Dcuguest:abseil=disabled", *toolkit_options(toolkit, "cuguest:toolkit_include"),
            env=meson_environment(compiler))
        file = (written / kind / "meson-private" / "guest.pc").read_text()
        check(f"the pkg-config file of a {kind} embedder has none of ours", "-Wl," not in file and "cuguest" not in file, file)

    if not shutil.which("cmake"):
        done()
    # Each project compiles the core in the same way. What is precompiled would be another in each, to ccache.
    hints = [*toolkit_options(toolkit, "cuguest_TOOLKIT_INCLUDE"), "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON"]
    env = cmake_environment(compiler, CXXFLAGS=" ".join(FLAGS[2:]))
    for what, lines in TAKEN.items():
        project = tmp / what.replace(" ", "_")
        project.mkdir()
        shutil.copy(tmp / "guest.cc", project)
        (project / "CMakeLists.txt").write_text(PROJECT % lines)
        run("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
                  "-DCMAKE_DISABLE_FIND_PACKAGE_absl=ON", *hints, env=env)
        run("cmake", "--build", project / "build", "-j1", env=env)
        check_guest(f"{what}, by CMake", project / "build" / "libguest.so")

    project = tmp / "in_c"
    project.mkdir()
    (project / "guest.c").write_text(GUEST_IN_C)
    (project / "CMakeLists.txt").write_text(PROJECT_IN_C)
    run("cmake", "-S", project, "-B", project / "build", *hints, env=env)
    run("cmake", "--build", project / "build", "-j1", env=env)
    check_guest("in a project of C", project / "build" / "libguest.so")
    check("which is linked as C", not any("stdc++" in name for name in needed(project / "build" / "libguest.so")))

    # An embedder that is exported: as an archive, its users need ours.
    user = tmp / "user"
    user.mkdir()
    (user / "user.cc").write_text('extern "C" int Guarded(void*);\nint main() { return Guarded(nullptr) != 0 ? 0 : 1; }\n')
    for kind, part in (("SHARED", "core"), ("STATIC", "core"), ("STATIC", "cuguest")):
        project = tmp / f"exported_{kind}_{part}"
        project.mkdir()
        shutil.copy(tmp / "guest.cc", project)
        text = EXPORTED.replace("SHARED", kind).replace("cuguest::core", f"cuguest::{part}")
        (project / "CMakeLists.txt").write_text(text)
        build, prefix = project / "build", project / "prefix"
        absl = "ON" if part == "cuguest" else "OFF"
        run("cmake", "-S", project, "-B", build, *hints, f"-DCUGUEST_ABSEIL={absl}", env=env)
        check(f"an embedder that is {kind}, and exported with cuguest::{part}, configures", True)
        if part == "cuguest":
            continue
        run("cmake", "--build", build, "-j1", "--target", "guest", env=env)
        run("cmake", "--install", build, "--prefix", prefix)
        files = [name for name in files_below(prefix) if "cuguest" in name]
        check("installs nothing of ours", not files, files)
        packages = ["guest"]
        if kind == "STATIC":
            run("cmake", "--install", build, "--prefix", prefix, "--component", "cuguest")
            packages.insert(0, "cuguest")
        (user / "CMakeLists.txt").write_text(USER % "\n".join(f"find_package({name} REQUIRED)" for name in packages))
        for where, places in {
                "installed": [f"-DCMAKE_PREFIX_PATH={prefix}"],
                "built": [f"-Dguest_DIR={build}", f"-Dcuguest_DIR={build}/cuguest"]}.items():
            output = user / f"{kind}_{where}"
            run("cmake", "-S", user, "-B", output, *places, env=env)
            run("cmake", "--build", output, "-j1", env=env)
            run(output / "user")
            check(f"and is found where it is {where}", True)
    done()

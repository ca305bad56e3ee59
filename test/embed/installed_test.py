#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""installed_test.py static|shared COMPILER TOOLKIT_INCLUDE MESON...

cuguest installed to a prefix, and used from there by builds that are not Meson: by a
compiler with what pkg-config says, and by CMake.
"""

import json
import re
import shutil
import sys

from common import (HERE, ROOT, TOGETHER, check, check_exports_only_ours, check_links_no_cuda,
                    check_runs_without_driver, cmake_environment, done, environment, meson_environment, run, scratch)

kind, compiler, toolkit, *meson = sys.argv[1:]
PARENT = HERE / "parent"
# Once without them, as where Eigen is missing.
SIM_LIBRARIES = {"shared": "auto", "static": "disabled"}
SUFFIX = "embed_test"


def install(build, prefix):
    """The directory of the installed libraries."""
    env = meson_environment(compiler)
    # The static one with headers outside of the prefix, a namespace of its own, and no auditor.
    other = {"shared": TOGETHER,
             "static": [f"--includedir={prefix}-headers", f"-Dnamespace_suffix={SUFFIX}", "-Daudit=disabled"]}[kind]
    run(*meson, "setup", build, ROOT, f"--prefix={prefix}", *other, f"-Ddefault_library={kind}", "--buildtype=plain",
        f"-Dtoolkit_include={toolkit}", "-Dtests=enabled", "-Dexamples=disabled", "-Dkernels=disabled",
        "-Dbenchmarks=disabled", f"-Dsim_libraries={SIM_LIBRARIES[kind]}", env=env)
    # Of the tests only cuguest-testing and the simulation are wanted.
    targets = json.loads(run(*meson, "introspect", "--targets", build))
    files = [f for t in targets if t["installed"] for f in t["filename"]]
    run("ninja", "-C", build, "-j1", *(f.removeprefix(f"{build}/") for f in files), env=env)
    run(*meson, "install", "-C", build, "--no-rebuild", env=env)
    return next(prefix.rglob("cuguest.pc")).parent.parent


def build_with_pkg_config(prefix, libdir, out):
    """The simulation's directory."""
    env = environment(CXX=compiler, PKG_CONFIG_PATH=str(libdir / "pkgconfig"), LD_LIBRARY_PATH=f"{libdir}:{out}")
    static = ["--static"] if kind == "static" else []

    def flags(name):
        return run("pkg-config", "--cflags", "--libs", *static, name, env=env).split()

    check("-DCUGUEST_STATIC comes with the static library only",
          ("-DCUGUEST_STATIC" in flags("cuguest")) == (kind == "static"), flags("cuguest"))
    common = [compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror"]
    run(*common, "-fPIC", "-shared", "-fvisibility=hidden", PARENT / "picture.cc",
        "-o", out / "libpicture.so", *flags("cuguest"), env=env)
    run(*common, PARENT / "viewer.cc", "-o", out / "viewer", f"-L{out}", "-lpicture", env=env)
    run(*common, HERE / "consumer" / "simulated.cc", "-o", out / "simulated",
        *flags("cuguest-testing"), env=env)
    run(*common, "-fsyntax-only", HERE / "consumer" / "versions.cc", *flags("cuguest-runtime"), env=env)
    return run("pkg-config", "--variable=simdir", "cuguest-testing", env=env).strip()


def build_with_cmake(prefix, libdir, out):
    """The simulation's directory."""
    env = cmake_environment(compiler)
    run("cmake", "-S", HERE / "consumer", "-B", out, f"-DPARENT={PARENT}",
        f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_CXX_STANDARD=17",
        *([f"-Dcuguest_TOOLKIT_INCLUDE={toolkit}"] if toolkit else []), env=env)
    found = (out / "CMakeCache.txt").read_text()
    check("CMake found this one", f"cuguest_DIR:PATH={prefix}/" in found, found)
    run("cmake", "--build", out, "-j1", env=env)
    return (out / "simdir").read_text()


BUILDS = {"pkg-config": build_with_pkg_config, "cmake": build_with_cmake}
tools = [tool for tool in BUILDS if shutil.which(tool)]
for tool in BUILDS.keys() - set(tools):
    print(f"skipped: {tool}: not installed")
if not tools:
    print(f"cases: 0 passed, 0 failed, {len(BUILDS)} skipped")
    sys.exit(77)

with scratch() as tmp:
    prefix = tmp / "prefix"
    libdir = install(tmp / "build", prefix)
    if kind == "shared":
        check_exports_only_ours(libdir / "libcuguest.so")
        soname = re.search(r"soname: \[(.*)\]", run("readelf", "-d", libdir / "libcuguest.so"))[1]
        check("each 0.x has a soname of its own", soname == "libcuguest.so.0.3", soname)
    else:
        names = run("nm", "-C", libdir / "libcuguest.a")
        check("the namespace has the suffix", f"_{SUFFIX}::ContextRef::" in names)
        sections = run("readelf", "-SW", libdir / "libcuguest.a")
        check("each function is a section", ".text._ZN" in sections and "CopyElements" in sections)
    for tool in tools:
        out = tmp / tool
        out.mkdir()
        if tool == "cmake" and kind == "shared":  # as /lib is linked to /usr/lib
            (tmp / "linked").mkdir()
            (tmp / "linked" / "lib").symlink_to(prefix / "lib")
            simdir = BUILDS[tool](tmp / "linked", libdir, out)
        else:
            simdir = BUILDS[tool](prefix, libdir, out)
        check(f"builds with {compiler} through {tool}", True)
        binaries = [out / "libpicture.so", out / "viewer"]
        check_links_no_cuda(*binaries, *([libdir / "libcuguest.so"] if kind == "shared" else []))
        check_runs_without_driver(out / "viewer", LD_LIBRARY_PATH=f"{libdir}:{out}")
        run(out / "simulated", *(["unaudited"] if kind == "static" else []), env=environment(LD_LIBRARY_PATH=f"{simdir}:{libdir}"))
        check("a test linked with cuguest-testing runs on the installed simulation", True)
    done()

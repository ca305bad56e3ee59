#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""installed_test.py static|shared COMPILER TOOLKIT_INCLUDE MESON...

cuguest installed to a prefix, part by part, and used from there by builds that are not Meson: by a compiler with what
pkg-config says, and by CMake. The prefix of the shared one is moved first.
"""

import json
import os
import pathlib
import re
import shutil
import sys

from common import (HERE, ROOT, TOGETHER, build_viewer, check, check_exports_only_ours, check_links_no_cuda, check_runs_without_driver,
                    cmake_environment, done, environment, files_below, meson_environment, run, scratch, toolkit_flags, toolkit_options)

kind, compiler, toolkit, *meson = sys.argv[1:]
PARENT = HERE / "parent"
# Once without them, as where Eigen is missing.
SIM_LIBRARIES = {"shared": "auto", "static": "disabled"}
SUFFIX = "embed_test"
# In an order in which each needs only those before it, and the pkg-config files that each brings.
PARTS = {"core": ["cuguest-core"], "runtime": [], "library": ["cuguest"], "objects": ["cuguest-objects"],
         "bridge": ["cuguest-runtime"], "libraries": ["cuguest-libraries"], "testing": ["cuguest-testing"], "tools": []}
NOTHING = {"shared": [], "static": ["runtime", "tools"]}  # of a build of this kind
# What each part is enough for, with those before it.
GUESTS = {
    "core": """
#include "cuguest/context_guard.h"
extern "C" int Call(CUcontext context) { return cuguest::ContextGuard(context).result(); }
""",
    "library": """
#include "cuguest/driver.h"
extern "C" bool Call() { return cuguest::Driver::GetInitialized().ok(); }
""",
    "objects": """
#include "cuguest/objects/driver.h"
#include "cuguest/objects/stream.h"
extern "C" bool Call(cuguest::StreamRef* stream) { return stream->Synchronize().ok() && cuguest::ObjectDriver::Get().ok(); }
""",
    "bridge": """
#include "cuguest/runtime/error.h"
extern "C" bool Call(cudaError_t code) { return cuguest::runtime::ToStatus(code, "copy").ok(); }
""",
    "libraries": """
#include "cuguest/libraries/cufft.h"
extern "C" void* Call() { return new cuguest::runtime::CufftPlans; }
""",
}


def install(build, prefix):
    """The directory of the installed libraries."""
    env = meson_environment(compiler)
    # The static one with headers outside of the prefix, a namespace of its own, and no auditor.
    other = {"shared": TOGETHER,
             "static": [f"--includedir={prefix}-headers", f"-Dnamespace_suffix={SUFFIX}", "-Daudit=disabled"]}[kind]
    run(*meson, "setup", build, ROOT, f"--prefix={prefix}", *other, f"-Ddefault_library={kind}", "--buildtype=plain",
        *toolkit_options(toolkit, "toolkit_include"), "-Dtests=enabled", "-Dexamples=disabled", "-Dkernels=disabled",
        "-Dbenchmarks=disabled", f"-Dsim_libraries={SIM_LIBRARIES[kind]}", env=env)
    # Of the tests only cuguest-testing and the simulation are wanted.
    targets = json.loads(run(*meson, "introspect", "--targets", build))
    files = [f for t in targets if t["installed"] for f in t["filename"]]
    run("ninja", "-C", build, "-j1", *(f.removeprefix(f"{build}/") for f in files), env=env)
    install_parts(build, prefix)
    return next(prefix.rglob("cuguest.pc")).parent.parent


def install_parts(build, prefix):
    """What `meson install` installs without --tags, each part usable with those before it alone."""
    parts = {}
    for part, packages in PARTS.items():
        for arguments in (["--destdir", build / part], []):
            run(*meson, "install", "-C", build, "--no-rebuild", "--tags", part, *arguments)
        parts[part] = set(files_below(build / part))
        names = sorted(pathlib.Path(file).stem for file in parts[part] if file.endswith(".pc"))
        check(f"the part {part} has {len(parts[part])} files, and its packages",
              names == packages and bool(parts[part]) != (part in NOTHING[kind]), sorted(parts[part]))
        env = environment(PKG_CONFIG_PATH=os.pathsep.join(str(file.parent) for file in prefix.rglob("*.pc")))
        flags = [run("pkg-config", "--cflags", "--libs", package, env=env).split() for package in packages
                 if shutil.which("pkg-config")]
        if part in GUESTS and flags:
            (build / "guest.cc").write_text(GUESTS[part])
            run(compiler, "-std=c++17", "-fPIC", "-shared", build / "guest.cc", "-o", build / "guest.so", *flags[0],
                *toolkit_flags(toolkit))
            missing = [line for line in run("nm", "-uC", build / "guest.so").splitlines() if "cuguest" in line]
            check(f"a guest of {part} links", kind == "shared" or not missing, missing)
    run(*meson, "install", "-C", build, "--no-rebuild", "--destdir", build / "whole")
    whole = set(files_below(build / "whole"))
    rest = whole - set().union(*parts.values())
    check("which are all that is installed", {pathlib.Path(file).name for file in rest} == {"cudasim.pc"}, rest)
    check("and no file is in two", sum(map(len, parts.values())) == len(whole - rest),
          [file for file in whole if sum(file in part for part in parts.values()) > 1])


def build_with_pkg_config(prefix, libdir, out):
    """The simulation's directory."""
    env = environment(CXX=compiler, PKG_CONFIG_PATH=str(libdir / "pkgconfig"), LD_LIBRARY_PATH=f"{libdir}:{out}")
    static = ["--static"] if kind == "static" else []

    def flags(name):
        return run("pkg-config", "--cflags", "--libs", *static, name, env=env).split()

    told = [file.name for file in prefix.rglob("*.pc") if "-isystem" in file.read_text() or toolkit and toolkit in file.read_text()]
    check("no package says where the toolkit is", not told, told)
    check("-DCUGUEST_STATIC comes with the static library only",
          ("-DCUGUEST_STATIC" in flags("cuguest")) == (kind == "static"), flags("cuguest"))
    common = [compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror", *toolkit_flags(toolkit)]
    build_viewer(common, out, flags("cuguest"), env)
    run(*common, HERE / "consumer" / "simulated.cc", "-o", out / "simulated",
        *flags("cuguest-testing"), env=env)
    run(*common, "-fsyntax-only", HERE / "consumer" / "versions.cc", *flags("cuguest-runtime"), env=env)
    return run("pkg-config", "--variable=simdir", "cuguest-testing", env=env).strip()


def build_with_cmake(prefix, libdir, out):
    """The simulation's directory."""
    env = cmake_environment(compiler)
    run("cmake", "-S", HERE / "consumer", "-B", out, f"-DPARENT={PARENT}",
        f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_CXX_STANDARD=17",
        *toolkit_options(toolkit, "cuguest_TOOLKIT_INCLUDE"), env=env)
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
        prefix = prefix.rename(tmp / "moved")
        libdir = prefix / libdir.relative_to(tmp / "prefix")
        report = run(prefix / "bin" / "cuguest-audit", "--", "true")
        check("the auditor finds its collector where it was moved to", "0 findings" in report, report)
    if kind == "shared":
        check_exports_only_ours(libdir / "libcuguest.so")
        soname = re.search(r"soname: \[(.*)\]", run("readelf", "-d", libdir / "libcuguest.so"))[1]
        check("each 0.x has a soname of its own", soname == "libcuguest.so.0.3", soname)
    else:
        names = run("nm", "-C", libdir / "libcuguest.a")
        check("the namespace has the suffix", f"_{SUFFIX}::ContextRef::" in names)
        sections = run("readelf", "-SW", libdir / "libcuguest-objects.a")
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

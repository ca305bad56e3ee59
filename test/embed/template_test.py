#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""template_test.py Meson|CMake COMPILER TOOLKIT_INCLUDE MESON...

The library of examples/template, copied into an empty directory with cuguest as a subproject of it, is built with Meson
or with CMake, and passes its test on the simulation. It exports the functions that its version script names, and
depends on the libraries that docs/install.md lists for it.
"""

import re
import shutil

from common import (ROOT, check, cmake_environment, done, exported, files_below, meson_environment, run, scratch, skip,
                    sys, toolkit_options)

tool, compiler, toolkit, *meson = sys.argv[1:]
page = re.search(r"^## Abseil\n(.*?)(?=^## |\Z)", (ROOT / "docs" / "install.md").read_text(), re.M | re.S)[1]
SHOWN = re.search(r"^\$ ldd .*\n((?:\S+\n)+)", page, re.M)[1].split()
COUNT, SONAME = re.search(r"(\d+) `libabsl_\*\.so\.(\d+)`", page).groups()


def check_library(how, library):
    check(f"{how}: the library exports its functions and nothing else",
          exported(library) == ["acme_scale", "acme_scale_close", "acme_smooth"], exported(library))
    libraries = [line.split()[0].rsplit("/", 1)[-1] for line in run("ldd", library).splitlines()]
    abseil = [name for name in libraries if name.startswith("libabsl_")]
    strangers = set(libraries) - set(abseil) - set(SHOWN) - {"linux-vdso.so.1", "libatomic.so.1"}
    strangers = {name for name in strangers if not name.startswith("ld-linux")}
    check(f"{how}: it depends on Abseil and on what the page lists", not strangers, libraries)
    if any(name.endswith(f".so.{SONAME}") for name in abseil):
        check(f"{how}: on {COUNT} libraries of Abseil {SONAME}", len(abseil) == int(COUNT), abseil)


def build_with_meson(project, stage):
    # As the commands of the documents have it, so that ccache has one build for all.
    build, env = project / "build", meson_environment(compiler)
    run(*meson, "setup", build, project, "--prefix=/usr", "--libdir=lib", *toolkit_options(toolkit, "cuguest:toolkit_include"), env=env)
    run("ninja", "-C", build, "-j1", env=env)
    print(run(*meson, "test", "-C", build, "--no-rebuild", "-v", env=env))
    run(*meson, "install", "-C", build, "--no-rebuild", "--destdir", stage, env=env)
    installed = files_below(stage)
    check("Meson: installs the library and its header", installed == ["usr/include/scale.h", "usr/lib/libacme_scale.so"],
          installed)
    return build


def build_with_cmake(project):
    if not shutil.which("cmake"):
        skip("no cmake is here")
    build, env = project / "cmake", cmake_environment(compiler)
    run("cmake", "-S", project, "-B", build, *toolkit_options(toolkit, "cuguest_TOOLKIT_INCLUDE"), env=env)
    run("cmake", "--build", build, "-j1", env=env)
    print(run("ctest", "--test-dir", build, "-V", env=env))
    return build


with scratch() as tmp:
    project = tmp / "template"
    shutil.copytree(ROOT / "examples" / "template", project)
    (project / "subprojects").mkdir()
    (project / "subprojects" / "cuguest").symlink_to(ROOT)
    build = build_with_meson(project, tmp / "stage") if tool == "Meson" else build_with_cmake(project)
    check(f"{tool}: the library passes its test on the simulation", True)
    check_library(tool, build / "libacme_scale.so")
    done()

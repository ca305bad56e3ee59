#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""abseil_test.py BUILD_ROOT COMPILER TOOLKIT_INCLUDE MESON...

As subproject_test.py, where no system Abseil is: Abseil is a subproject too, built from its sources, under
the names of the wrap (subprojects/abseil-cpp.wrap) and with its faults: the libraries of strings and of
status do not name those for mutexes, time and stack traces, which they need. cuguest is a static library,
then a shared one. Then the library of examples/template, as docs/install.md says: with Meson, and with CMake's
FetchContent.

It compiles Abseil and cuguest, which takes minutes, so it is skipped unless CUGUEST_TEST_ABSEIL is set: to
a directory that has absl/ in it, or to `debian`, the source package of the distribution, which is then
kept in BUILD_ROOT. For example

  CUGUEST_TEST_ABSEIL=debian meson test -C build --suite abseil
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from common import (HERE, ROOT, TOGETHER, check, check_links_no_cuda, check_runs_without_driver, cmake_environment, done,
                    exported, meson_environment, run, scratch, toolkit_options)

build_root, compiler, toolkit, *meson = sys.argv[1:]
# A library of the wrap: those that it names.
LIBRARIES = {
    "base": [], "numeric": [], "hash": [], "types": [], "profiling": ["base"], "crc": ["base"],
    "strings": ["base", "numeric", "profiling"], "debugging": ["base", "strings"],
    "time": ["base", "numeric", "strings"], "synchronization": ["base", "debugging", "time"],
    "status": ["base", "strings"],
}
NO_PART = re.compile(r"test|benchmark|gentables|print_hash_of|mock|randen_")


def skip(why):
    print(f"skipped: {why}\ncases: 0 passed, 0 failed, 1 skipped")
    sys.exit(77)


def debians():
    """The directory of Debian's source package, by apt with a configuration and lists of its own."""
    apt = pathlib.Path(build_root) / "abseil"
    if not (kept := next(apt.glob("abseil-*/absl"), None)):
        for part in ("lists/partial", "cache/archives/partial"):
            (apt / part).mkdir(parents=True, exist_ok=True)
        # Where this machine gets its packages.
        got = subprocess.run(["apt-get", "indextargets", "--format", "deb-src $(REPO_URI) $(CODENAME) $(COMPONENT)",
                              "Created-By: Packages"], stdout=subprocess.PIPE, text=True)
        (apt / "sources.list").write_text("".join(sorted({line + "\n" for line in got.stdout.splitlines()})))
        options = [f"-oDir::Etc::sourcelist={apt}/sources.list", "-oDir::Etc::sourceparts=-",
                   f"-oDir::State::lists={apt}/lists", f"-oDir::Cache={apt}/cache", "-oAPT::Sandbox::User=root"]
        for command in (["update"], ["source", "--download-only", "abseil"]):
            try:
                got = subprocess.run(["apt-get", *options, *command], cwd=apt, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True, timeout=300)
            except (OSError, subprocess.TimeoutExpired) as error:
                skip(error)
            if got.returncode:
                skip(f"apt-get {command[0]}: {got.stdout.strip().splitlines()[-1:]}")
        shutil.unpack_archive(next(apt.glob("abseil_*.orig.tar.gz")), apt)
        unpacked = next(path for path in apt.glob("*/absl") if path.is_dir()).parent
        kept = unpacked.rename(apt / "abseil-source") / "absl"
    return kept.parent


def write_project(sources, directory):
    directory.mkdir()
    (directory / "absl").symlink_to(sources / "absl")
    lines = ["project('abseil-cpp', 'cpp', default_options: ['cpp_std=c++17'])", "inc = include_directories('.')",
             "threads = dependency('threads')"]
    for name, uses in LIBRARIES.items():
        files = sorted(str(path.relative_to(sources)) for path in (sources / "absl" / name).rglob("*.cc")
                       if not NO_PART.search(path.name))
        if not files:
            continue
        uses = [f"absl_{use}_dep" for use in uses]
        lines += [f"absl_{name}_lib = static_library('absl_{name}', {files}, include_directories: inc,",
                  f"  build_by_default: false, override_options: ['warning_level=0', 'werror=false', 'unity=off'],",
                  f"  dependencies: [threads, {', '.join(uses)}])",
                  f"absl_{name}_dep = declare_dependency(include_directories: inc, link_with: absl_{name}_lib,",
                  f"  dependencies: [threads, {', '.join(uses)}])"]
    (directory / "meson.build").write_text("\n".join(lines) + "\n")


def check_template(how, library):
    libraries = [line.split()[0] for line in run("ldd", library).splitlines()]
    check(f"{how}: the template depends on no library of Abseil", not any("absl" in name for name in libraries), libraries)
    check(f"{how}: and exports its functions and nothing else",
          exported(library) == ["acme_scale", "acme_scale_close", "acme_smooth"], exported(library))


wanted = os.environ.get("CUGUEST_TEST_ABSEIL", "")
if not wanted:
    skip("CUGUEST_TEST_ABSEIL is not set")
sources = debians() if wanted == "debian" else pathlib.Path(wanted).resolve()
wrap = (ROOT / "subprojects" / "abseil-cpp.wrap").read_text()

with scratch() as tmp:
    parent, build = tmp / "parent", tmp / "build"
    shutil.copytree(HERE / "parent", parent)
    (parent / "subprojects").mkdir()
    (parent / "subprojects" / "cuguest").symlink_to(ROOT)
    write_project(sources, parent / "subprojects" / re.search(r"^directory = (.*)", wrap, re.M)[1])
    env = meson_environment(compiler, LDFLAGS="-Wl,-z,defs")
    run(*meson, "setup", build, parent, "--buildtype=plain", "--force-fallback-for=cuguest,abseil-cpp",
        "-Dcuguest:default_library=static", *toolkit_options(toolkit, "cuguest:toolkit_include"), env=env)
    commands = (build / "compile_commands.json").read_text()
    check("Abseil is the subproject", "absl/status/status.cc" in commands)
    binaries = [build / "libpicture.so", build / "viewer"]
    for kind, how in {"static": [], "shared": TOGETHER}.items():
        run(*meson, "configure", build, *how, f"-Dcuguest:default_library={kind}", env=env)
        run("ninja", "-C", build, "-j2", env=env)
        check(f"{kind}: builds with {compiler}, every symbol of every library defined", True)
        check_links_no_cuda(*binaries)
        libraries = [line for binary in binaries for line in run("ldd", binary).splitlines()]
        check("no other Abseil is linked", not any("absl" in line for line in libraries), libraries)
        check(f"cuguest is {kind}", any("libcuguest.so" in line for line in libraries) == (kind == "shared"),
              libraries)
        check_runs_without_driver(build / "viewer")

    # In the place of the parent, so that ccache has what was compiled for that.
    shutil.copytree(ROOT / "examples" / "template", parent, dirs_exist_ok=True)
    build = tmp / "library"
    page = (ROOT / "docs" / "install.md").read_text()
    options = re.search(r"^\$ meson setup build (.*abseil-cpp.*)$", page, re.M)[1].split()
    run(*meson, "setup", build, parent, *options, "--buildtype=plain", *toolkit_options(toolkit, "cuguest:toolkit_include"), env=env)
    run("ninja", "-C", build, "-j2", "libacme_scale.so", env=env)
    check_template("Meson", build / "libacme_scale.so")

    if not shutil.which("cmake"):
        done()
    lines = re.search(r"^```cmake\n(.*?FetchContent_MakeAvailable\(absl\)\n)```", page[page.index("## Abseil"):], re.M | re.S)[1]
    script = parent / "CMakeLists.txt"
    script.write_text(script.read_text().replace("add_subdirectory(", lines + "add_subdirectory(", 1))
    hints = toolkit_options(toolkit, "cuguest_TOOLKIT_INCLUDE")
    run("cmake", "-S", parent, "-B", tmp / "cmake", "-G", "Ninja", f"-DFETCHCONTENT_SOURCE_DIR_ABSL={sources}", *hints,
        env=cmake_environment(compiler))
    run("ninja", "-C", tmp / "cmake", "-j2", "acme_scale")
    check_template("CMake", tmp / "cmake" / "libacme_scale.so")
    done()

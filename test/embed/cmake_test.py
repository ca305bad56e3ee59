#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cmake_test.py COMPILER TOOLKIT_INCLUDE BUILD_ROOT SIMDIR CMAKE...

A parent takes cuguest into its CMake build, without exceptions and RTTI, with more warnings than anybody
asks for, all of them errors, and gets a library that shows nothing of it. What CMake compiles and how is
compared with the Meson build in BUILD_ROOT.
"""

import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "headers"))
from common import (HERE, ROOT, check, check_links_no_cuda, check_runs_without_driver, cmake_environment, done, environment, exported,
                    files_below, run, scratch, toolkit_options, visible)
from flags import compile_commands

compiler, toolkit, meson_build, simdir, *cmake = sys.argv[1:]
FLAGS = ["-fno-exceptions", "-fno-rtti", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
# What Meson gives every C++ file, and what Abseil wants of its users there (-DNOMINMAX, here and there).
NOT_OURS = {"-fpch-preprocess", "-D_FILE_OFFSET_BITS=64",
            "-D_GLIBCXX_ASSERTIONS=1", "-DNDEBUG", "-pthread", "-fdiagnostics-color=always",
            *run("pkg-config", "--cflags", "absl_status", "absl_statusor").split()}


def flags_of_sources(build, outputs):
    """Of each source of a target: its definitions, options of code generation, and directories in the repository."""
    commands = {}
    for source, directory, words in compile_commands(build):
        output = words[words.index("-o") + 1]
        if not re.match(outputs, output) or source.suffix in (".h", ".cxx"):  # a header that is compiled in advance
            continue
        flags = set()
        for at, word in enumerate(words):
            for option in ("-isystem", "-I"):
                if word.startswith(option):
                    place = (directory / (word[len(option):] or words[at + 1])).resolve()
                    if place.is_relative_to(ROOT) and not place.is_relative_to(build):
                        flags.add(f"{option} {place}")
                    break
            else:
                if word.startswith(("-D", "-f", "-std")) and word not in NOT_OURS:
                    flags.add(word)
        commands[source] = flags
    return commands


with scratch() as tmp:
    parent, build, stage = tmp / "parent", tmp / "build", tmp / "stage"
    shutil.copytree(HERE / "parent", parent)
    (parent / "subprojects").mkdir()
    (parent / "subprojects" / "cuguest").symlink_to(ROOT)
    env = cmake_environment(compiler, CXXFLAGS=" ".join(FLAGS))
    common = ["-G", "Ninja", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DCMAKE_INSTALL_PREFIX=/usr", "-DCMAKE_INSTALL_LIBDIR=lib",
              *toolkit_options(toolkit, "cuguest_TOOLKIT_INCLUDE")]
    # What a parent may set for its own targets, and must not reach ours.
    parents = ["-DBUILD_SHARED_LIBS=ON", "-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_CXX_VISIBILITY_PRESET=default"]
    print(run(*cmake, "--version").splitlines()[0])
    log = run(*cmake, "-S", parent, "-B", build, *common, *parents, env=env)
    check("configures without a warning", "Warning" not in log, log)
    for what in ("Eigen", "cublas", "cufft", "Boost", "Python", "benchmark"):
        check(f"asks for no {what}", what.lower() not in (log + (build / "CMakeCache.txt").read_text()).lower(), log)

    by_meson = pathlib.Path(meson_build).resolve()
    for target, by in {
            "cuguest_core": "lib/libcuguest-core.a.p/",
            "(cuguest|cuguest-objects|cuguest-libraries)": "lib/libcuguest_embedded.a.p/",
            "cudasim": "subprojects/cudasim/libcudasim.a.p/",
            "cudasim_image": "subprojects/cudaimage/libcudaimage.a.p/",
            "cudasim_driver": "subprojects/cudasim/sim/lib(cuda.so.1|driver.a|exports.a).p/",
            "cudasim_runtime": "subprojects/cudasim/sim/lib(cudart.so.[0-9]+|sim_cudart_stubs.a).p/"}.items():
        ours, theirs = flags_of_sources(build, f".*/{target}.dir/"), flags_of_sources(by_meson, by)
        check(f"{target}: compiles the {len(theirs)} sources that Meson compiles", ours and ours.keys() == theirs.keys(),
              ours.keys() ^ theirs.keys())
        differ = {str(source): flags for source in ours if (flags := (ours[source] ^ theirs[source]) - set(FLAGS))}
        check(f"{target}: with the same definitions, directories and options", not differ, differ)
    by_cmake = flags_of_sources(build, ".*/cuguest.dir/")

    run(*cmake, "--build", build, "-j1", env=env)
    check(f"builds with {compiler} and {' '.join(FLAGS)}", True)
    run(*cmake, "-S", parent, "-B", tmp / "apart", *common, env=env)
    commands = {c["file"].split("/")[-1]: set(shlex.split(c["command"]))
                for c in json.loads((tmp / "apart" / "compile_commands.json").read_text())}
    extra = {word for word in commands["picture.cc"] - commands["viewer.cc"]
             if not word.startswith(("-I", "-isystem", "/")) and "picture" not in word}
    extra -= {"-fPIC", "-fvisibility=hidden", "-std=gnu++17"}
    check("adds no flag to the parent's files but -DCUGUEST_STATIC", extra == {"-DCUGUEST_STATIC"}, extra)

    picture = build / "libpicture.so"
    exports, own = set(exported(picture)), visible(next(build.rglob("picture.dir/**/*.o")))
    ours = {name for name in exports if "cuguest" in name or "absl" in name}
    check("the parent's library exports only its own symbols", "PictureStatus()" in exports and exports <= own and not ours,
          sorted(ours | (exports - own)))
    check_links_no_cuda(picture, build / "viewer")
    check_runs_without_driver(build / "viewer")
    output = run(build / "viewer", env=environment(LD_LIBRARY_PATH=simdir))
    check("finds the driver where there is one", "driver: OK" in output, output)

    run(*cmake, "--install", build, env=environment(DESTDIR=str(stage)))
    installed = files_below(stage)
    check("installs the parent and nothing of ours", installed == ["usr/bin/viewer", "usr/lib/libpicture.so"], installed)

    # Of 2020-02-25, which has no absl::StatusOr.
    (tmp / "old").mkdir()
    (tmp / "old" / "abslConfig.cmake").write_text("add_library(absl::status INTERFACE IMPORTED)\n")
    old = subprocess.run([*cmake, "-S", parent, "-B", tmp / "with_old", *common, f"-Dabsl_DIR={tmp / 'old'}"], env=env, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check("an Abseil that is too old is told as such", old.returncode and "Abseil 20200923 or newer is needed" in old.stdout,
          old.stdout)

    # Two libraries of one build that both have a copy, with an Abseil that was found before.
    second = parent / "CMakeLists.txt"
    second.write_text(second.read_text().replace(
        "include(FetchContent)", f"find_package(absl REQUIRED)\nadd_subdirectory({ROOT} first EXCLUDE_FROM_ALL)\ninclude(FetchContent)"))
    run(*cmake, "-S", parent, "-B", tmp / "twice", *common, *parents, env=env)
    check("can be added twice", flags_of_sources(tmp / "twice", ".*/cuguest.dir/") == by_cmake)
    run(*cmake, "-S", parent, "-B", tmp / "named", *common, "-DCUGUEST_NAMESPACE_SUFFIX=mine", env=env)
    named = flags_of_sources(tmp / "named", ".*/(cuguest|picture).dir/")
    check("a suffix of the namespace is for all that use the library",
          len(named) == len(by_cmake) + 1 and all("-DCUGUEST_NAMESPACE_SUFFIX=mine" in flags for flags in named.values()), named)
    done()

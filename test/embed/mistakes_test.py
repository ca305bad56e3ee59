#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mistakes_test.py COMPILER MESON...

What somebody may lack who builds cuguest for the first time: each row ends in one sentence that says what is wrong and what
to do, from Meson at the top and as a subproject, from CMake, and from the three projects below alone. toolkit_test.py has
the places of a toolkit, bare_machine_test.py and test/machines/bare_root what the commands of the README say.
"""

import pathlib
import re
import shutil
import subprocess
import sys

from common import ROOT, check, cmake_environment, done, hiding, meson_environment, scratch
from toolkit_ways import CMAKE, HELLO, MESON

compiler, *meson = sys.argv[1:]
hidden = hiding()
OURS = "was not found: "


def put(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file.parent


with scratch() as tmp:
    empty, old, wrong = tmp / "empty", tmp / "old", tmp / "wrong"
    empty.mkdir()
    put(old / "include/cuda.h", "#define CUDA_VERSION 11080\n")
    put(tmp / "12/include/cuda.h", "#define CUDA_VERSION 12040\n")
    foreign = put(tmp / "foreign/cuda.h", "#error another project's\n")
    for name, text in (("meson.build", MESON % ("cuguest", "")), ("CMakeLists.txt", CMAKE % ("", ROOT, "cuguest::cuguest"))):
        put(tmp / "host" / name, text)
    put(tmp / "host/hello.cc", HELLO)
    (tmp / "host/subprojects").mkdir()
    (tmp / "host/subprojects/cuguest").symlink_to(ROOT)
    # A toolkit that has no more than is read before what is wrong is found.
    put(tmp / "13/include/cuda.h", "#define CUDA_VERSION 13000\n")

    cmake = ["cmake", "-S", "{host}", "-B", "{build}"]
    top, host = [*meson, "setup", "{build}", str(ROOT)], [*meson, "setup", "{build}", "{host}"]
    part = {name: [*meson, "setup", "{build}", str(ROOT / "subprojects" / name)] for name in ("cudasim", "cuguest-audit")}
    install = "Install it, or pass -D{}toolkit_include=<the directory of cuda.h>"
    variable = "Install it, or set cuguest_TOOLKIT_INCLUDE to the directory of cuda.h"
    nothing = "no cuda.h of CUDA 12.0 or newer: $CUDAToolkit_ROOT: not set; "
    abseil = "Abseil 20200923 or newer is needed (Debian: libabsl-dev)"
    # What is wrong, the command, options, variables, and what one line says.
    rows = [
        ("no toolkit", top, [], {}, ["the CUDA Toolkit " + OURS + nothing, install.format("")]),
        ("no toolkit", host, [], {}, ["the CUDA Toolkit " + OURS + nothing, install.format("cuguest:"), "-Dcuguest:abseil=disabled"]),
        ("no toolkit", cmake, [], {}, ["the CUDA Toolkit " + OURS + nothing, variable, "CUGUEST_ABSEIL=OFF"]),
        ("no toolkit", part["cudasim"], [], {}, ["no cuda.h of CUDA 13.0 or newer: ", install.format("")]),
        ("no toolkit", part["cuguest-audit"], [], {}, [nothing, install.format("")]),
        ("an old toolkit", host, [], {"CUDA_PATH": old}, [f"$CUDA_PATH: {old}/include/cuda.h is of CUDA 11.8", install.format("cuguest:")]),
        ("an old toolkit", cmake, [], {"CUDA_PATH": old}, [f"$CUDA_PATH: {old}/include/cuda.h is of CUDA 11.8", variable]),
        ("a toolkit that is too old for it", part["cudasim"], [], {"CUDA_PATH": tmp / "12"}, ["is of CUDA 12.4", install.format("")]),
        ("another project's cuda.h", host, [], {"CPATH": foreign}, [f"{foreign}/cuda.h is another project's", install.format("cuguest:")]),
        ("another project's cuda.h", cmake, [], {"CPATH": foreign}, [f"{foreign}/cuda.h is another project's", variable]),
        *((f"another project's cuda.h, {name}", command, [], {"CPATH": foreign},
           [f"{foreign}/cuda.h is another project's", install.format("")]) for name, command in part.items()),
        ("another project's cuda.h before the toolkit's", host, [], {"CPATH": foreign, "CUDA_PATH": tmp / "13"},
         [f"put the cuda.h in {foreign} before that in {tmp}/13/include"]),
        ("an option of nothing", top, [f"-Dtoolkit_include={empty}"], {}, [f"the directory that was asked for: no cuda.h in {empty}"]),
        ("an option of nothing", cmake, [f"-Dcuguest_TOOLKIT_INCLUDE={empty}"], {}, [f"no cuda.h in {empty}", variable]),
        ("an option of nothing, of the core", top, [f"-Dtoolkit_include={empty}", "-Dabseil=disabled"], {}, [f"no cuda.h in {empty}"]),
        ("no Abseil", host, ["--wrap-mode=nodownload"], {"CUDA_PATH": tmp / "13", "PKG_CONFIG_LIBDIR": empty}, [abseil, "-Dcuguest:abseil=disabled"]),
        ("no Abseil", cmake, ["-DCMAKE_DISABLE_FIND_PACKAGE_absl=ON"], {"CUDA_PATH": tmp / "13"}, [abseil, "CUGUEST_ABSEIL=OFF"]),
        ("kernels without nvcc", top, ["-Dkernels=enabled"], {"CUDA_PATH": tmp / "13"}, [f"kernels=enabled needs nvcc; the toolkit of {tmp}/13/include has none"]),
        ("tests with headers of CUDA 12", top, ["-Dtests=enabled"], {"CUDA_PATH": tmp / "12"}, ["need the headers of CUDA 13.0 or newer, not 12.4"]),
    ]
    for number, (what, command, options, variables, said) in enumerate(rows):
        if command is cmake and not shutil.which("cmake"):
            continue
        env = (cmake_environment if command is cmake else meson_environment)(compiler, **{k: str(v) for k, v in variables.items()})
        words = [word.format(build=tmp / f"build-{number}", host=tmp / "host") for word in command]
        result = subprocess.run([*hidden, *words, *options], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        log = result.stdout
        # CMake breaks lines and writes two blanks after a full stop.
        lines = [" ".join(log.split())] if command is cmake else log.splitlines()
        line = next((line for line in lines if all(words in line for words in said)), None)
        ends = result.returncode != 0 and "Traceback" not in log
        check(f"{what}, {'CMake' if command is cmake else pathlib.Path(words[-1]).name}", ends and line, (said, log))

    # What goes on without the simulation says why there is none.
    readme = (ROOT / "README.md").read_text()
    (tmp / "host/meson.build").write_text(re.search(r"^```meson\n(.*?)^```", readme, re.M | re.S)[1])
    no_simulation = "the headers of CUDA 13.0 or newer"
    for what, command, options, root, said in (
            ("headers of CUDA 12", host, [], "12", no_simulation), ("headers of CUDA 12", cmake, [], "12", no_simulation),
            ("tests=disabled", host, ["-Dcuguest:tests=disabled"], "13", "Without cuguest-testing: tests=disabled")):
        env = (cmake_environment if command is cmake else meson_environment)(compiler, CUDA_PATH=str(tmp / root))
        words = [word.format(build=tmp / f"build-{what}-{command[0]}", host=tmp / "host") for word in command]
        result = subprocess.run([*hidden, *words, *options], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        check(f"{what}, {'CMake' if command is cmake else 'README'}: there is no simulation", result.returncode == 0
              and said in result.stdout, result.stdout)
    done()

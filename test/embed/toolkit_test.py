#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""toolkit_test.py COMPILER

The rule of lib/toolkit/find_toolkit, a row for each place: on toolkits that are a cuda.h and an nvcc that says where it is.
"""

import os
import shlex
import subprocess
import sys

from common import ROOT, check, done, environment, hiding, scratch

compiler, = sys.argv[1:]
FIND = ROOT / "lib" / "toolkit" / "find_toolkit"
FOREIGN = "#error another project's\n"
hidden = hiding()


def put(file, text, executable=False):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755 if executable else 0o644)
    return file


def make_toolkit(root, version=13000, include="include", nvcc="bin/nvcc"):
    """A toolkit in the folder `root`: no more of it than the rule reads."""
    put(root / include / "cuda.h", f"#define CUDA_VERSION {version}\n")
    put(root / "lib64" / "libcudart.so", "")
    if nvcc:
        put(root / nvcc, f"#!/bin/sh\necho '#$ TOP={root}/bin/..'\n", executable=True)
    return root


def find(*arguments, minimum=12000, flags=(), path=(), **variables):
    """What the rule prints where only these variables, and these folders of the PATH, know a toolkit."""
    env = environment(PATH=":".join(map(str, [*path, "/usr/bin", "/bin"])), **{k: str(v) for k, v in variables.items()})
    result = subprocess.run([*hidden, "sh", FIND, *map(str, arguments), str(minimum), compiler, *flags], env=env, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return result.returncode, result.stdout.split("\n")


def finds(what, include, own="no", nvcc=None, over="", **call):
    """One row: the directory, the nvcc if one is named, and what was passed over."""
    code, lines = find(*call.pop("arguments", ()), **call)
    right = code == 0 and lines[0] == str(include) and lines[1] == own and over in lines[5]
    right = right and (nvcc is None or lines[3] == str(nvcc)) and bool(lines[5]) == bool(over)
    check(f"{what}: {over or 'found'}", right, (include, own, nvcc, over, code, lines))


def refuses(what, said, **call):
    code, lines = find(*call.pop("arguments", ()), **call)
    check(f"{what}: refused", code == 1 and len(lines) == 2 and all(words in lines[0] for words in said), (said, code, lines))


with scratch() as tmp:
    good, other, third = (make_toolkit(tmp / name) for name in ("good", "other", "a third one"))
    old, foreign, empty = make_toolkit(tmp / "old", 11080), tmp / "foreign", tmp / "empty"
    put(foreign / "include" / "cuda.h", FOREIGN)
    empty.mkdir()
    inc = good / "include"

    # The places, each with what comes after it.
    after = {"CUDAToolkit_ROOT": other, "CUDA_PATH": other, "CUDA_HOME": other, "path": [other / "bin"]}
    finds("the option", inc, arguments=["--only", inc], **after)
    finds("the option, of a toolkit", inc, nvcc=good / "bin/nvcc", arguments=["--only", good], **after)
    finds("what the build around has found", inc, arguments=["--hint", f"CUDAToolkit_INCLUDE_DIRS={inc}"], **after)
    for name in ("CUDAToolkit_ROOT", "CUDA_PATH", "CUDA_HOME"):
        after[name] = good
        finds(f"${name}", inc, nvcc=good / "bin/nvcc", **after)
        del after[name]
    finds("beside an nvcc that is named", inc, arguments=["--nvcc", good / "bin/nvcc"], **after)
    finds("beside nvcc", inc, nvcc=good / "bin/nvcc", path=[good / "bin"], flags=["-idirafter", str(other / "include")])
    finds("the compiler's path", inc, own="yes", nvcc=good / "bin/nvcc", flags=["-idirafter", str(inc)])
    finds("a folder with blanks", third / "include", nvcc=third / "bin/nvcc", CUDA_HOME=third)

    # nvcc.
    links = tmp / "links"
    links.mkdir()
    (links / "nvcc").symlink_to(good / "bin/nvcc")
    finds("beside what a link to nvcc means", inc, nvcc=good / "bin/nvcc", path=[links])
    script = put(tmp / "script/bin/nvcc", f'#!/bin/sh\nexec {shlex.quote(str(good / "bin/nvcc"))} "$@"\n', executable=True)
    put(tmp / "script/include/cuda.h", "#define CUDA_VERSION 12040\n")
    finds("where the nvcc of a script says", inc, nvcc=good / "bin/nvcc", path=[script.parent])
    debian = make_toolkit(tmp / "usr", nvcc=None)
    real = put(debian / "lib/nvidia/bin/nvcc", f"#!/bin/sh\necho '#$ TOP={debian}/lib/nvidia/bin/..'\n", executable=True)
    (debian / "bin").mkdir()
    (debian / "bin/nvcc").symlink_to(real)
    finds("beside the link, where the headers are a distribution's", debian / "include", path=[debian / "bin"])
    finds("beside the next nvcc", inc, path=[old / "bin", good / "bin"], over=f"beside {old}/bin/nvcc: ")
    finds("headers without an nvcc", debian / "include", nvcc=debian / "bin/nvcc", CUDA_HOME=debian)
    finds("the compiler's path, of no nvcc on the PATH", foreign.parent / "bare/include", own="yes", nvcc="",
          flags=["-idirafter", str(put(tmp / "bare/include/cuda.h", "#define CUDA_VERSION 13000\n").parent)],
          over=f"beside {old}/bin/nvcc: {old}/include/cuda.h is of CUDA 11.8", path=[old / "bin"])

    # Where a toolkit has its headers and libraries.
    machine = subprocess.check_output([compiler, "-dumpmachine"], text=True).split("-")[0]
    conda = make_toolkit(tmp / "conda", include=f"targets/{machine}-linux/include")
    put(conda / "targets/another-linux/include/cuda.h", "#define CUDA_VERSION 12010\n")
    finds("headers in targets/", conda / f"targets/{machine}-linux/include", nvcc=conda / "bin/nvcc", CUDA_PATH=conda)
    tegra = make_toolkit(tmp / "tegra", include="targets/another-linux/include")
    finds("headers of another machine alone", tegra / "targets/another-linux/include", path=[tegra / "bin"])
    farm = tmp / "farm"
    farm.mkdir()
    (farm / "cuda.h").symlink_to(inc / "cuda.h")
    finds("links to headers in the compiler's path", farm, own="yes", nvcc=good / "bin/nvcc", flags=["-idirafter", str(farm)])
    code, lines = find(CUDA_HOME=good)
    check("the libraries are its own", lines[4] == str(good / "lib64"), lines)

    # What is passed over is named.
    finds("an old one", inc, over=f"$CUDA_PATH: {old}/include/cuda.h is of CUDA 11.8", CUDA_PATH=old, CUDA_HOME=good)
    finds("one that is too old for this", inc, minimum=13000, path=[good / "bin"], CUDA_HOME=make_toolkit(tmp / "12", 12040),
          over=f"$CUDA_HOME: {tmp}/12/include/cuda.h is of CUDA 12.4")
    finds("another project's", inc, over=f"$CUDA_PATH: {foreign}/include/cuda.h is another project's, without CUDA_VERSION",
          CUDA_PATH=foreign, CUDA_HOME=good)
    finds("none there", inc, over=f"$CUDA_PATH: no cuda.h in {empty}", CUDA_PATH=empty, CUDA_HOME=good)

    # A folder that comes before any that a build adds.
    finds("one that the arguments name", inc, own="yes", flags=[f"-I{inc}"], CUDA_HOME=other)
    finds("one that CPATH names", inc, own="yes", CPATH=inc, CUDA_HOME=other)
    before = f"put the cuda.h in {foreign}/include before that in {inc}"
    refuses("another project's in CPATH", [before], CPATH=foreign / "include", CUDA_HOME=good)
    refuses("another project's in the arguments", [before], flags=[f"-I{foreign / 'include'}"], CUDA_HOME=good)
    refuses("the option, and another one in CPATH", [f"{good}/include before that in {other}/include"], CPATH=inc,
            arguments=["--only", other])

    # Nothing serves: each place that was looked at.
    refuses("no toolkit", [
        "no cuda.h of CUDA 12.0 or newer: ", "$CUDAToolkit_ROOT: not set; $CUDA_PATH: not set; $CUDA_HOME: not set; ",
        "beside nvcc: none is on the PATH; ", "/usr/local/cuda", "the compiler's path: no cuda.h"])
    refuses("none that serves", [
        f"$CUDAToolkit_ROOT: no cuda.h in {empty}; ", f"$CUDA_PATH: {old}/include/cuda.h is of CUDA 11.8; ",
        f"$CUDA_HOME: {foreign}/include/cuda.h is another project's", f"beside {old}/bin/nvcc: "],
            CUDAToolkit_ROOT=empty, CUDA_PATH=old, CUDA_HOME=foreign, path=[old / "bin"])
    for what, place, said in (("empty", empty, f"no cuda.h in {empty}"), ("too old", old, "is of CUDA 11.8"),
                              ("another project's", foreign, "is another project's")):
        refuses(f"the option, {what}", [f"the directory that was asked for: {said}" if what == "empty" else said],
                arguments=["--only", place], CUDA_HOME=good)
    done()

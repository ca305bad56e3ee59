# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the build found CUDA, Abseil and cudasim; they are not ours to be strict with."""

import json
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What lib/meson.build compiles the sources with that read device images.
IMAGE_ARGS = [f"-I{ROOT / 'subprojects' / 'cudaimage' / 'include'}", '-DCUDAIMAGE_NAMESPACE_HEADER="lib/core/image_namespace.h"']


def compile_commands(build):
    """Of each source: its path, the directory and the words of its command, also where several are compiled as one."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        directory = pathlib.Path(entry["directory"])
        source = (directory / entry["file"]).resolve()
        sources = [source]
        if "unity" in source.name and source.is_relative_to(build.resolve()):
            sources = [pathlib.Path(path).resolve()
                       for path in re.findall(r'^#include\s*[<"](.+)[">]', source.read_text(), re.MULTILINE)]
        words = shlex.split(entry["command"])
        yield from ((path, directory, words) for path in sources)


def system_includes(build):
    command = next(words for source, _, words in compile_commands(build) if source == ROOT / "lib" / "core" / "error.cc")
    cudasim = ROOT / "subprojects" / "cudasim" / "include"
    return [word for word in command if word.startswith("-isystem")] + [f"-I{cudasim}"]


def cached(compiler):
    """The compiler behind ccache, if there is one: for -c and a source that is a file, which ccache knows again by what it says."""
    return ["ccache", compiler] if shutil.which("ccache") else [compiler]


def for_nvcc(includes):
    """It does not take a folder that is joined to the option."""
    return [re.sub("^-isystem(?!=)", "-isystem=", word) for word in includes]


def absl_includes(build):
    """Of these, the ones that are not the toolkit's."""
    return [word for word in system_includes(build)
            if not (pathlib.Path(word[len("-isystem"):]) / "cuda.h").exists()]


def headers_that_can_be_included(headers, build, compiler, toolkit=()):
    """Without those for libraries of the toolkit that are not installed."""
    needed = {header: re.findall(r"^#include <(cu(?:blas|fft|solver|sparse)\w*\.h)>$", header.read_text(), re.M)
              for header in headers}
    names = sorted({name for found in needed.values() for name in found})
    text = "".join(f"#if __has_include(<{name}>)\nhas {name}\n#endif\n" for name in names)
    has = subprocess.run([compiler, "-x", "c++", "-E", "-P", *toolkit, *system_includes(build), "-"],
                         input=text, check=True, capture_output=True, text=True).stdout.split()
    return [header for header in headers if set(needed[header]) <= set(has)]


def compile_by_nvcc(nvcc, standard, includes, text):
    """The errors of `text` with all warnings as errors, of nvcc and of the host compiler; "" if none."""
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / "headers.cu"
        source.write_text(text)
        run = subprocess.run(
            [nvcc, f"-std={standard}", "-DCUGUEST_STATIC", "--Werror", "all-warnings", "-Xcompiler",
             "-Wall,-Wextra,-Werror", *for_nvcc(includes), "-c", str(source), "-o", str(source.with_suffix(".o"))],
            capture_output=True, text=True)
    return "" if run.returncode == 0 else run.stdout + run.stderr or f"exit status {run.returncode}"

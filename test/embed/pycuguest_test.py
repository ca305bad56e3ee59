#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pycuguest_test.py SIMDIR TOOLKIT_INCLUDE [WHEEL]

The wheel, which is made unless it is given: its name, what is in it and what that needs. Then, with the oldest Python
from 3.9 on and the newest that this machine has: it is installed into a new virtual environment, with no compiler on
the PATH, and the package's tests pass on the simulation in SIMDIR. With the newest also: the extension keeps to the
stable ABI of 3.9, and the type hints are those of what is there, for mypy and for basedpyright.

With CUGUEST_TEST_SYSROOT, which test/run sets for aarch64, the wheel is that machine's, and its tests run in the emulator
with the sysroot's Python, but for those that start programs or count what they have time for.
"""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile

from common import ROOT, check, done, environment, exported, needed, run, scratch, toolkit_environment

PROJECT = ROOT / "subprojects" / "pycuguest"
SIMDIR, TOOLKIT = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
SYSROOT = os.environ.get("CUGUEST_TEST_SYSROOT") and pathlib.Path(os.environ["CUGUEST_TEST_SYSROOT"]).resolve()
FILES = """cuguest/__init__.py cuguest/_audit.py cuguest/_auditor/collect/libcuguest-audit.so
cuguest/_auditor/command/cuguest-audit cuguest/_core.abi3.so cuguest/_core.pyi cuguest/_pytest_plugin.py
cuguest/_python.py cuguest/py.typed cuguest/testing.py""".split()
CONTROL = ROOT / "subprojects" / "cudasim" / "driver" / "control.h"  # which the package's tests read
NOT_MADE = """import cuguest
held = cuguest.acquire()
cuguest.Acquired()
cuguest.SharedContext()
cuguest.Acquired(held.context)
"""
CAPTURED = re.compile(r"(\d+) (passed|failed|skipped|error)")


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def pythons():
    """The version and the path of the oldest and of the newest."""
    folders = [*os.environ["PATH"].split(os.pathsep),
               *map(str, pathlib.Path.home().glob(".pyenv/versions/*/bin"))]
    found = {sys.version_info[:2]: sys.executable}
    for folder in folders:
        for path in pathlib.Path(folder).glob("python3.*"):
            if re.fullmatch(r"python3\.\d+", path.name):
                asked = subprocess.run([path, "-c", "import ensurepip, sys; print(*sys.version_info[:2])"],
                                       capture_output=True, text=True)
                if asked.returncode == 0:
                    found.setdefault(tuple(map(int, asked.stdout.split())), str(path))
    usable = sorted(version for version in found if version >= (3, 9))
    return [(version, found[version]) for version in sorted({usable[0], usable[-1]})]


def say_what_is_missing():
    """Debian has these apart from python3."""
    header = pathlib.Path(sysconfig.get_path("include")) / "Python.h"
    modules = {"python3-pip": "pip", "python3-venv": "ensurepip"}
    missing = [package for package, module in modules.items() if importlib.util.find_spec(module) is None]
    missing += [] if header.exists() else ["python3-dev"]
    if missing:
        skip(f"without {', '.join(missing)}")


def make(out):
    words = [sys.executable, str(PROJECT / "make_wheel.py"), str(out)]
    if SYSROOT:
        # The distribution's Python.h asks for one file of the machine's.
        words += ["aarch64", f"--cross-file={SYSROOT}.ini", f"--cross-file={ROOT / 'test/support/aarch64.ini'}",
                  f"-Dcpp_args=-I{SYSROOT / 'usr/include'}"]
    made = subprocess.run(words, env=environment(**toolkit_environment(TOOLKIT)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if made.returncode == 77:
        skip(made.stdout.splitlines()[-1])
    if made.returncode != 0:
        check("the wheel is made", False, made.stdout)
    return next(out.glob("*.whl"))


def try_in_emulator(wheel, tmp):
    site = tmp / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore"]
    if subprocess.run([*install, "--target", site, "pytest"]).returncode != 0:
        skip("pip could not get pytest")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    shutil.copytree(PROJECT / "test", tmp / "test", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CONTROL, tmp / "test")
    shutil.copy(PROJECT / "pyproject.toml", tmp)
    libraries = os.pathsep.join(str(SYSROOT / folder) for folder in ("lib/aarch64-linux-gnu", "usr/lib/aarch64-linux-gnu"))
    said = run("qemu-aarch64-static", "-E", f"LD_LIBRARY_PATH={SIMDIR}:{libraries}", "-E", f"PYTHONPATH={site}",
               *SYSROOT.glob("usr/bin/python3.*"), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs",
               "-k", "not refuses_to_restore and not at_any_time",
               *(f"test/test_{name}.py" for name in ("guard", "holding", "protocols")), cwd=tmp, env=environment())
    print(said)
    counts = {outcome: int(number) for number, outcome in CAPTURED.findall(said.splitlines()[-1])}
    check(f"in the emulator {counts.get('passed', 0)} tests pass", counts.get("passed", 0) > 100, counts)


def check_types(python, install, folder, env):
    run(python, "-m", "mypy", "--strict", "-p", "cuguest", env=env, cwd=folder)
    check("mypy --strict has no complaint", True)
    run(python, "-m", "mypy.stubtest", "cuguest", env=env, cwd=folder)
    check("the type hints are those of what is there", True)
    (folder / "made.py").write_text(NOT_MADE)
    made = subprocess.run([python, "-m", "mypy", "--strict", "made.py"], env=env, cwd=folder, text=True, capture_output=True)
    refused = {int(line) for line in re.findall(r"^made.py:(\d+): error: ", made.stdout, re.M)}
    check("what only functions make is refused as a call", refused == {3, 4, 5}, made.stdout)
    if subprocess.run([*install, "basedpyright"], env=env).returncode != 0:
        print("skipped: pip could not get basedpyright")
        return
    package = next((folder.parent / "unpacked").glob("cuguest"))
    (folder / "pyrightconfig.json").write_text(json.dumps({
        "include": [str(package), str(folder / "examples")], "extraPaths": [str(package.parent), str(folder / "examples")],
        "pythonVersion": "3.9", "typeCheckingMode": "standard"}))
    pyright = [python, "-m", "basedpyright", "--pythonpath", python]
    run(*pyright, "-p", folder, env=env, cwd=folder)
    check("basedpyright has no complaint, of the package and of its examples", True)
    run(*pyright, "--verifytypes", "cuguest", "--ignoreexternal", env=dict(env, PYTHONPATH=str(package.parent)), cwd=folder.parent)
    check("every public name has a type", True)


def try_out(wheel, version, path, tmp, is_newest):
    name = ".".join(map(str, version))
    venv = tmp / f"python{name}"
    run(path, "-m", "venv", venv)
    python = venv / "bin" / "python"
    nothing = tmp / "nothing"
    nothing.mkdir(exist_ok=True)
    env = environment(PATH=f"{venv / 'bin'}{os.pathsep}{nothing}", PYTHONDONTWRITEBYTECODE="1")
    compilers = [tool for tool in ("cc", "gcc", "c++", "clang") if shutil.which(tool, path=env["PATH"])]
    check(f"Python {name}: no compiler", not compilers, compilers)
    # From 3.10 on pytest has subtests itself.
    wanted = ["pytest", "pytest-xdist", *(["pytest-subtests"] if version < (3, 10) else []),
              *(["abi3audit", "mypy"] if is_newest else [])]
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*install, *wanted], env=env).returncode != 0:
        skip(f"pip could not get {' and '.join(wanted)}")
    run(*install, "--no-index", "--no-deps", wheel, env=env)
    tests = tmp / f"tests{name}"
    shutil.copytree(PROJECT / "test", tests / "test", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CONTROL, tests / "test")
    shutil.copytree(PROJECT / "examples", tests / "examples")
    for file in (PROJECT / "pyproject.toml", PROJECT / "README.md", ROOT / "docs" / "python.md"):
        shutil.copy(file, tests)
    said = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", cwd=tests,
               env=dict(env, LD_LIBRARY_PATH=str(SIMDIR)))
    print(said)
    counts = {outcome: int(number) for number, outcome in CAPTURED.findall(said.splitlines()[-1])}
    check(f"Python {name}: {counts.get('passed', 0)} tests pass", counts.get("passed", 0) > 100, counts)
    said = run(venv / "bin" / "cuguest-audit", "--", "/bin/true", env=env)
    check(f"Python {name}: cuguest-audit runs", "0 findings" in said, said)
    said = run(venv / "bin" / "cuguest-audit", "--version", env=env)
    release = wheel.name.split("-")[1]
    check(f"Python {name}: cuguest-audit says which wheel it is of", said.endswith(f" (of cuguest {release})\n"), said)
    if is_newest:
        run(python, "-m", "abi3audit", "--strict", wheel, env=env)
        check("the extension needs nothing that Python 3.9 has not", True)
        check_types(python, install, tests, env)


say_what_is_missing()
with scratch() as tmp:
    wheel = pathlib.Path(sys.argv[3]).resolve() if len(sys.argv) > 3 else make(tmp / "out")
    check(f"{wheel.name} is for all Pythons from 3.9 on and the glibc that it says",
          re.fullmatch(r"cuguest-[\d.]+-cp39-abi3-manylinux_2_\d+_\w+\.whl", wheel.name), wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        names = sorted(name for name in archive.namelist() if ".dist-info/" not in name and not name.endswith("/"))
        check(f"{len(names)} files, {wheel.stat().st_size // 1024} KB", names == sorted(FILES), names)
        licences = [name for name in archive.namelist() if name.endswith("LICENSE")]
        check("with the licence", len(licences) == 1, archive.namelist())
        archive.extractall(tmp / "unpacked")
    core = tmp / "unpacked" / "cuguest" / "_core.abi3.so"
    check("the extension exports its beginning alone", exported(core) == ["PyInit__core"], exported(core))
    check("and needs the C library alone", all(name.startswith(("libc.so", "ld-linux", "libdl", "libpthread"))
                                               for name in needed(core)), needed(core))
    machine = run("readelf", "-h", core)
    check("for the machine that it says", ("AArch64" in machine) == wheel.name.endswith("_aarch64.whl") == bool(SYSROOT), machine)
    if SYSROOT:
        try_in_emulator(wheel, tmp)
        done()
    found = pythons()
    for number, (version, path) in enumerate(found, 1):
        try_out(wheel, version, path, tmp, number == len(found))
    done()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python_test.py COMMAND SIMDIR SOURCE_ROOT

cuguest-audit on the simulation, with programs in Python whose packages call CUDA by ctypes, by cffi and by Cython. Of the
interpreters on PATH that run here each version is tried; what an interpreter lacks is skipped by name.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import schema
from checks import check, done, skip

command, simdir, root = map(os.path.abspath, sys.argv[1:])
report_schema = json.loads((pathlib.Path(root) / "audit" / "command" / "report.schema.json").read_text())
folder = tempfile.TemporaryDirectory()
work = pathlib.Path(folder.name).resolve()
packages = work / "lib" / "site-packages"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("CUDASIM_", "CUGUEST_", "PYTHON"))}
ENVIRONMENT.update(LD_LIBRARY_PATH=os.pathsep.join(filter(None, [simdir, os.environ.get("LD_LIBRARY_PATH")])),
                   PYTHONPATH=str(packages), PYTHONDONTWRITEBYTECODE="1")

HOST = """
import ctypes, importlib, sys

cuda = ctypes.CDLL("libcuda.so.1")
for function in cuda.cuCtxPushCurrent_v2, cuda.cuCtxDestroy_v2:
    function.argtypes = [ctypes.c_void_p]


def create():
    context = ctypes.c_void_p()
    assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
    return context.value


def call(guest, context):
    getattr(guest, sys.argv[2])(context)


def main():
    cuda.cuInit(0)
    first, second = create(), create()
    cuda.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
    # On the native stack it is the same call as that of a guest.
    cuda.cuCtxPushCurrent_v2(second)
    cuda.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
    guest = importlib.import_module(sys.argv[1])
    for _ in range(3):
        call(guest, second)
        cuda.cuCtxSynchronize()
    cuda.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


main()
"""
CTYPES = """
import contextlib
import ctypes
import functools

cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuCtxPushCurrent_v2.argtypes = [ctypes.c_void_p]


class Encoder:
    def push(self, context):
        cuda.cuCtxPushCurrent_v2(context)  # leaked-push


def leak(context):
    Encoder().push(context)


def leak_by_library(context):
    functools.reduce(lambda _, context: leak(context), [None, context])


def behave(context):
    with pushed(context):
        cuda.cuCtxSynchronize()


@contextlib.contextmanager
def pushed(context):
    cuda.cuCtxPushCurrent_v2(context)
    yield
    cuda.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


def leak_by_callback(context):
    ctypes.CFUNCTYPE(None)(lambda: leak(context))()
"""
CFFI = """
import cffi

ffi = cffi.FFI()
ffi.cdef("int cuCtxPushCurrent_v2(void*);")
cuda = ffi.dlopen("libcuda.so.1")


def leak(context):
    cuda.cuCtxPushCurrent_v2(ffi.cast("void*", context))  # leaked-push
"""
CYTHON = """
cdef extern int cuCtxPushCurrent_v2(void*)


def leak(size_t context):
    cuCtxPushCurrent_v2(<void*>context)
"""
# Whatever runs functions, in threads that hold the interpreter's lock, wait for it, and go on when it ends.
ANY = """
import asyncio, ctypes, sys, threading, time

cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuCtxPushCurrent_v2.argtypes = [ctypes.c_void_p]
context = ctypes.c_void_p()


def pair():
    cuda.cuCtxPushCurrent_v2(context)
    cuda.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


def recur(depth):
    return recur(depth - 1) if depth else pair()


def generate():
    yield pair()


async def wait():
    pair()
    await asyncio.sleep(0)
    pair()


class Dying:
    def __del__(self):
        pair()


def work():
    for depth in range(40):
        recur(depth)
        list(generate())
        asyncio.run(wait())
        Dying()
        try:
            [][0]
        except IndexError:
            pair()
        ctypes.CFUNCTYPE(None)(pair)()
        sorted([2, 1], key=lambda _: pair() or 0)


def work_for_ever():
    while True:
        pair()


cuda.cuInit(0)
cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
work()
for thread in threads:
    thread.join()
sys.setrecursionlimit(2000)
recur(int(sys.argv[1]))
for _ in range(4):
    threading.Thread(target=work_for_ever, daemon=True).start()
time.sleep(0.05)
at_the_end = Dying()
"""
WIDE = "\u00e9ncodage_\u4e2d"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def line_of(path, mark):
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if line.endswith(f"# {mark}"))


class Run:
    """Of the command with the host, which calls `function` of the module `guest`, in an interpreter."""

    def __init__(self, interpreter, guest, function="leak", *options, program=None):
        self.file = work / "report.json"
        self.file.unlink(missing_ok=True)
        self.program = program or str(host)
        done = subprocess.run([command, f"--json={self.file}", *options, "--", interpreter, self.program, guest, function],
                              env=ENVIRONMENT, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=60,
                              cwd=work)
        self.code, self.err = done.returncode, done.stderr
        self.report = json.loads(self.file.read_text(errors="replace")) if self.file.exists() else {"findings": []}
        self.findings = self.report["findings"]

    def __str__(self):
        return f"{self.code}\n{self.err}"


def leak_of(run):
    """The one finding, with None where there is none."""
    finding = run.findings[0] if [one["kind"] for one in run.findings] == ["leaked-push"] else {}
    return finding.get("culprit") or {}, finding.get("victim") or {}, finding


def version_of(interpreter):
    done = subprocess.run([interpreter, "-c", "import ctypes, sys; print(*sys.version_info[:2])"], capture_output=True, text=True,
                          cwd=work)
    return tuple(map(int, done.stdout.split())) if done.returncode == 0 else None


def has_module(interpreter, name):
    return subprocess.run([interpreter, "-c", f"import {name}"], capture_output=True, env=ENVIRONMENT, cwd=work).returncode == 0


def build_cython(interpreter):
    """Compiles the module into its package; what went wrong, or "" """
    source = write(work / "core.pyx", CYTHON)
    target = packages / "cython_guest"
    write(target / "__init__.py", "from . import core\n\n\ndef leak(context):\n    core.leak(context)\n")
    script = ("import subprocess, sysconfig, sys; from Cython.Build import cythonize; cythonize(sys.argv[1], language_level=3);"
              "suffix = sysconfig.get_config_var('EXT_SUFFIX');"
              "subprocess.run(['cc', '-shared', '-fPIC', '-g', '-I' + sysconfig.get_path('include'), sys.argv[1][:-3] + 'c',"
              " sys.argv[3], '-Wl,--allow-shlib-undefined', '-o', sys.argv[2] + '/core' + suffix], check=True)")
    done = subprocess.run([interpreter, "-c", script, str(source), str(target), f"{simdir}/libcuda.so.1"], capture_output=True,
                          text=True, env=ENVIRONMENT, cwd=work)
    return "" if done.returncode == 0 else done.stderr


host = write(work / "app" / "host.py", HOST)
guest = write(packages / "ctypes_guest" / "__init__.py", CTYPES)
write(packages / "cffi_guest" / "__init__.py", CFFI)
module = write(work / "app" / "module_guest.py", CTYPES)
anything = write(work / "app" / "anything.py", ANY)
write(work / "app" / "inner" / "__init__.py", "")
write(work / "app" / "inner" / "parts" / "__init__.py", "")
inner = write(work / "app" / "inner" / "parts" / "encoder.py", CTYPES)
wide = write(packages / WIDE / "__init__.py", CTYPES)


def check_known(name, interpreter):
    run = Run(interpreter, "ctypes_guest")
    culprit, victim, finding = leak_of(run)
    check(f"{name}: ctypes: once, counted", finding.get("count") == 3, run)
    check(f"{name}: ctypes: the package is the culprit, with function and line", culprit.get("object") == str(guest.parent)
          and culprit.get("function") == "Encoder.push" and culprit.get("file") == str(guest)
          and culprit.get("line") == line_of(guest, "leaked-push"), run)
    check(f"{name}: ctypes: the host's function is the victim", victim.get("object") == str(host)
          and victim.get("function") == "call", run)
    check(f"{name}: ctypes: the headline has the function that returned",
          re.search(r"^\[1\] leaked push +ctypes_guest  leak \(__init__\.py:\d+\)$", run.err, re.M), run)
    check(f"{name}: ctypes: the schema", not schema.errors(run.report, report_schema))
    run = Run(interpreter, "ctypes_guest", "behave")
    check(f"{name}: ctypes: what the package takes back is no finding", run.findings == [] and run.code == 0, run)
    for function in "leak_by_library", "leak_by_callback":
        run = Run(interpreter, "ctypes_guest", function)
        culprit, victim, _ = leak_of(run)
        check(f"{name}: {function}: the standard library passes on", culprit.get("object") == str(guest.parent)
              and victim.get("object") == str(host), run)
    culprit, victim, _ = leak_of(run := Run(interpreter, "module_guest"))
    check(f"{name}: a module beside the script", culprit.get("object") == str(module) and victim.get("object") == str(host), run)
    culprit, victim, _ = leak_of(run := Run(interpreter, "inner.parts.encoder"))
    check(f"{name}: the outermost package of a module", culprit.get("object") == str(inner.parent.parent)
          and culprit.get("file") == str(inner), run)
    culprit, victim, _ = leak_of(run := Run(interpreter, WIDE))
    check(f"{name}: a path that is not ASCII", culprit.get("object") == str(wide.parent), run)
    log = work / "events.log"
    first = Run(interpreter, "ctypes_guest", "leak", f"--log={log}")
    again = subprocess.run([command, f"--replay={log}"], capture_output=True, text=True, env=ENVIRONMENT)
    check(f"{name}: --replay has the same names", again.stderr.split("\n", 2)[2] == first.err.split("\n", 2)[2], again.stderr)
    run = Run(interpreter, "100", "", "--error-exitcode=9", program=str(anything))
    check(f"{name}: threads, generators, coroutines, callbacks and destructors", run.code == 0 and run.findings == []
          and run.report["complete"], run)
    run = Run(interpreter, "1100", "", "--error-exitcode=9", program=str(anything))
    check(f"{name}: a chain of more than 1024 frames is incomplete", run.code == 9 and run.findings == []
          and "a limit was reached: a call chain had more than 1024 frames" in run.err, run)
    run = Run(interpreter, "ctypes_guest", "leak", "--object=*/ctypes_guest", "--gen-suppressions")
    check(f"{name}: --object and --gen-suppressions", len(run.findings) == 1 and "   fun:Encoder.push\n   fun:leak\n" in run.err, run)
    if has_module(interpreter, "cffi"):
        culprit, victim, _ = leak_of(run := Run(interpreter, "cffi_guest"))
        check(f"{name}: cffi: the package is the culprit", culprit.get("object") == str(packages / "cffi_guest")
              and culprit.get("function") == "leak" and victim.get("object") == str(host), run)
    else:
        skip(f"{name}: cffi", "not installed")
    if has_module(interpreter, "Cython.Build") and shutil.which("cc"):
        error = build_cython(interpreter)
        culprit, victim, _ = leak_of(run := Run(interpreter, "cython_guest"))
        check(f"{name}: Cython: the module of the package is the culprit", error == "" and victim.get("object") == str(host)
              and pathlib.Path(culprit.get("object", "")).parent == packages / "cython_guest", error or run)
        # Elsewhere than among installed packages, too.
        shutil.copytree(packages / "cython_guest", work / "app" / "compiled", dirs_exist_ok=True)
        for package in packages / "cython_guest", work / "app" / "compiled":
            culprit, _, finding = leak_of(run := Run(interpreter, package.name))
            check(f"{name}: Cython: {package.name} and its module are one library", culprit.get("object", "").startswith(f"{package}/core")
                  and finding["returned"].get("file") == str(package / "__init__.py"), run)
    else:
        skip(f"{name}: Cython", "not installed, or no cc")


def check_unknown(name, interpreter):
    run = Run(interpreter, "ctypes_guest")
    check(f"{name}: says that its functions are not known",
          re.search(r"  does not know the functions of Python \d+\.\d+\.\S+, for which the interpreter stands", run.err), run)


versions = {}
for name in "python3.13", "python3.12", "python3":
    path = shutil.which(name)
    version = version_of(path) if path else None
    if version is None or version in versions:
        skip(name, "not there" if version is None else "tried already")
        continue
    versions[version] = path
    (check_known if version in ((3, 12), (3, 13)) else check_unknown)(name, path)
if not versions.keys() & {(3, 12), (3, 13)}:
    skip("names of Python functions", "neither Python 3.12 nor 3.13 is on PATH")

done()

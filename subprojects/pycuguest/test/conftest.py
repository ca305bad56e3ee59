# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The driver that the tests find, by ctypes: the simulated one, or a real one."""

import contextlib
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import textwrap
import threading
import warnings

import pytest

import cuguest

pytest_plugins = ["pytester"]

# The table of functions of the simulated driver's own: beside this file where the tests are a copy.
HERE = pathlib.Path(__file__).resolve()
CONTROL = next((path for path in (HERE.with_name("control.h"), HERE.parents[2] / "cudasim" / "driver" / "control.h")
                if path.exists()), None)


class Driver:
    """Contexts of the tests' own, and what a careless callee does."""

    def __init__(self):
        self.calls = ctypes.CDLL("libcuda.so.1")
        self.is_simulated = hasattr(self.calls, "cudasimControl")
        self.made = []

    def __getattr__(self, name):
        def call(*arguments):
            code = getattr(self.calls, name)(*arguments)
            assert code == 0, f"{name} gave {code}"

        return call

    def create(self):
        """A context that is current nowhere."""
        made, popped = ctypes.c_void_p(), ctypes.c_void_p()
        self.cuInit(0)
        self.cuCtxCreate_v2(ctypes.byref(made), 0, 0)
        self.cuCtxPopCurrent_v2(ctypes.byref(popped))
        self.made.append(made.value)
        return made.value

    def destroy(self, context):
        self.made.remove(context)
        self.cuCtxDestroy_v2(ctypes.c_void_p(context))

    def current(self):
        now = ctypes.c_void_p()
        self.cuCtxGetCurrent(ctypes.byref(now))
        return now.value

    def set(self, context):
        self.cuCtxSetCurrent(ctypes.c_void_p(context))

    def push(self, context):
        self.cuCtxPushCurrent_v2(ctypes.c_void_p(context))

    def pop(self):
        popped = ctypes.c_void_p()
        self.cuCtxPopCurrent_v2(ctypes.byref(popped))
        return popped.value

    def stack(self):
        """All of the thread's, the current one first."""
        found = []
        while self.current() is not None:
            found.append(self.pop())
        for context in reversed(found):
            self.push(context)
        return found

    def stream(self, context):
        made = ctypes.c_void_p()
        self.push(context)
        self.cuStreamCreate(ctypes.byref(made), 0)
        self.pop()
        return made.value

    def memory(self, context):
        made = ctypes.c_uint64()
        self.push(context)
        self.cuMemAlloc_v2(ctypes.byref(made), ctypes.c_size_t(4096))
        self.pop()
        return made.value

    def control(self, name, result, *arguments):
        """The function of that name of the simulated driver's own."""
        text = CONTROL.read_text()
        names = re.findall(r"^  \S.*?\(\*(\w+)\)\(", text[text.index("struct Control {"):], re.M)
        table = self.calls.cudasimControl
        table.restype = ctypes.POINTER(ctypes.c_void_p)
        version = int(re.search(r"kControlVersion = (\d+);", text)[1])
        assert table()[0] & 0xFFFFFFFF == version, f"another table than that of {CONTROL}"
        return ctypes.CFUNCTYPE(result, *arguments)(table()[1 + names.index(name)])

    @contextlib.contextmanager
    def on_every_call(self, function):
        """Has `function` of C called, with a name, for each call of the simulated driver."""
        call = self.control("on_every_call", None, ctypes.c_void_p)
        call(ctypes.cast(function, ctypes.c_void_p))
        try:
            yield
        finally:
            call(None)

    def total_calls(self):
        return self.control("total_calls", ctypes.c_uint64)()

    def is_active(self, device=0):
        flags, active = ctypes.c_uint(), ctypes.c_int()
        self.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(active))
        return bool(active.value)


def pytest_collection_modifyitems(items):
    try:
        is_real = not hasattr(ctypes.CDLL("libcuda.so.1"), "cudasimControl")
    except OSError:
        is_real = False
    for item in items:
        if item.get_closest_marker("gpu") and not is_real:
            item.add_marker(pytest.mark.skip(reason="needs a real driver"))


@pytest.fixture
def driver():
    """With an empty stack before the test and after it."""
    made = Driver()
    made.cuInit(0)
    assert made.stack() == []
    yield made
    try:
        while made.current() is not None:
            made.pop()
    finally:
        for context in made.made:
            made.calls.cuCtxDestroy_v2(ctypes.c_void_p(context))


@pytest.fixture
def two(driver):
    """The host's context, which is current, and the guest's."""
    host, guest = driver.create(), driver.create()
    driver.set(host)
    return host, guest


@pytest.fixture
def incidents():
    """Those of the test. The warnings are recorded by themselves."""
    seen = []
    remove = cuguest.on_incident(seen.append)
    yield seen
    remove()


@pytest.fixture
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cuguest.CuguestWarning)
        yield


@pytest.fixture
def inactive(driver):
    """Nobody holds the primary context of device 0."""
    if driver.is_active():
        pytest.skip("somebody in this process holds the primary context")
    return driver


def on_a_thread(function):
    """What it returns or raises there."""
    got = []

    def run():
        try:
            got.append((function(), None))
        except BaseException as error:
            got.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if got[0][1] is not None:
        raise got[0][1]
    return got[0][0]


def stream_of(number):
    """What has that stream, and is on device 0."""
    return type("Stream", (), {"__cuda_stream__": (0, number), "device_id": 0})()


def array_at(pointer):
    """What is there, on device 0; empty at 0."""
    return type("Array", (), {"__cuda_array_interface__": {"data": (pointer, False)}, "device_id": 0})()


def python(script, *arguments, **environment):
    """A process of its own: its exit status, and what it wrote."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script), *arguments], env=dict(os.environ, **environment),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    return done.returncode, done.stdout


def compile_library(folder, name, source):
    """A shared library of C, FOLDER/NAME; skips where there is no compiler. The PATH of the tests has none."""
    (folder / "source.c").write_text(source)
    env = dict(os.environ, PATH="/usr/bin:/bin")
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / name, folder / "source.c"], env=env, check=True)
    except FileNotFoundError:
        pytest.skip("without a C compiler")


@pytest.fixture(name="python")
def python_fixture():
    return python

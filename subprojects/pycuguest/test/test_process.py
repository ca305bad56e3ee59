# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Threads, generators, asyncio, processes, interpreters, drivers."""

import asyncio
import json
import os
import pathlib
import subprocess
import sys
import threading
import warnings

import pytest

import cuguest
from conftest import compile_library, on_a_thread
from cuguest._audit import COMMAND


def test_each_thread_has_its_own(driver, two):
    host, guest = two

    def work():
        for _ in range(2000):
            with cuguest.guard(guest):
                if driver.current() != guest:
                    return "lost"
            if driver.current() is not None:
                return "left"
        return "ok"

    threads, got = [], []
    for _ in range(4):
        threads.append(threading.Thread(target=lambda: got.append(work())))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert got == ["ok"] * 4 and driver.stack() == [host]


def test_left_on_another_thread(driver, two, incidents, quiet):
    """Its own thread restores the stack when it next begins or ends a guard."""
    host, guest = two
    one = cuguest.guard(guest)
    one.__enter__()
    on_a_thread(lambda: one.__exit__(None, None, None))
    assert [incident.is_repaired for incident in incidents] == [False] and "another thread" in incidents[0].kind
    assert driver.stack() == [guest, host]
    with cuguest.guard(host):
        assert driver.current() == host
    assert driver.stack() == [host]


def test_entering_that_a_warning_stops(driver, two):
    """What another thread has ended is restored, and reported, when this one enters the next: which is then not entered."""
    host, guest = two
    one = cuguest.guard(guest)
    one.__enter__()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        on_a_thread(lambda: one.__exit__(None, None, None))
    driver.set(host)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(cuguest.CuguestWarning):
            cuguest.guard(guest).__enter__()
    assert driver.stack() == [host]


def test_generator_closed_on_another_thread(driver, two, incidents):
    host, guest = two

    def generate():
        with cuguest.guard(guest):
            yield driver.current()

    generator = generate()
    assert next(generator) == guest
    with pytest.warns(cuguest.CuguestWarning, match="another thread") as told:
        on_a_thread(generator.close)
    assert told[0].lineno == generate.__code__.co_firstlineno + 1
    with cuguest.guard(guest):
        pass
    assert driver.stack() == [host] and len(incidents) == 1


def test_generator_that_is_dropped(driver, two):
    def generate():
        with cuguest.guard(guest):
            yield

    host, guest = two
    generator = generate()
    next(generator)
    del generator
    assert driver.stack() == [host]


def test_guard_over_an_await(driver, two, incidents, quiet):
    """It is the thread's: other tasks run in its context meanwhile, and ends out of turn are reported and restored."""
    host, guest = two
    seen = []

    async def first():
        with cuguest.guard(guest):
            await asyncio.sleep(0.01)
        seen.append("first left")

    async def second():
        seen.append(driver.current())
        with cuguest.guard(host):
            await asyncio.sleep(0.03)
            seen.append(driver.current())

    async def both():
        await asyncio.gather(first(), second())

    asyncio.run(both())
    assert seen == [guest, "first left", host]
    assert ["before another one inside it" in one.kind for one in incidents] == [True]
    assert driver.stack() == [host]


def test_guard_within_a_task(driver, two, incidents):
    host, guest = two

    async def work(context):
        for _ in range(20):
            with cuguest.guard(context):
                assert driver.current() == context
            await asyncio.sleep(0)

    async def many():
        await asyncio.gather(*(work(two[number % 2]) for number in range(8)))

    asyncio.run(many())
    assert driver.stack() == [host] and not incidents


def test_fork_in_the_block(driver, two, incidents):
    host, guest = two
    readable, writable = os.pipe()
    held = cuguest.shared(guest)
    with cuguest.guard(guest):
        child = os.fork()
        if child == 0:
            said = [f"initialized {cuguest.is_initialized()}, current {cuguest.current()}"]
            try:
                with cuguest.guard(host):
                    pass
            except cuguest.Error as error:
                said.append(error.name)
    if child == 0:  # it has left the parent's guard
        held.release()
        said.append(f"{len(incidents)} incidents")
        os.write(writable, "; ".join(said).encode())
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable) as pipe:
        assert pipe.read() == "initialized False, current None; CUDA_ERROR_NOT_INITIALIZED; 0 incidents"
    assert os.waitpid(child, 0)[1] == 0
    assert driver.stack() == [host] and held.use_count == 1 and not incidents
    held.release()


@pytest.mark.parametrize("make", ["cuguest.shared(device=0)", "cuguest.retain_primary(0)",
                                  "cuguest.guard(cuguest.Primary(0, create=True))"])
def test_fork_in_the_block_of_what_holds(driver, python, make):
    """The child leaves it in silence."""
    status, said = python("""
        import os, sys, warnings
        import cuguest
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on: a driver has threads of its own
        with eval(sys.argv[1]) as held:
            child = os.fork()
        if child == 0:
            del held
            os._exit(7)
        assert os.waitpid(child, 0)[1] >> 8 == 7
    """, make)
    assert status == 0 and said == "", said


# How what holds a context may end while a host function of Python is pending in it.
ENDS = {
    "release": "held = cuguest.retain_primary(0); work(held); held.release()",
    "with": "with cuguest.retain_primary(0) as held: work(held)",
    "del": "held = cuguest.retain_primary(0); work(held); del held",
    "del of a shared one": "held = cuguest.shared(device=0); work(held); del held",
    "release of a shared one": "held = cuguest.shared(device=0); work(held); held.release()",
    "end of a guard": "with cuguest.guard(cuguest.Primary(0, create=True)): work()",
    "end of an expression": "with cuguest.guard(cuguest.retain_primary(0)): work()",
    "end of a guard that is dropped": "kept = cuguest.guard(cuguest.retain_primary(0)); kept.__enter__(); work(); del kept",
    "a cycle": "cycle = [cuguest.retain_primary(0)]; work(cycle[0]); cycle.append(cycle); del cycle; gc.collect()",
    "an exception's frame": "run_and_drop()",
}


# Arguments: the ends, and a framework that has a context meanwhile.
PENDING = """
    import contextlib, ctypes, faulthandler, gc, json, sys, threading, time
    import cuguest
    faulthandler.dump_traceback_later(120, exit=True)
    driver = ctypes.CDLL("libcuda.so.1")
    ran, counted, ended = [], [0], []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def function(_):
        before = counted[0]
        deadline = time.monotonic() + 30
        while counted[0] < before + 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        ran.append(counted[0] - before)

    def work(held=None):
        stream = ctypes.c_void_p()
        with cuguest.guard(held) if held is not None else contextlib.nullcontext():
            assert driver.cuStreamCreate(ctypes.byref(stream), 0) == 0
            assert driver.cuLaunchHostFunc(stream, function, None) == 0

    def run_and_drop():
        def run():
            held = cuguest.retain_primary(0)
            work(held)
            raise KeyError(held)
        try:
            run()
        except KeyError:
            pass

    def count():
        while not ended:
            counted[0] += 1
            time.sleep(0.01)

    driver.cuInit(0)
    host = None
    if len(sys.argv) > 2:
        sys.path.insert(0, sys.argv[3])
        import frameworks
        host = frameworks.HOSTS[sys.argv[2]]()
    thread = threading.Thread(target=count)
    thread.start()
    for end in json.loads(sys.argv[1]):
        exec(end)
        # A context that somebody else holds, too, goes on, and its work with it.
        deadline = time.monotonic() + 30
        while host is not None and not ran and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(ran) == 1 and ran[0] >= 3, (end, ran)
        assert host is None or host.work(), end
        ran.clear()
    ended.append(True)
    thread.join()
"""


@pytest.mark.parametrize("end", ENDS)
def test_waits_with_the_lock_open(driver, python, end):
    """The host function runs, and another thread goes on, while it waits."""
    status, said = python(PENDING, json.dumps([ENDS[end]]))
    assert status == 0, said


SHUTDOWN = """
    import ctypes, sys, threading
    import cuguest
    driver = ctypes.CDLL("libcuda.so.1")
    driver.cuInit(0)
    primary = cuguest.retain_primary(0)
    shared = cuguest.shared(primary)
    one = cuguest.guard(primary)
    one.__enter__()
    def generate():
        with cuguest.guard(primary):
            yield
    generator = generate()
    next(generator)
    class Late:
        def __del__(self):
            with cuguest.guard(primary):
                driver.cuCtxPushCurrent_v2(ctypes.c_void_p(primary.context.handle))
    late = Late()
    def sleep():
        with cuguest.guard(primary):
            threading.Event().wait()
    threading.Thread(target=sleep, daemon=True).start()
    if len(sys.argv) > 1:
        sys.modules["keep"] = (one, generator, late, primary, shared)
    print("end")
"""


@pytest.mark.parametrize("arguments", [(), ("keep",)], ids=["globals", "modules"])
def test_shutdown_with_guards_open(python, arguments):
    code, said = python(SHUTDOWN, *arguments)
    assert code == 0 and said.startswith("end\n") and "Fatal" not in said, said


@pytest.mark.parametrize("filters, told", [("default", 1), ("ignore", 0)])
@pytest.mark.parametrize("kept", ["guard", "Late()"])
def test_disturbed_guard_at_the_end(python, filters, told, kept):
    """The package's Python is gone, and a warning of Python's own says it."""
    code, said = python("""
        import builtins, ctypes, sys
        import cuguest
        primary = cuguest.retain_primary(0)
        guard = cuguest.guard(primary)

        class Late:
            def __del__(self, guard=guard, push=ctypes.CDLL("libcuda.so.1").cuCtxPushCurrent_v2,
                        number=ctypes.c_void_p(primary.context.handle)):
                with guard:
                    push(number)

        if sys.argv[1] == "guard":
            guard.__enter__()
            Late.__del__.__defaults__[1](Late.__del__.__defaults__[2])
        builtins.kept = eval(sys.argv[1])
        print("end", flush=True)
    """, kept, PYTHONWARNINGS=filters)
    warning = "<string>:5: RuntimeWarning: cuguest: a callee left a push behind; repaired\n"
    assert code == 0 and said == "end\n" + told * warning, said


def test_pools_of_processes_under_the_audit(driver, tmp_path):
    """Nothing is found, and nothing is missing: children that call nothing after a fork, and such as work."""
    found = tmp_path / "found.json"
    program = pathlib.Path(__file__).with_name("pools.py")
    done = subprocess.run([str(COMMAND), f"--json={found}", "--", sys.executable, str(program)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    audit = json.loads(found.read_text())
    assert audit["complete"] and audit["findings"] == [], done.stdout
    # Of each pool that spawned one process has worked at least.
    assert sum(process["source"] is not None for process in audit["processes"]) >= 3, audit["processes"]


def test_exit_from_the_block(python):
    code, said = python("""
        import cuguest, sys
        with cuguest.guard(cuguest.Primary(0, create=True)):
            sys.exit(3)
    """)
    assert (code, said) == (3, "")


INTERPRETER = """
    import sys
    try:
        import _interpreters as interpreters
        def make(kind):
            return interpreters.create(kind)
        def run(one, text):
            failure = interpreters.exec(one, text)
            return "" if failure is None else failure.msg
    except ImportError:
        import _xxsubinterpreters as interpreters
        def make(kind):
            return interpreters.create(isolated=kind == "isolated")
        def run(one, text):
            try:
                interpreters.run_string(one, text)
                return ""
            except interpreters.RunFailedError as error:
                return str(error)
    import cuguest
    primary = cuguest.retain_primary(0)
    USE = '''if True:
        import cuguest, warnings
        seen = []
        warnings.simplefilter("ignore")
        cuguest.on_incident(seen.append)
        import ctypes
        driver = ctypes.CDLL("libcuda.so.1")
        with cuguest.guard(HANDLE):
            driver.cuCtxPushCurrent_v2(ctypes.c_void_p(HANDLE))
        assert len(seen) == 1 and cuguest.current() is None
        one = cuguest.guard(cuguest.retain_primary(0))
        one.__enter__()
        print("used", flush=True)
    '''.replace("HANDLE", str(primary.context.handle))
    for kind in ("legacy", "legacy", "isolated"):
        one = make(kind)
        print(kind, run(one, USE), flush=True)
        interpreters.destroy(one)
        while cuguest.current() is not None:
            raise SystemExit("an entry is left")
    seen = []
    import warnings
    warnings.simplefilter("ignore")
    cuguest.on_incident(seen.append)
    import ctypes
    with cuguest.guard(primary):
        ctypes.CDLL("libcuda.so.1").cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
    print(len(seen), "own")
"""


def test_subinterpreters(python):
    """One that shares the lock works; one that has its own refuses the import."""
    code, said = python(INTERPRETER)
    lines = said.splitlines()
    assert code == 0, said
    assert said.count("used") >= 2 and lines[-1] == "1 own", said
    isolated = next(line for line in lines if line.startswith("isolated"))
    if sys.version_info >= (3, 12):
        assert "does not support loading in subinterpreters" in isolated or "ModuleNotFoundError" in isolated, said


def test_machine_without_a_driver(python, driver, tmp_path):
    if not driver.is_simulated:
        pytest.skip("a driver is installed")
    code, said = python("""
        import cuguest
        from cuguest import testing
        print(cuguest.is_initialized())
        with testing.undisturbed():
            pass
        for call in (cuguest.current, lambda: cuguest.guard(2**20).__enter__(), lambda: cuguest.retain_primary(0),
                     lambda: cuguest.acquire(device=0), lambda: cuguest.free_memory(0), lambda: cuguest.shared(device=0),
                     lambda: cuguest.guard(cuguest.Primary(0)).__enter__(), lambda: cuguest.ContextRef(2**20),
                     lambda: cuguest.host_scope().__enter__()):
            try:
                print(call())
            except cuguest.Error as error:
                print(error.name, bool(error.doing and error.advice))
    """, LD_LIBRARY_PATH=str(tmp_path))
    lines = said.splitlines()
    assert code == 0 and lines[0] == "False", said
    assert set(lines[1:-1]) == {"CUDA_ERROR_SHARED_OBJECT_INIT_FAILED True"} and len(lines) == 10, said


def test_driver_that_is_too_old(python, tmp_path):
    """One of which a guard cannot have what it needs: a library of the driver's name without its functions."""
    compile_library(tmp_path, "libcuda.so.1", """
        int cuInit(unsigned flags) { return 0; }
        int cuDriverGetVersion(int* version) { *version = 6000; return 0; }
        int cuCtxGetCurrent(void** context) { *context = 0; return 0; }
    """)
    code, said = python("""
        import cuguest
        for call in (cuguest.current, lambda: cuguest.guard(2**20).__enter__(), lambda: cuguest.retain_primary(0),
                     lambda: cuguest.shared(device=0)):
            try:
                print(call())
            except cuguest.Error as error:
                print(error.name, error)
    """, LD_LIBRARY_PATH=str(tmp_path))
    assert code == 0 and said.count("\n") == 4, said
    assert all(line.startswith("CUDA_ERROR_") for line in said.splitlines()), said

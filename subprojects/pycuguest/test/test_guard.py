# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""guard() and host_scope() on one thread."""

import ctypes
import gc
import signal
import sys
import warnings
import weakref

import pytest

import cuguest
from conftest import on_a_thread
from cuguest import _python


def told(x):
    """Of a number, too, whose digits Python does not write."""
    return hex(x)[:20] if isinstance(x, int) else repr(x)


def line():
    return sys._getframe(1).f_lineno


def test_enters_and_restores(driver, two):
    host, guest = two
    with cuguest.guard(guest):
        assert driver.stack() == [guest, host]
    assert driver.stack() == [host]


def test_elides_the_current_context(driver, two):
    host, _ = two
    with cuguest.guard(host):
        assert driver.stack() == [host]
    assert driver.stack() == [host]


@pytest.mark.parametrize("disturb, kind", [
    (lambda driver, host, guest: driver.set(host), "replaced the current context"),
    (lambda driver, host, guest: driver.push(guest), "left a push on the stack"),
    (lambda driver, host, guest: driver.pop(), "popped the guard's entry"),
], ids=["replaced", "pushed", "popped"])
def test_repairs_and_warns(driver, two, incidents, disturb, kind):
    host, guest = two
    with pytest.warns(cuguest.CuguestWarning) as told:
        with cuguest.guard(guest):
            place = line() - 1
            disturb(driver, host, guest)
    assert driver.stack() == [host]
    assert len(incidents) == len(told) == 1
    assert incidents[0].kind != "" and incidents[0].is_repaired and incidents[0].code == 0
    assert incidents[0].current == host
    assert (told[0].filename, told[0].lineno) == (__file__, place) == (incidents[0].file, incidents[0].line)
    assert incidents[0].kind in str(told[0].message)


def test_exception_goes_on(driver, two):
    host, guest = two
    with pytest.raises(KeyError, match="mine"):
        with cuguest.guard(guest):
            raise KeyError("mine")
    assert driver.stack() == [host]


def test_warning_as_error_raises_afterwards(driver, two):
    host, guest = two
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(cuguest.CuguestWarning, match="replaced"):
            with cuguest.guard(guest):
                driver.set(host)
    assert driver.stack() == [host]


def test_warning_names_each_place_once(driver, two):
    host, guest = two
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for _ in range(3):
            with cuguest.guard(guest):
                driver.set(host)
    assert len(told) == 1


def test_warning_is_of_its_place(driver, two):
    """One a place, whatever the contexts are; as one of the module that made the guard."""
    host, guest = two
    modules = {}
    code = "with guard(b): set(a)"
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for name in ("one", "two", "three", "one", "two"):
            module = modules.setdefault(name, {"guard": cuguest.guard, "set": driver.set, "__name__": name})
            exec(compile(code, f"{name}.py", "exec"), module, {"a": host, "b": guest})
        guest = driver.create()
        exec(compile(code, "one.py", "exec"), modules["one"], {"a": host, "b": guest})
    assert [(one.filename, one.lineno) for one in told] == [("one.py", 1), ("two.py", 1), ("three.py", 1)]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", module="two$")
        for name in ("one", "two"):
            exec(compile(code, f"{name}.py", "exec"), modules[name], {"a": host, "b": guest})
        exec(compile(code, "nowhere.py", "exec"), {"guard": cuguest.guard, "set": driver.set, "a": host, "b": guest})
    assert [one.filename for one in told] == ["one.py", "nowhere.py"]
    assert "0x" not in str(told[0].message)


def test_guard_of_nothing_current(driver, two):
    """What current() says on a thread that has none; and where there are contexts, none inside."""
    host, guest = two

    def run():
        with pytest.warns(cuguest.CuguestWarning, match="left a push behind"):
            with cuguest.guard(cuguest.current()):
                driver.push(guest)
        assert driver.stack() == []

    on_a_thread(run)
    driver.push(guest)
    with cuguest.guard(None):
        assert driver.stack() == []
        with cuguest.guard(host):
            assert driver.stack() == [host]
    assert driver.stack() == [guest, host]
    driver.pop()
    with pytest.raises(TypeError):
        cuguest.guard()


@pytest.mark.parametrize("raised", [ValueError("mine"), KeyboardInterrupt(), SystemExit(3)])
def test_exception_of_the_block_goes_on(driver, two, raised, monkeypatch):
    """Where the warning is an error, too: that is told as one that is ignored."""
    host, guest = two
    ignored = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: ignored.append(args.exc_type))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(type(raised)) as told:
            with cuguest.guard(guest):
                driver.set(host)
                raise raised
    assert told.value is raised and ignored == [cuguest.CuguestWarning]
    assert driver.stack() == [host]


def test_callback_that_fails_under_pythons_own_hook(driver, two, quiet, capfd, monkeypatch):
    host, guest = two
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    remove = cuguest.on_incident(lambda incident: 1 / 0)
    with cuguest.guard(guest):
        driver.set(host)
    remove()
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_callback_may_fail_and_end(driver, two, monkeypatch, quiet):
    host, guest = two
    ignored, seen = [], []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)

    def fail(incident):
        seen.append(incident)
        raise OSError("a full disk")

    remove = cuguest.on_incident(fail)
    for _ in range(2):
        with cuguest.guard(guest):
            driver.set(host)
        remove()
    assert len(seen) == 1 and [type(one.exc_value) for one in ignored] == [OSError]
    with pytest.raises(TypeError):
        cuguest.on_incident("no function")


def test_unrepaired_stack_is_an_error(quiet):
    row = (4, 2, 2, "host.py", 7, 16, 0, 0, 1)
    with pytest.raises(cuguest.Error, match="leave the guard of host.py:7") as raised:
        _python.report([row], True)
    assert raised.value.code == 2
    _python.report([row], False)  # an exception of the block goes on
    _python.report([(9, 2, 600, "host.py", 7, 16, 0, 0, 1)], True)  # ends later


@pytest.mark.parametrize("raised", ["", "raise KeyError('mine')"])
def test_driver_that_refuses_to_restore(driver, python, raised):
    """The exception of the block, if there is one, goes on."""
    if not driver.is_simulated:
        pytest.skip("a real driver does not")
    code, said = python(f"""
        import cuguest
        primary = cuguest.retain_primary(0)
        try:
            with cuguest.guard(primary):
                {raised or "pass"}
        except (cuguest.Error, KeyError) as error:
            print(type(error).__name__, getattr(error, "name", ""), getattr(error, "doing", ""))
    """, CUDASIM_FAIL=",".join(f"cuCtxPopCurrent:{nth}:2" for nth in (1, 2, 3)))
    assert code == 0 and "CuguestWarning" in said, said
    told = "KeyError" if raised else "Error CUDA_ERROR_OUT_OF_MEMORY leave the guard of <string>:5"
    assert told in [line.strip() for line in said.splitlines()], said


def test_entered_twice_is_refused(driver, two):
    host, guest = two
    one = cuguest.guard(guest)
    with one:
        with pytest.raises(cuguest.Error, match="a scope that is entered") as raised:
            one.__enter__()
        assert raised.value.name == "CUDA_ERROR_ILLEGAL_STATE"
        assert driver.stack() == [guest, host]
    with pytest.raises(cuguest.Error, match="not entered"):
        one.__exit__(None, None, None)
    with one:  # anew
        assert driver.stack() == [guest, host]
    assert driver.stack() == [host]


def test_guard_that_its_object_enters(driver, two):
    host, guest = two

    class Enters:
        @property
        def __cuda_stream__(self):
            one.__enter__()
            return 0, 1

    class Once:
        entered = False

        @property
        def __cuda_stream__(self):
            if not self.entered:
                self.entered = True
                one.__enter__()
            return 0, 1

    one = cuguest.guard(Enters())
    with pytest.raises(RecursionError):
        one.__enter__()
    one = cuguest.guard(Once())
    with pytest.raises(cuguest.Error):
        one.__enter__()
    one.__exit__(None, None, None)
    assert driver.stack() == [host]


def test_guard_that_its_object_enters_keeps_its_context(driver):
    """The failed entering from outside drops nothing that the one from inside holds."""
    if driver.is_active():
        pytest.skip("somebody in this process holds the primary context")
    mine = cuguest.retain_primary(0)

    class Stream:
        device_id, entered = 0, False

        @property
        def __cuda_stream__(self):
            if not self.entered:
                self.entered = True
                one.__enter__()
            return 0, 0

    one = cuguest.guard(Stream())
    with pytest.raises(cuguest.Error):
        one.__enter__()
    mine.release()
    assert driver.is_active()
    one.__exit__(None, None, None)
    assert not driver.is_active() and driver.stack() == []


def test_dropped_guard_is_left(driver, two):
    host, guest = two
    one = cuguest.guard(guest)
    one.__enter__()
    assert driver.stack() == [guest, host]
    del one
    assert driver.stack() == [host]


def test_guard_in_a_cycle_is_collected(driver, two):
    class Owner:
        def __init__(self):
            self.guard = cuguest.guard(self)
            self.guard_of_mine = cuguest.guard(guest)
            self.guard_of_mine.__enter__()

    host, guest = two
    seen = weakref.ref(Owner())
    gc.collect()
    assert seen() is None
    assert driver.stack() == [host]


def test_out_of_turn_is_reported(driver, two, incidents, quiet):
    host, guest = two
    outer, inner = cuguest.guard(guest), cuguest.guard(host)
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    assert [one.is_repaired for one in incidents] == [False] and incidents[0].code == 600
    inner.__exit__(None, None, None)
    assert driver.stack() == [host]


def test_nested_forty_deep(driver, two):
    def nest(depth):
        with cuguest.guard(two[depth % 2]):
            if depth:
                nest(depth - 1)
            assert driver.current() == two[depth % 2]

    nest(40)
    assert driver.stack() == [two[0]]


def test_host_scope_gives_the_stack_back(driver, two):
    host, guest = two
    with cuguest.guard(guest):
        with cuguest.host_scope():
            assert driver.stack() == [host]
        assert driver.stack() == [guest, host]
    with pytest.raises(TypeError):
        cuguest.host_scope(1)
    with pytest.raises(cuguest.Error):
        cuguest.host_scope().__exit__(None, None, None)


def test_interrupt_in_the_block(driver, two):
    host, guest = two
    # A shell lets what it starts in the background ignore it, and so does Python then.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            with cuguest.guard(guest):
                signal.raise_signal(signal.SIGINT)
        assert driver.stack() == [host]
    finally:
        signal.signal(signal.SIGINT, before)


def test_interrupts_at_any_time(driver, two):
    """Wherever a signal's handler raises, the guard is left, at the latest when it is dropped."""
    host, guest = two
    rounds = caught = 0

    class Tick(Exception):
        pass

    def tick(*_):
        raise Tick

    before = signal.signal(signal.SIGALRM, tick)
    try:
        while caught < 200:
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-5 + caught * 1e-7)
                while True:
                    rounds += 1
                    with cuguest.guard(guest):
                        pass
            except Tick:
                caught += 1
            assert driver.current() == host
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert driver.stack() == [host] and rounds > 200


def test_context_that_was_destroyed(driver, two):
    host, guest = two
    ref = cuguest.ContextRef(guest)
    assert ref.is_alive() and ref.handle == guest and ref == cuguest.ContextRef(guest) != cuguest.ContextRef(host)
    assert len({ref, cuguest.ContextRef(guest), cuguest.ContextRef(host)}) == 2
    driver.destroy(guest)
    assert not ref.is_alive()
    with pytest.raises(cuguest.Error) as raised:
        cuguest.guard(ref).__enter__()
    assert raised.value.name == "CUDA_ERROR_CONTEXT_IS_DESTROYED" and raised.value.code == 709
    assert f"{guest:#x}" in raised.value.doing and "destroyed" in raised.value.advice
    assert driver.stack() == [host]


@pytest.mark.parametrize("wrong, kind", [
    (0, ValueError), (1, ValueError), (4097, ValueError), (-8, ValueError), (2**64, ValueError), (2**200, ValueError),
    (2**20000, ValueError), (True, TypeError), ("0x7f00", TypeError), (4096.0, TypeError), (b"", TypeError), (int, TypeError),
    (object(), TypeError), ([], TypeError),
], ids=told)
def test_what_is_no_context(driver, two, wrong, kind):
    with pytest.raises(kind, match="cuguest: "):
        cuguest.guard(wrong).__enter__()
    assert driver.stack() == [two[0]]


def test_wrong_arguments():
    for call in (cuguest.guard, lambda: cuguest.guard(1, 2), lambda: cuguest.guard(x=1), cuguest.ContextRef,
                 lambda: cuguest.ContextRef("1")):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError):
        cuguest.ContextRef(7)
    for kind in (cuguest.guard, cuguest.ContextRef):
        with pytest.raises(TypeError):
            type("Sub", (kind,), {})


def test_code_that_is_no_file(driver, two, incidents, quiet):
    """As of exec, also when there are more files than cuguest remembers, and with a name that is not UTF-8."""
    host, guest = two
    for number in range(1100):
        code = compile("with guard(guest): set(host)", f"cell-{number}-\udcff", "exec")
        exec(code, {"guard": cuguest.guard, "guest": guest, "host": host, "set": driver.set})
    names = {one.file for one in incidents}
    assert len(incidents) == 1100 and "cell-0-\udcff" in names and "(too many files)" in names
    assert driver.stack() == [host]


def test_errors_of_memory_lose_nothing(driver, two):
    """An object that is used while a context is found is kept."""
    host, guest = two

    class Stream:
        handle = driver.stream(guest)

        def __cuda_stream__(self):
            return 0, self.handle

    stream = Stream()
    count = sys.getrefcount(stream)
    for _ in range(50):
        with cuguest.guard(stream):
            assert driver.current() == guest
    one = cuguest.guard(stream)
    del one
    assert sys.getrefcount(stream) == count
    assert ctypes.c_void_p(guest).value == guest

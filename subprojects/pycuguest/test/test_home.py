# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""home(): the context of a thread of one's own, or of a task on a pool."""

import ctypes
import gc
import os
import sys
import types
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

import cuguest
from cuguest import _python
from conftest import array_at, compile_library, on_a_thread, stream_of
from test_protocols import OBJECTS, Streamed

GIVEN = {
    "handle": lambda driver, guest: guest,
    "ref": lambda driver, guest: cuguest.ContextRef(guest),
    "acquired": lambda driver, guest: cuguest.acquire(Streamed((0, driver.stream(guest)))),
    "shared": lambda driver, guest: cuguest.shared(guest),
    **OBJECTS,
}


@pytest.mark.parametrize("name", GIVEN)
def test_thread_is_in_it(driver, two, incidents, name):
    _, guest = two
    x = GIVEN[name](driver, guest)

    def work():
        with cuguest.home(x) as home:
            home.check()
            with cuguest.guard(x):  # elides
                seen = driver.stack(), home.context
        return seen, driver.stack(), home.context

    (stack, context), after, none = on_a_thread(work)
    assert stack == [guest] and context.handle == guest
    assert after == [] and none is None and not incidents


def test_stack_is_as_before(driver, two):
    """It pushes, whatever is current."""
    host, guest = two
    for context in (guest, host):
        with cuguest.home(context):
            assert driver.stack() == [context, host]
        assert driver.stack() == [host]


@pytest.mark.parametrize("ask", [lambda **more: cuguest.home(cuguest.Primary(0), **more),
                                 lambda **more: cuguest.home(device=0, **more),
                                 lambda **more: cuguest.home(stream_of(0), **more)],
                         ids=["primary", "device", "special stream"])
@pytest.mark.parametrize("more", [{}, {"hold": True}, {"reenter": True}], ids=str)
def test_creates_nothing(inactive, ask, more):
    with pytest.raises(cuguest.Error) as raised:
        ask(**more).__enter__()
    assert raised.value.name == "CUDA_ERROR_INVALID_CONTEXT"
    assert not inactive.is_active() and inactive.stack() == []


@pytest.mark.parametrize("create", [True, "keep"])
def test_primary_that_is_to_be_created(inactive, create):
    with pytest.raises(ValueError, match="creates no context"):
        cuguest.home(cuguest.Primary(0, create=create)).__enter__()
    assert not inactive.is_active()


@pytest.mark.parametrize("ask", [lambda: cuguest.home(cuguest.Primary(0)), lambda: cuguest.home(device=0),
                                 lambda: cuguest.home(cuguest.acquire(device=0).context)],
                         ids=["primary", "device", "ref"])
def test_holds_nothing(inactive, quiet, ask):
    held = cuguest.retain_primary(0)
    with ask() as home:
        home.check()
        held.release()
        assert not inactive.is_active()
        with pytest.raises(cuguest.Error) as raised:
            home.check()
        assert raised.value.name == "CUDA_ERROR_CONTEXT_IS_DESTROYED" and inactive.stack() == []


def test_holds_where_asked_to(inactive):
    held = cuguest.retain_primary(0)
    with cuguest.home(device=0, hold=True) as home:
        held.release()
        home.check()
        assert inactive.is_active() and inactive.current() == home.context.handle
    assert not inactive.is_active() and inactive.stack() == []


def test_holds_no_created_context(driver, two):
    host, guest = two
    for x in (guest, Streamed((0, driver.stream(guest)))):
        with pytest.raises(cuguest.Error, match=f"{guest:#x}") as raised:
            cuguest.home(x, hold=True).__enter__()
        assert raised.value.name == "CUDA_ERROR_NOT_SUPPORTED"
        assert driver.stack() == [host]
    with cuguest.home(guest, reenter=True) as home:  # which has no next one
        home.check()


@pytest.mark.parametrize("hold", [False, True])
def test_reset_is_noticed(inactive, hold):
    with cuguest.retain_primary(0), cuguest.home(cuguest.Primary(0), hold=hold) as home:
        inactive.cuDevicePrimaryCtxReset_v2(0)
        for _ in range(2):
            with pytest.raises(cuguest.Error, match="bind a thread to its home") as raised:
                home.check()
            assert raised.value.code == 709 and inactive.stack() == []
    assert inactive.stack() == [] and not inactive.is_active()


@pytest.mark.parametrize("hold", [False, True])
def test_next_incarnation_is_entered(inactive, hold):
    with cuguest.retain_primary(0) as first:
        with cuguest.home(cuguest.Primary(0), hold=hold, reenter=True) as home:
            inactive.cuDevicePrimaryCtxReset_v2(0)
            with pytest.raises(cuguest.Error) as raised:  # and nobody has made it active yet
                home.check()
            assert raised.value.name == "CUDA_ERROR_INVALID_CONTEXT" and not inactive.is_active()
            with cuguest.retain_primary(0) as second:
                home.check()
                assert home.context == second.context != first.context
                assert inactive.stack() == [second.context.handle]
        assert inactive.stack() == []


def test_check_repairs_and_warns(driver, two, incidents):
    host, guest = two
    with cuguest.home(guest) as home:
        driver.set(host)
        with pytest.warns(cuguest.CuguestWarning, match="replaced") as told:
            home.check()
        assert driver.stack() == [guest, host] and len(incidents) == 1
        assert told[0].lineno == sys._getframe().f_lineno - 5
        driver.set(host)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(cuguest.CuguestWarning):
                home.check()
        assert driver.stack() == [guest, host]
    assert driver.stack() == [host]


def test_check_inside_a_guard(driver, two):
    host, guest = two
    with cuguest.home(guest) as home:
        with cuguest.guard(host):
            with pytest.raises(cuguest.Error) as raised:
                home.check()
            assert raised.value.name == "CUDA_ERROR_ILLEGAL_STATE"
            assert driver.stack() == [host, guest, host]
        home.check()


def test_exception_in_the_block(driver, two):
    host, guest = two
    with pytest.raises(KeyError, match="mine"):
        with cuguest.home(guest):
            raise KeyError("mine")
    assert driver.stack() == [host]


def test_tasks_on_a_pool(driver, two, incidents):
    _, guest = two
    stream = Streamed((0, driver.stream(guest)))

    def task(fails):
        with cuguest.home(stream) as home:
            home.check()
            assert driver.stack() == [guest]
            if fails:
                raise KeyError

    with ThreadPoolExecutor(4) as pool:
        tasks = [pool.submit(task, number % 5 == 0) for number in range(200)]
        failed = [type(one.exception()) for one in tasks]
        stacks = list(pool.map(lambda _: driver.stack(), range(20)))
    assert failed.count(KeyError) == 40 and failed.count(type(None)) == 160
    assert stacks == [[]] * 20 and not incidents


def test_release_ends_it(driver, two):
    host, guest = two
    with cuguest.home(guest) as home:
        home.release()
        assert driver.stack() == [host] and home.context is None
        home.release()
        with pytest.raises(cuguest.Error, match="check a home that no thread is in"):
            home.check()
    with home:  # anew
        assert driver.stack() == [guest, host]
        with pytest.raises(cuguest.Error, match="a scope that is entered"):
            home.__enter__()
    cuguest.home(guest).release()  # never entered
    assert driver.stack() == [host]


def test_released_on_another_thread(inactive, incidents, quiet):
    """Its own thread restores the stack when it next begins or ends a guard; what it held is released."""
    held = cuguest.retain_primary(0)
    host = inactive.create()
    inactive.set(host)
    home = cuguest.home(cuguest.Primary(0), hold=True)
    home.__enter__()
    held.release()
    with pytest.raises(cuguest.Error) as raised:
        on_a_thread(home.check)
    assert raised.value.name == "CUDA_ERROR_ILLEGAL_STATE" and inactive.is_active()
    on_a_thread(home.release)
    assert ["another thread" in incident.kind for incident in incidents] == [True] and not inactive.is_active()
    with cuguest.guard(host):
        pass
    assert inactive.stack() == [host]


def test_dropped_home_is_left(driver, two):
    class Owner:
        def __init__(self):
            self.home = cuguest.home(guest)
            self.home.__enter__()
            self.mine = cuguest.home(self)

    host, guest = two
    Owner()
    gc.collect()
    assert driver.stack() == [host]


def test_thread_that_ends_in_it(driver, two, incidents, quiet):
    _, guest = two
    homes = []

    def work():
        homes.append(cuguest.home(guest))
        homes[0].__enter__()

    on_a_thread(work)
    homes[0].release()  # nobody can restore that thread's stack any more
    assert driver.stack() == [two[0]] and [one.is_repaired for one in incidents] == [False]


@pytest.mark.parametrize("first", [cuguest.home, cuguest.acquire, cuguest.guard], ids=["home", "acquire", "guard"])
@pytest.mark.parametrize("then", [cuguest.home, cuguest.acquire], ids=["home", "acquire"])
def test_stream_that_went_with_its_context(driver, two, first, then):
    """The driver crashes on its handle, so it is not asked again for an object that was seen before."""
    host, guest = two
    stream = Streamed((0, driver.stream(guest)))
    with first(stream):
        pass
    driver.destroy(guest)
    with pytest.raises(cuguest.Error, match="make another stream"):
        with then(stream):
            pass
    assert driver.stack() == [host]


@pytest.mark.parametrize("enter", [cuguest.home, cuguest.acquire, cuguest.guard], ids=["home", "acquire", "guard"])
def test_stream_is_noted_once(driver, two, monkeypatch, enter):
    _, guest = two
    noted, note = [], _python.note_stream
    monkeypatch.setattr(_python, "note_stream", lambda *what: [noted.append(what), note(*what)])
    stream = Streamed((0, driver.stream(guest)))
    for _ in range(3):
        with enter(stream):
            pass
    assert noted == [(stream, stream.given[1], cuguest.ContextRef(guest))]


@pytest.mark.parametrize("enter", [cuguest.home, cuguest.guard], ids=["home", "guard"])
def test_stream_that_cannot_be_noted(driver, two, monkeypatch, enter):
    """As where a signal's handler raises there: it is not entered."""
    host, guest = two

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_python, "note_stream", interrupt)
    one = enter(Streamed((0, driver.stream(guest))))
    with pytest.raises(KeyboardInterrupt):
        one.__enter__()
    assert driver.stack() == [host]


def test_fork_in_the_block(driver, two):
    host, guest = two
    with cuguest.home(guest) as home:
        child = os.fork()
        if child == 0:
            try:
                home.check()
                code = 1
            except cuguest.Error as error:
                code = error.name != "CUDA_ERROR_NOT_INITIALIZED"
            home.release()
            os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        home.check()
    assert driver.stack() == [host]


@pytest.mark.parametrize("wrong, kind", [
    (0, ValueError), (4097, ValueError), (-8, ValueError), (2**64, ValueError), (True, TypeError), ("0x7f00", TypeError),
    (4096.0, TypeError), (int, TypeError), (object(), TypeError), ((2, 0, 0, 0, None), TypeError),
    (types.SimpleNamespace(__cuda_array_interface__={"data": (2**65, False)}), ValueError), (Streamed((0, 17)), ValueError),
    (Streamed((0, "1")), TypeError), (types.SimpleNamespace(__cuda_array_interface__={"data": (4096, False)}), cuguest.Error),
], ids=repr)
def test_what_is_no_context(driver, two, wrong, kind):
    home = cuguest.home(wrong)
    with pytest.raises(kind):
        home.__enter__()
    assert driver.stack() == [two[0]] and home.context is None


@pytest.mark.parametrize("scope", [cuguest.guard, cuguest.home])
def test_wrong_arguments(driver, scope):
    for call in (scope, lambda: cuguest.home(None), lambda: scope(1, 2), lambda: scope(x=1), lambda: scope(4096, device=0),
                 lambda: scope(device="0"), lambda: scope(device=True), lambda: scope(device=0.0),
                 lambda: type("Sub", (scope,), {})):
        with pytest.raises(TypeError):
            call()
    for device in (-1, 2**31, 2**70):
        with pytest.raises(ValueError, match="no device"):
            scope(device=device)
    with pytest.raises(cuguest.Error):  # what the driver has not
        scope(device=4096).__enter__()
    assert driver.stack() == []


def test_options_that_cannot_be_told(driver):
    class Angry:
        def __bool__(self):
            raise OSError("mine")

    for more in ({"hold": Angry()}, {"reenter": Angry()}):
        with pytest.raises(OSError, match="mine"):
            cuguest.home(device=0, **more)


def test_home_that_its_object_enters(driver, two):
    """As find() asks it."""
    host, guest = two

    class Enters:
        entered = False

        @property
        def __cuda_stream__(self):
            if not self.entered:
                self.entered = True
                home.__enter__()
            return 0, 1

    home = cuguest.home(Enters())
    with pytest.raises(cuguest.Error, match="a scope that is entered"):
        home.__enter__()
    home.release()
    assert driver.stack() == [host]


@pytest.mark.parametrize("hold", ["False", "True"])
def test_end_of_the_interpreter(python, hold):
    code, said = python("""
        import sys, threading
        import cuguest
        primary = cuguest.retain_primary(0)
        one = cuguest.home(device=0, hold=HOLD)
        one.__enter__()
        bound = threading.Event()
        def serve():
            with cuguest.home(primary, hold=HOLD) as home:
                home.check()
                bound.set()
                threading.Event().wait()
        threading.Thread(target=serve, daemon=True).start()
        bound.wait()
        sys.modules["keep"] = one
        print("end")
    """.replace("HOLD", hold))
    assert (code, said) == (0, "end\n")


@pytest.mark.parametrize("scope", [cuguest.guard, cuguest.home], ids=["guard", "home"])
def test_busy_scope_refuses(inactive, scope):
    """What another thread does with it while the driver is asked: here it is the driver that does it."""
    if not inactive.is_simulated:
        pytest.skip("needs the simulated driver, which says when it is called")
    names = []

    def use(_):
        for call in (one.__enter__, lambda: one.__exit__(None, None, None), getattr(one, "check", one.__enter__)):
            try:
                call()
                names.append("done")
            except cuguest.Error as error:
                names.append(error.name)

    def times(what):
        names.clear()
        with inactive.on_every_call(ctypes.CFUNCTYPE(None, ctypes.c_char_p)(use)):
            what()
        assert set(names) == {"CUDA_ERROR_ILLEGAL_STATE"}

    with cuguest.retain_primary(0):
        one = scope(cuguest.Primary(0), **({"hold": True} if scope is cuguest.home else {}))
        times(one.__enter__)
        times(lambda: one.__exit__(None, None, None))
    assert not inactive.is_active() and inactive.stack() == []


LOCK = """
    #include <string.h>
    static int (*holds_lock)(void);
    static const char* watched;
    static int with, without;
    void watch(int (*check)(void), const char* name) {
      holds_lock = check, watched = name, with = without = 0;
    }
    void called(const char* name) {
      if (strcmp(name, watched) == 0) holds_lock() ? ++with : ++without;
    }
    int counted(int locked) { return locked ? with : without; }
"""


def hold(driver):
    held = cuguest.retain_primary(0)
    with cuguest.home(device=0, hold=True):
        held.release()


def drop(driver):
    held = cuguest.retain_primary(0)
    home = cuguest.home(device=0, hold=True)
    home.__enter__()
    held.release()


def reenter(driver):
    with cuguest.retain_primary(0), cuguest.home(device=0, reenter=True) as home:
        driver.cuDevicePrimaryCtxReset_v2(0)
        with cuguest.retain_primary(0):
            home.check()


def create(driver):
    with cuguest.guard(cuguest.Primary(0, create=True)):
        pass


def keep(driver):
    cuguest.acquire(device=0, create="keep").release()
    cuguest.release_kept()


def find(driver):
    array = array_at(driver.memory(driver.create()))
    with cuguest.guard(array):
        pass


@pytest.mark.parametrize("work, name, times", [
    (hold, "cuDevicePrimaryCtxRetain", 2), (hold, "cuDevicePrimaryCtxRelease", 2),
    (drop, "cuDevicePrimaryCtxRelease", 2),
    # Two are the owner's.
    (reenter, "cuDevicePrimaryCtxRetain", 4), (reenter, "cuDevicePrimaryCtxRelease", 4),
    (create, "cuDevicePrimaryCtxRetain", 1), (create, "cuDevicePrimaryCtxRelease", 1),
    (keep, "cuDevicePrimaryCtxRetain", 2), (keep, "cuDevicePrimaryCtxRelease", 2),
    (find, "cuPointerGetAttribute", 1),
])
def test_other_threads_run_meanwhile(inactive, tmp_path, work, name, times):
    """The interpreter's lock is open over calls that take the driver's lock, or may create or destroy a context."""
    if not inactive.is_simulated:
        pytest.skip("needs the simulated driver, which says when it is called")
    compile_library(tmp_path, "liblock.so", LOCK)
    lock = ctypes.CDLL(str(tmp_path / "liblock.so"))
    watched = name.encode()
    lock.watch(ctypes.pythonapi.PyGILState_Check, watched)
    with inactive.on_every_call(lock.called):
        work(inactive)
    assert (lock.counted(0), lock.counted(1)) == (times, 0)
    assert not inactive.is_active()

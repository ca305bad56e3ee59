# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""acquire(), retain_primary(), release_kept(), shared(), Primary, free_memory()."""

import ctypes
import threading

import pytest

import cuguest
from conftest import array_at, stream_of
from test_guard import told


def test_primary_is_not_created(inactive):
    for ask in (lambda: cuguest.guard(cuguest.Primary(0)).__enter__(), lambda: cuguest.acquire(device=0),
                lambda: cuguest.acquire(cuguest.Primary(0)), lambda: cuguest.free_memory(0)):
        with pytest.raises(cuguest.Error) as raised:
            ask()
        assert raised.value.name == "CUDA_ERROR_INVALID_CONTEXT" and "device 0" in str(raised.value)
        assert "create=True" in raised.value.advice and "::" not in str(raised.value)
    assert not inactive.is_active() and inactive.stack() == []


def test_primary_is_held_for_the_block(inactive):
    with cuguest.guard(cuguest.Primary(0, create=True)):
        assert inactive.is_active() and inactive.current() is not None
    assert not inactive.is_active() and inactive.stack() == []


def test_retained_primary(inactive):
    with cuguest.retain_primary(0) as first:
        assert first.source == "created" and inactive.is_active() and inactive.stack() == []
        second = cuguest.retain_primary(0)
        assert second.source == "primary" and second.context == first.context
        with cuguest.guard(cuguest.Primary(0)):
            assert inactive.current() == first.context.handle == cuguest.current().handle
    assert inactive.is_active()
    second.release()
    second.release()
    assert not inactive.is_active() and not second.context.is_alive()
    with pytest.raises(cuguest.Error, match="released") as raised:
        cuguest.guard(second).__enter__()
    assert raised.value.name == "CUDA_ERROR_ILLEGAL_STATE"


def test_dropped_reference_is_released(inactive):
    held = cuguest.retain_primary(0)
    assert inactive.is_active()
    del held
    assert not inactive.is_active()


def test_released_inside_its_guard(inactive, quiet):
    held = cuguest.retain_primary(0)
    with cuguest.guard(held):
        held.release()
    assert inactive.stack() == []


def test_acquire_on_a_device(driver, two):
    host, _ = two
    with cuguest.acquire(device=0) as acquired:
        assert acquired.source == "current" and acquired.context.handle == host
        assert repr(acquired.context).startswith("<cuguest.ContextRef 0x")


def test_acquire_any(inactive):
    with pytest.raises(cuguest.Error) as raised:
        cuguest.acquire()
    assert raised.value.name == "CUDA_ERROR_INVALID_CONTEXT" and not inactive.is_active()
    with cuguest.retain_primary(0) as primary:
        with cuguest.acquire() as any_one:
            assert any_one.source == "primary" and any_one.context == primary.context and any_one.holds
        host = inactive.create()
        inactive.set(host)
        with cuguest.acquire() as any_one:
            assert any_one.source == "current" and any_one.context.handle == host and not any_one.holds
    assert inactive.stack() == [host]


def test_device_of_another_number(inactive):
    """Any context is that of the first device that has an active one."""
    try:
        acquired = cuguest.acquire(device=1, create="keep")
    except cuguest.Error as error:
        assert error.name == "CUDA_ERROR_INVALID_DEVICE"
        pytest.skip("there is one device")
    with acquired:
        assert acquired.source == "created" and acquired.device == 1
    try:
        with cuguest.acquire() as any_one:
            assert any_one.device == 1 and any_one.context == acquired.context
            stream = type("Stream", (), {"__cuda_stream__": (0, 1)})()  # of no device that it says
            with cuguest.guard(any_one), cuguest.acquire(stream) as found:
                assert found.device == 1 and found.source == "current"
        cuguest.release_kept(0)
        assert inactive.is_active(1)
    finally:
        cuguest.release_kept(1)
    assert not inactive.is_active(1) and not inactive.is_active(0)


def test_acquired_is_held_where_asked_to(inactive):
    with cuguest.retain_primary(0) as primary, cuguest.guard(primary):
        found = cuguest.acquire(device=0)
        assert found.source == "current" and not found.holds and found.device == 0 and primary.holds
        found.hold()
        assert found.holds
        primary.release()
        assert inactive.is_active()
    found.release()
    assert not inactive.is_active() and not found.holds
    for ask in (found.hold, lambda: found.device):
        with pytest.raises(cuguest.Error, match="released") as raised:
            ask()
        assert raised.value.name == "CUDA_ERROR_ILLEGAL_STATE"


def test_released_while_it_is_being_held(inactive):
    """Other threads run meanwhile: here it is the driver that has it released."""
    if not inactive.is_simulated:
        pytest.skip("needs the simulated driver, which says when it is called")
    with cuguest.retain_primary(0) as primary, cuguest.guard(primary):
        found = cuguest.acquire(device=0)
        release = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(lambda _: found.release())
        with inactive.on_every_call(release):
            found.hold()
        assert not found.holds
    assert not inactive.is_active()


def test_created_context_is_not_held(driver, two):
    host, guest = two
    found = cuguest.acquire(stream_of(driver.stream(guest)))
    assert found.device == 0
    with pytest.raises(cuguest.Error, match=f"hold, context {guest:#x}") as raised:
        found.hold()
    assert raised.value.name == "CUDA_ERROR_NOT_SUPPORTED" and not found.holds
    driver.destroy(guest)
    with pytest.raises(cuguest.Error) as raised:
        found.hold()
    assert raised.value.code == 709 and driver.stack() == [host]


def test_held_and_released_by_many_threads(inactive):
    """However they meet, no reference is lost and none is given back twice."""
    for _ in range(30):
        primary = cuguest.retain_primary(0)
        with cuguest.guard(primary):
            found = cuguest.acquire(device=0)
            threads = [threading.Thread(target=found.hold) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        primary.release()
        assert inactive.is_active() and found.holds
        found.release()
        assert not inactive.is_active()


def test_guard_holds_what_it_found(inactive):
    """The primary context, also where the object is a stream or an array that means its device."""
    for x in (cuguest.Primary(0), stream_of(0), array_at(0)):
        held = cuguest.retain_primary(0)
        with cuguest.guard(x):
            held.release()
            assert inactive.is_active() and inactive.stack() == [held.context.handle]
        assert not inactive.is_active() and inactive.stack() == []
    held = cuguest.retain_primary(0)
    with cuguest.guard(device=0):
        held.release()
        assert inactive.is_active()
    assert not inactive.is_active()


def test_guard_of_a_device(driver, two):
    host, _ = two
    with cuguest.guard(device=0):
        assert driver.stack() == [host]
    driver.set(None)
    if not driver.is_active():
        with pytest.raises(cuguest.Error, match="device 0") as raised:
            cuguest.guard(device=0).__enter__()
        assert raised.value.name == "CUDA_ERROR_INVALID_CONTEXT" and not driver.is_active()


@pytest.mark.parametrize("ask", [lambda: cuguest.acquire(device=0, create="keep"),
                                 lambda: cuguest.acquire(cuguest.Primary(0), create="keep"),
                                 lambda: cuguest.acquire(cuguest.Primary(0, create="keep")),
                                 lambda: cuguest.acquire(stream_of(0), create="keep"),
                                 lambda: cuguest.guard(cuguest.Primary(0, create="keep"))],
                         ids=["device", "object", "primary", "stream", "guard"])
@pytest.mark.parametrize("devices", [(), (0,)], ids=str)
def test_created_and_kept(inactive, ask, devices):
    kept = []
    try:
        for _ in range(3):
            with ask():
                kept.append(cuguest.acquire().context if inactive.is_active() else None)
            assert inactive.is_active() and inactive.stack() == []
    finally:
        cuguest.release_kept(*devices)
    assert None not in kept and len(set(kept)) == 1  # created once
    assert not inactive.is_active()
    cuguest.release_kept()


def test_active_primary_is_not_kept(inactive):
    with cuguest.retain_primary(0):
        cuguest.acquire(device=0, create="keep").release()
    assert not inactive.is_active()


def test_kept_primary_that_was_reset(inactive):
    try:
        cuguest.acquire(device=0, create="keep").release()
        inactive.cuDevicePrimaryCtxReset_v2(0)
        assert not inactive.is_active()
        cuguest.acquire(device=0, create="keep").release()
        assert inactive.is_active()
    finally:
        cuguest.release_kept(0)
    assert not inactive.is_active()


def test_what_create_cannot_be(inactive):
    for ask in (lambda: cuguest.acquire(device=0, create="kept"), lambda: cuguest.Primary(0, create="")):
        with pytest.raises(ValueError, match="neither True, nor False, nor 'keep'"):
            ask()
    for device, kind in ((-1, ValueError), (True, TypeError), ("0", TypeError)):
        with pytest.raises(kind):
            cuguest.release_kept(device)
    cuguest.release_kept(4096)  # of which none is kept
    with pytest.raises(TypeError, match="not any"):
        cuguest.acquire(create=True)
    assert repr(cuguest.Primary(0, create="keep")) == "cuguest.Primary(0, create='keep')"
    assert repr(cuguest.Primary(0, create=1)) == "cuguest.Primary(0, create=True)"
    assert not inactive.is_active()


def test_shared_is_destroyed_by_the_last(driver):
    one = cuguest.shared(device=0)
    other = cuguest.shared(one)
    by_handle = cuguest.shared(one.context.handle)
    assert one.use_count == 3 and driver.stack() == []
    ref = one.context
    with cuguest.guard(other):
        assert driver.current() == ref.handle
    by_handle.release()
    one.release()
    assert one.use_count == 0 and ref.is_alive()
    with other:
        pass
    assert not ref.is_alive()
    with pytest.raises(cuguest.Error, match="destroyed"):
        cuguest.shared(ref)


def test_shared_of_another_incarnation(inactive):
    """A context that was reset may be at the same address again, and is another one."""
    with cuguest.retain_primary(0) as held:
        ref = held.context
        inactive.cuDevicePrimaryCtxReset_v2(0)
    with cuguest.retain_primary(0) as held:
        assert held.context != ref
        with pytest.raises(cuguest.Error) as raised:
            cuguest.shared(ref)
        assert raised.value.code == 709
        with pytest.raises(cuguest.Error):
            cuguest.guard(ref).__enter__()


def test_shared_does_not_destroy_anothers(driver, two):
    _, guest = two
    cuguest.shared(guest).release()
    assert cuguest.ContextRef(guest).is_alive()


def test_released_by_many_threads(inactive):
    for _ in range(30):
        held = cuguest.retain_primary(0)
        threads = [threading.Thread(target=held.release) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not inactive.is_active()


# What holds something ends where the driver does not take it back: by a fault of its.
REFUSED = {
    "del of an Acquired": "held = cuguest.retain_primary(0); held = None",
    "del of a SharedContext": "held = cuguest.shared(device=0); held = None",
    "end of a guard": "with cuguest.guard(cuguest.Primary(0, create=True)): assert cuguest.current() is not None",
    "del of a guard": "held = cuguest.guard(cuguest.Primary(0, create=True)); held.__enter__(); held = None",
    "end of a home": "one = cuguest.retain_primary(0)\nwith cuguest.home(one, hold=True): pass",
}


@pytest.mark.parametrize("end", REFUSED)
def test_what_is_not_taken_back_is_told_at_once(driver, python, end):
    """As an incident and a warning, and as no error of the stack, which is as it was."""
    if not driver.is_simulated:
        pytest.skip("a real driver does not refuse")
    status, said = python("""
        import sys
        import cuguest
        seen = []
        cuguest.on_incident(seen.append)
        exec(sys.argv[1])
        print(len(seen), seen[0].kind, seen[0].code, cuguest.current())
    """, REFUSED[end], CUDASIM_FAIL="cuDevicePrimaryCtxRelease:1:999,cuCtxDestroy:1:999")
    assert status == 0 and "1 ended an object where the driver takes nothing back 999 None\n" in said, said
    assert said.count("CuguestWarning: a callee ended an object") == 1, said


def test_dropped_in_a_host_function_is_told_at_once(driver, python):
    """There the driver takes nothing back: the next call that gives something back does it."""
    status, said = python("""
        import ctypes
        import cuguest
        driver = ctypes.CDLL("libcuda.so.1")
        driver.cuInit(0)
        host, stream, popped = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        driver.cuCtxCreate_v2(ctypes.byref(host), 0, 0)
        driver.cuStreamCreate(ctypes.byref(stream), 0)
        seen, told = [], []
        cuguest.on_incident(lambda incident: seen.append(incident.code))
        kept = [cuguest.retain_primary(0)]

        @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        def drop(_):
            kept.clear()
            told.extend(seen)

        driver.cuLaunchHostFunc(stream, drop, None)
        driver.cuStreamSynchronize(stream)
        print(told)
    """)
    assert status == 0 and said.endswith("[800]\n") and said.count("CuguestWarning") == 1, said


def test_free_memory_leaves_nothing(inactive):
    free, total = cuguest.free_memory(0, create=True)
    assert 0 < free <= total and not inactive.is_active()
    assert cuguest.free_memory(0, create=True).total == total


@pytest.mark.parametrize("device, kind", [(-1, ValueError), (2**31, ValueError), (2**70, ValueError), (2**20000, ValueError),
                                          (True, TypeError), ("0", TypeError), (0.0, TypeError), (4096, cuguest.Error)],
                         ids=told)
def test_what_is_no_device(driver, device, kind):
    for ask in (cuguest.retain_primary, cuguest.free_memory, lambda one: cuguest.acquire(device=one),
                lambda one: cuguest.shared(device=one), lambda one: cuguest.guard(cuguest.Primary(one)).__enter__()):
        with pytest.raises(kind) as raised:
            ask(device)
        assert kind is not ValueError or "is no device" in str(raised.value)
    assert driver.stack() == []


def test_wrong_arguments(driver, two):
    host, guest = two
    for ask in (lambda: cuguest.acquire(None), lambda: cuguest.acquire(cuguest.ContextRef(guest)), lambda: cuguest.acquire(guest),
                lambda: cuguest.acquire(object(), device=0), cuguest.shared, lambda: cuguest.shared(True),
                lambda: cuguest.shared("x")):
        with pytest.raises(TypeError):
            ask()
    for number in (16 + 1, 2**20000):
        with pytest.raises(ValueError, match="is no CUcontext"):
            cuguest.shared(number)
    for number in (-1, 2**20000):
        with pytest.raises(ValueError, match="is no set of flags"):
            cuguest.shared(device=0, flags=number)
    with pytest.raises(TypeError, match="is a handle"):
        cuguest.acquire(2**20000)
    with pytest.raises(cuguest.Error, match="CUDA_ERROR_INVALID_VALUE"):
        cuguest.shared(device=0, flags=2**31)
    for kind in (cuguest.Acquired, cuguest.SharedContext):
        with pytest.raises(TypeError):
            kind()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""acquire(), retain_primary(), shared(), Primary, free_memory()."""

import threading

import pytest

import cuguest


@pytest.fixture
def inactive(driver):
    """Nobody holds the primary context of device 0."""
    if driver.is_active():
        pytest.skip("somebody in this process holds the primary context")
    return driver


def test_primary_is_not_created(inactive):
    for ask in (lambda: cuguest.guard(cuguest.Primary(0)).__enter__(), lambda: cuguest.acquire(device=0),
                lambda: cuguest.acquire(cuguest.Primary(0)), lambda: cuguest.free_memory(0)):
        with pytest.raises(cuguest.Error) as raised:
            ask()
        assert raised.value.name == "CUDA_ERROR_INVALID_CONTEXT" and "device 0" in str(raised.value)
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


def test_free_memory_leaves_nothing(inactive):
    free, total = cuguest.free_memory(0, create=True)
    assert 0 < free <= total and not inactive.is_active()
    assert cuguest.free_memory(0, create=True).total == total


@pytest.mark.parametrize("device, kind", [(-1, ValueError), (2**31, ValueError), (2**70, ValueError), (True, TypeError),
                                          ("0", TypeError), (0.0, TypeError), (4096, cuguest.Error)], ids=repr)
def test_what_is_no_device(driver, device, kind):
    for ask in (cuguest.retain_primary, cuguest.free_memory, lambda one: cuguest.acquire(device=one),
                lambda one: cuguest.shared(device=one), lambda one: cuguest.guard(cuguest.Primary(one)).__enter__()):
        with pytest.raises(kind):
            ask(device)
    assert driver.stack() == []


def test_wrong_arguments(driver, two):
    host, guest = two
    for ask in (lambda: cuguest.acquire(None), lambda: cuguest.acquire(cuguest.ContextRef(guest)), lambda: cuguest.acquire(guest),
                lambda: cuguest.acquire(object(), device=0), cuguest.shared, lambda: cuguest.shared(True),
                lambda: cuguest.shared("x")):
        with pytest.raises(TypeError):
            ask()
    with pytest.raises(ValueError):
        cuguest.shared(16 + 1)
    with pytest.raises(ValueError):
        cuguest.shared(device=0, flags=-1)
    with pytest.raises(cuguest.Error, match="CUDA_ERROR_INVALID_VALUE"):
        cuguest.shared(device=0, flags=2**31)
    for kind in (cuguest.Acquired, cuguest.SharedContext):
        with pytest.raises(TypeError):
            kind()

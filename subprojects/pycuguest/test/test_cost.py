# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a guard costs: time, best of many, so that what else the machine does is not measured; and calls of the driver."""

import time

import pytest

import cuguest
from conftest import array_at, stream_of

ROUNDS = 2000
LIMIT = 1.5e-6  # more than an empty `with`


class Empty:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def best(once):
    """Seconds of one round."""
    def measured():
        begin = time.perf_counter()
        once()
        return (time.perf_counter() - begin) / ROUNDS

    return min(measured() for _ in range(40))


@pytest.fixture
def empty():
    def once():
        for _ in range(ROUNDS):
            with Empty():
                pass

    return best(once)


def guarded(x):
    def once():
        for _ in range(ROUNDS):
            with cuguest.guard(x):
                pass

    return best(once)


@pytest.mark.parametrize("kind", ["handle", "ref", "held"])
def test_guard_of_the_current_context(driver, two, empty, record_property, kind):
    host, _ = two
    x = {"handle": host, "ref": cuguest.current(), "held": cuguest.shared(host)}[kind]
    more = guarded(x) - empty
    print(f"{kind}: {more * 1e9:.0f} ns more than an empty with of {empty * 1e9:.0f} ns")
    assert more < LIMIT


def test_guard_of_other_things(driver, two, empty):
    """No limit: what they cost is for the page."""
    _, guest = two
    stream = type("Stream", (), {"__cuda_stream__": (0, driver.stream(guest))})()
    array = type("Array", (), {"__cuda_array_interface__": {"data": (driver.memory(guest), False)}})()
    for name, x in (("another context", guest), ("a stream", stream), ("an array", array)):
        print(f"{name}: {(guarded(x) - empty) * 1e9:.0f} ns more than an empty with")


MADE = {
    "handle": lambda driver, context: context,
    "ref": lambda driver, context: cuguest.ContextRef(context),
    "stream": lambda driver, context: stream_of(driver.stream(context)),
    "array": lambda driver, context: array_at(driver.memory(context)),
    "special stream": lambda driver, context: stream_of(0),
    "empty array": lambda driver, context: array_at(0),
}


@pytest.mark.parametrize("name, where, calls", [
    ("handle", "current", 2), ("handle", "another", 4),
    ("ref", "current", 3), ("ref", "another", 5),
    # One asks whether the context is alive that the object was seen in before.
    ("stream", "current", 5), ("stream", "another", 7),
    ("array", "current", 4), ("array", "another", 6),
    ("special stream", "current", 3), ("empty array", "current", 3),
])
def test_calls_of_a_guard(driver, two, name, where, calls):
    """What finds the context has asked what entering it has to know."""
    if not driver.is_simulated:
        pytest.skip("a real driver counts no calls")
    x = MADE[name](driver, two[where == "another"])
    with cuguest.guard(x):  # the first of a stream notes it
        pass
    before = driver.total_calls()
    with cuguest.guard(x):
        pass
    assert driver.total_calls() - before == calls


@pytest.mark.parametrize("more, calls", [({}, 2), ({"reenter": True}, 3)], ids=str)
def test_calls_of_a_check(driver, two, more, calls):
    if not driver.is_simulated:
        pytest.skip("a real driver counts no calls")
    with cuguest.home(two[1], **more) as home:
        before = driver.total_calls()
        home.check()
        assert driver.total_calls() - before == calls


def test_calls_of_holding_twice(driver):
    if not driver.is_simulated:
        pytest.skip("a real driver counts no calls")
    with cuguest.retain_primary(0) as held:
        before = driver.total_calls()
        held.hold()
        assert driver.total_calls() == before

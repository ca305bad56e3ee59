# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a guard costs. Best of many: what else the machine does is not measured."""

import time

import pytest

import cuguest

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

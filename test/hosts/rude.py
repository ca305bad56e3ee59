# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What guests do that are no good guests: each deed must be noticed.

A deed is a generator: its first step is the deed, its second one tidies up. It is given a
context that is neither current nor primary, and the host's runtime, None if it has none of
its own. The stack has at least two entries.
"""

import ctypes

import driver

BLOCKING_SYNC = 4  # a flag of contexts

DEEDS = []


def deed(*noticed):
    """A deed that is seen in (at least) these names of watch.py."""
    def remember(generator):
        generator.noticed = set(noticed)
        DEEDS.append(generator)
        return generator
    return remember


def of_runtime(generator):
    generator.needs_runtime = True
    return generator


@deed("current", "stack")
def leaves_a_push(context, _runtime):
    driver.push(context)
    yield
    driver.pop()


@deed("current", "stack")
def replaces_the_callers_context(context, _runtime):
    before = driver.current()
    driver.call("cuCtxSetCurrent", driver.handle(context))
    yield
    driver.call("cuCtxSetCurrent", driver.handle(before))


@deed("current", "stack")
def pops_once_too_often(_context, _runtime):
    popped = driver.pop()
    yield
    driver.push(popped)


@deed("stack")
def loses_what_is_below(context, _runtime):
    top, below = driver.pop(), driver.pop()
    driver.push(context)
    driver.push(top)
    yield
    driver.pop(), driver.pop()
    driver.push(below)
    driver.push(top)


@deed("primaries")
def sets_flags_of_the_primary(_context, _runtime):
    flags, _ = driver.primary_state(0)
    driver.call("cuDevicePrimaryCtxSetFlags_v2", 0, flags ^ BLOCKING_SYNC)
    yield
    driver.call("cuDevicePrimaryCtxSetFlags_v2", 0, flags)


@deed("capture mode")
def stays_relaxed(_context, _runtime):
    mode = driver.exchange_capture_mode(driver.RELAXED)
    yield
    driver.exchange_capture_mode(mode)


@of_runtime
@deed("current", "stack")
def chooses_a_device(_context, runtime):
    before = driver.current()
    _, was_active = driver.primary_state(0)
    runtime.cudaSetDevice(0)
    yield
    driver.call("cuCtxSetCurrent", driver.handle(before))
    if not was_active:
        driver.call("cuDevicePrimaryCtxReset_v2", 0)


@of_runtime
@deed("last errors")
def leaves_an_error(_context, runtime):
    runtime.cudaMalloc(None, ctypes.c_size_t(1))
    yield
    runtime.cudaGetLastError()

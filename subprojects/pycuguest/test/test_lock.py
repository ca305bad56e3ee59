# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a call of the extension may wait, other threads run Python code meanwhile: each entry point, and each call of the
driver that it makes. What the page says of it. (How what holds a context is dropped: test_process.py.)"""

import ctypes
import pathlib
import re
import sys
import threading
import time
import types

import pytest

import cuguest
from conftest import array_at, compile_library, stream_of
from cuguest import _core

HERE = pathlib.Path(__file__).resolve().parent

# Calls of the driver that wait for nothing: the interpreter's lock may be kept.
SHORT = ("cuCtxGetCurrent", "cuCtxGetId", "cuCtxPopCurrent", "cuCtxPushCurrent", "cuStreamGetCtx")
# Each other call of the driver waits here until another thread has counted, for 2 s at most.
HOOK = """
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
int counted, began, stood_still;
static int length;
static char said[8192];
void load(const char* path) { dlopen(path, RTLD_NOW); }
void count(void) { __atomic_add_fetch(&counted, 1, __ATOMIC_SEQ_CST); }
static int wait_for_another(void) {
  const int before = __atomic_load_n(&counted, __ATOMIC_SEQ_CST);
  const struct timespec moment = {0, 1000000};
  for (int i = 0; i < 2000; ++i) {
    if (__atomic_load_n(&counted, __ATOMIC_SEQ_CST) != before) return 1;
    nanosleep(&moment, 0);
  }
  return 0;
}
void called(const char* name) {
  const int is_short = SHORT;
  const char* const how = is_short ? "short" : wait_for_another() ? "open" : "kept";
  length += snprintf(said + length, sizeof(said) - length, "%s:%s ", name, how);
}
const char* take(void) {
  said[length] = 0;
  length = 0;
  return said;
}
""".replace("SHORT", " || ".join(f'!strcmp(name, "{name}")' for name in SHORT))


@pytest.fixture(scope="module")
def hook(tmp_path_factory):
    """The library, of which another thread calls `count`."""
    folder = tmp_path_factory.mktemp("hook")
    compile_library(folder, "libhook.so", HOOK)
    library = ctypes.CDLL(str(folder / "libhook.so"))
    library.take.restype = ctypes.c_char_p
    ended = threading.Event()

    def count():
        while not ended.is_set():
            library.count()
            time.sleep(0.0005)

    thread = threading.Thread(target=count)
    thread.start()
    yield library
    ended.set()
    thread.join()


def entered(scope):
    scope.__enter__()
    return scope


def moved(home_of):
    """A home whose primary context was reset and made anew, and what holds the new one."""
    with cuguest.retain_primary(0) as first:
        home = entered(home_of(first))
        ctypes.CDLL("libcuda.so.1").cuDevicePrimaryCtxReset_v2(0)
    return home, cuguest.retain_primary(0)


# Each entry point: what the driver is asked in it, what was done before, and the call.
WAITS, SHORTLY, NOTHING = "what may wait", "what is short", "nothing"
POINTS = [
    ("acquire", WAITS, "", "cuguest.acquire(cuguest.Primary(0, create=True))"),
    ("acquire", WAITS, "", "cuguest.acquire(array)"),
    ("acquire", SHORTLY, "", "cuguest.acquire(stream)"),
    ("acquire_any", WAITS, "held = primary(); driver.set(None)", "cuguest.acquire()"),
    ("release_kept", WAITS, "cuguest.acquire(cuguest.Primary(0, create='keep'))", "cuguest.release_kept()"),
    ("create_shared", WAITS, "", "cuguest.shared(device=0)"),
    ("attach_shared", WAITS, "", "cuguest.shared(guest)"),
    ("current", SHORTLY, "", "cuguest.current()"),
    ("is_initialized", NOTHING, "primary()", "cuguest.is_initialized()"),
    ("free_memory", WAITS, "", "cuguest.free_memory(0)"),
    ("error_name", NOTHING, "", "_core.error_name(1)"),
    ("incident_name", NOTHING, "", "_core.incident_name(1)"),
    ("repair_name", NOTHING, "", "_core.repair_name(1)"),
    ("dlpack_pointer", NOTHING, "", "pytest.raises(TypeError, _core.dlpack_pointer, 0)"),
    ("ignore", NOTHING, "sys.unraisablehook = lambda _: None", "_core.ignore(KeyError(), print)"),
    ("ContextRef()", SHORTLY, "", "cuguest.ContextRef(guest)"),
    ("ContextRef.is_alive", SHORTLY, "ref = cuguest.ContextRef(guest)", "ref.is_alive()"),
    ("ContextRef.handle", NOTHING, "ref = cuguest.ContextRef(guest)", "ref.handle"),
    ("ContextRef.id", NOTHING, "ref = cuguest.ContextRef(guest)", "ref.id"),
    ("ContextRef.__repr__", NOTHING, "ref = cuguest.ContextRef(guest)", "repr(ref)"),
    ("ContextRef.__hash__", NOTHING, "ref = cuguest.ContextRef(guest)", "hash(ref)"),
    ("ContextRef.__eq__", NOTHING, "ref = cuguest.ContextRef(guest)", "ref == ref"),
    ("del ContextRef", NOTHING, "kept = [cuguest.ContextRef(guest)]", "kept.clear()"),
    ("Acquired()", NOTHING, "", "pytest.raises(TypeError, cuguest.Acquired)"),
    ("Acquired.context", NOTHING, "held = primary()", "held.context"),
    ("Acquired.source", NOTHING, "held = primary()", "held.source"),
    ("Acquired.holds", NOTHING, "held = primary()", "held.holds"),
    ("Acquired.device", NOTHING, "held = primary()", "held.device"),
    ("Acquired.device", WAITS, "held = cuguest.acquire(stream)", "held.device"),
    ("Acquired.hold", WAITS, "held = primary()\nwith cuguest.guard(held): found = cuguest.acquire(device=0)", "found.hold()"),
    ("Acquired.release", WAITS, "held = primary()", "held.release()"),
    ("Acquired.__enter__", NOTHING, "held = primary()", "held.__enter__()"),
    ("Acquired.__exit__", WAITS, "held = primary()", "held.__exit__(None, None, None)"),
    ("del Acquired", WAITS, "kept = [primary()]", "kept.clear()"),
    ("SharedContext()", NOTHING, "", "pytest.raises(TypeError, cuguest.SharedContext)"),
    ("SharedContext.context", NOTHING, "held = cuguest.shared(device=0)", "held.context"),
    ("SharedContext.use_count", NOTHING, "held = cuguest.shared(device=0)", "held.use_count"),
    ("SharedContext.release", WAITS, "held = cuguest.shared(device=0)", "held.release()"),
    ("SharedContext.__enter__", NOTHING, "held = cuguest.shared(device=0)", "held.__enter__()"),
    ("SharedContext.__exit__", WAITS, "held = cuguest.shared(device=0)", "held.__exit__(None, None, None)"),
    ("del SharedContext", WAITS, "kept = [cuguest.shared(device=0)]", "kept.clear()"),
    ("guard()", NOTHING, "", "cuguest.guard(guest)"),
    ("guard.__enter__", SHORTLY, "scope = cuguest.guard(guest)", "scope.__enter__()"),
    ("guard.__enter__", SHORTLY, "scope = cuguest.guard(cuguest.ContextRef(guest))", "scope.__enter__()"),
    ("guard.__enter__", SHORTLY, "scope = cuguest.guard(None)", "scope.__enter__()"),
    ("guard.__enter__", SHORTLY, "scope = cuguest.guard(stream)", "scope.__enter__()"),
    ("guard.__enter__", WAITS, "scope = cuguest.guard(array)", "scope.__enter__()"),
    ("guard.__enter__", WAITS, "held = primary(); driver.set(None); scope = cuguest.guard(device=0)", "scope.__enter__()"),
    ("guard.__enter__", WAITS, "held = primary(); driver.set(None); scope = cuguest.guard(stream_of(0))", "scope.__enter__()"),
    ("guard.__enter__", WAITS, "scope = cuguest.guard(cuguest.Primary(0, create=True))", "scope.__enter__()"),
    ("guard.__exit__", SHORTLY, "scope = entered(cuguest.guard(guest))", "scope.__exit__(None, None, None)"),
    ("guard.__exit__", SHORTLY, "scope = entered(cuguest.guard(guest)); driver.pop()", "scope.__exit__(None, None, None)"),
    ("guard.__exit__", WAITS, "scope = entered(cuguest.guard(cuguest.Primary(0, create=True)))", "scope.__exit__(None, None, None)"),
    ("guard.__exit__", WAITS, "scope = entered(cuguest.guard(cuguest.Primary(0, create=True)))", "scope.__exit__(KeyError, KeyError(), None)"),
    ("del guard", SHORTLY, "kept = [entered(cuguest.guard(guest))]", "kept.clear()"),
    ("del guard", WAITS, "kept = [entered(cuguest.guard(cuguest.Primary(0, create=True)))]", "kept.clear()"),
    ("del guard", WAITS, "kept = [cuguest.guard(primary())]", "kept.clear()"),
    ("home()", NOTHING, "", "cuguest.home(guest)"),
    ("home.__enter__", SHORTLY, "scope = cuguest.home(guest)", "scope.__enter__()"),
    ("home.__enter__", WAITS, "held = primary(); scope = cuguest.home(held, hold=True)", "scope.__enter__()"),
    ("home.context", NOTHING, "scope = entered(cuguest.home(guest))", "scope.context"),
    ("home.check", SHORTLY, "scope = entered(cuguest.home(guest))", "scope.check()"),
    ("home.check", SHORTLY, "scope = entered(cuguest.home(guest)); driver.pop()", "scope.check()"),
    ("home.check", WAITS, "scope, held = moved(lambda first: cuguest.home(first, reenter=True))", "scope.check()"),
    ("home.check", SHORTLY, "scope, held = moved(lambda first: cuguest.home(first, hold=True))", "pytest.raises(cuguest.Error, scope.check)"),
    ("home.release", SHORTLY, "scope = entered(cuguest.home(guest))", "scope.release()"),
    ("home.release", WAITS, "held = primary(); scope = entered(cuguest.home(held, hold=True)); held.release()", "scope.release()"),
    ("home.__exit__", WAITS, "held = primary(); scope = entered(cuguest.home(held, hold=True))", "scope.__exit__(None, None, None)"),
    ("del home", WAITS, "held = primary(); kept = [entered(cuguest.home(held, hold=True))]; held.release()", "kept.clear()"),
    ("host_scope()", NOTHING, "", "cuguest.host_scope()"),
    ("host_scope.__enter__", SHORTLY, "outer = entered(cuguest.guard(guest)); scope = cuguest.host_scope()", "scope.__enter__()"),
    ("host_scope.__exit__", SHORTLY, "outer = entered(cuguest.guard(guest)); scope = entered(cuguest.host_scope())", "scope.__exit__(None, None, None)"),
    ("del host_scope", SHORTLY, "outer = entered(cuguest.guard(guest)); kept = [entered(cuguest.host_scope())]", "kept.clear()"),
]
OTHERS = {"__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__getattribute__"}  # of __eq__'s slot; Python's own


def entry_points():
    """Of the extension: functions, types, and what these have."""
    for name, value in vars(_core).items():
        if isinstance(value, types.BuiltinFunctionType):
            yield name
        elif isinstance(value, type):
            yield from (f"{name}()", f"del {name}")
            yield from (f"{name}.{inner}" for inner, of in vars(value).items()
                        if isinstance(of, (types.MethodDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType))
                        and inner not in OTHERS)


def test_each_entry_point_has_its_place():
    assert sorted({point[0] for point in POINTS}) == sorted(entry_points())


def test_the_page_has_the_functions_that_may_wait():
    pages = (HERE.parent / "python.md", HERE.parents[2] / "docs" / "python.md")
    page = next(path for path in pages if path.exists()).read_text()
    told = re.search(r"^\| any of these may wait.*\| (.*) \|$", page, re.M)[1]
    names = {point[0].rpartition(".")[2] for point in POINTS if point[1] == WAITS and "__" not in point[0]}
    public = {"acquire_any": "acquire", "attach_shared": "shared", "create_shared": "shared"}
    functions = {public.get(name, name) for name in names if not name.startswith("del ")} | {"retain_primary"}
    assert set(re.findall(r"`(\w+)(?:\(\))?`", told)) == functions


@pytest.mark.parametrize("name, asked, before, call", POINTS, ids=[f"{point[0]}-{point[2] or point[3]}" for point in POINTS])
def test_waits_with_the_lock_open(inactive, two, hook, quiet, monkeypatch, name, asked, before, call):
    """No call of the driver that may wait is made with the interpreter's lock kept."""
    if not inactive.is_simulated:
        pytest.skip("needs the simulated driver, which says when it is called")
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    host, guest = two
    world = dict(globals(), driver=inactive, host=host, guest=guest, stream=stream_of(inactive.stream(guest)),
                 array=array_at(inactive.memory(guest)), primary=lambda: cuguest.retain_primary(0))
    try:
        exec(before, world)
        hook.take()
        with inactive.on_every_call(hook.called):
            world["made"] = eval(call, world)
    finally:
        world.clear()
    said = dict(word.split(":") for word in hook.take().decode().split())
    assert "kept" not in said.values(), said
    assert asked == (WAITS if "open" in said.values() else SHORTLY if said else NOTHING), said


# The first use of the driver waits for the loader's lock, in which others run constructors: this one waits for a thread of
# Python.
SLOW = """
#include <time.h>
extern int counted, began, stood_still;
__attribute__((constructor)) static void construct(void) {
  const struct timespec moment = {0, 1000000}, meanwhile = {0, 200000000};
  __atomic_store_n(&began, 1, __ATOMIC_SEQ_CST);
  nanosleep(&meanwhile, 0);
  const int before = __atomic_load_n(&counted, __ATOMIC_SEQ_CST);
  for (int i = 0; i < 3000; ++i) {
    if (__atomic_load_n(&counted, __ATOMIC_SEQ_CST) != before) return;
    nanosleep(&moment, 0);
  }
  stood_still = 1;
}
"""
FIRST = ["cuguest.is_initialized()", "cuguest.current()", "cuguest.ContextRef(2**20)", "cuguest.guard(2**20).__enter__()",
         "cuguest.guard(None).__enter__()", "cuguest.host_scope().__enter__()", "cuguest.home(2**20).__enter__()",
         "cuguest.acquire()", "cuguest.retain_primary(0)", "cuguest.shared(device=0)", "cuguest.free_memory(0, create=True)"]


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slow")
    compile_library(folder, "libhook.so", HOOK)
    compile_library(folder, "libslow.so", SLOW)
    return folder


@pytest.mark.parametrize("call", FIRST)
def test_first_use_waits_with_the_lock_open(driver, slow, python, call):
    status, said = python("""
        import ctypes, sys, threading, time
        import cuguest
        hook = ctypes.CDLL(sys.argv[1] + "/libhook.so", mode=ctypes.RTLD_GLOBAL)
        began, stood_still = (ctypes.c_int.in_dll(hook, name) for name in ("began", "stood_still"))

        def count():
            while True:
                hook.count()
                time.sleep(0.001)

        threading.Thread(target=count, daemon=True).start()
        loading = threading.Thread(target=hook.load, args=(sys.argv[1].encode() + b"/libslow.so",))
        loading.start()
        while not began.value:
            time.sleep(0.001)
        begin = time.monotonic()
        try:
            eval(sys.argv[2])
        except cuguest.Error:
            pass
        waited = time.monotonic() - begin
        loading.join()
        print(stood_still.value, waited > 0.1)
    """, str(slow), call)
    assert status == 0 and said == "0 True\n", said

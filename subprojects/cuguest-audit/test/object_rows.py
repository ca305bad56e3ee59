# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of truth_table.py: objects that are used after the end of their context, and what is no such use."""

import pathlib

# How a context begins, how it ends, and what that takes: all kinds, those of the driver where the runtime holds the primary
# context, or streams, which are all that a green context owns; the rest is the primary context's.
STREAMS = ("stream", "runtime-stream")
DRIVERS = ("stream", "event", "memory", "managed", "pinned", "portable", "module", "function", "array", "texture")
RUNTIMES = ("runtime-stream", "runtime-event", "runtime-memory", "runtime-pinned", "runtime-array")
ALL = DRIVERS + RUNTIMES
ENDS = {
    "its context was destroyed": ("host:set:h", "host:set:o host:destroy:h", ALL),
    "its context was destroyed while current": ("host:set:h", "host:destroy:h host:set:o", ALL),
    "another thread destroyed its context": ("host:set:h", "host:set:o host:thread:host:destroy:h", ALL),
    "its primary context was reset": ("host:set-primary:0", "host:set:o host:reset:0", ALL),
    "its primary context was released": ("host:set-primary:0", "host:set:o host:release:0", DRIVERS),
    "another thread reset its primary context": ("host:set-primary:0", "host:set:o host:thread:host:reset:0", ALL),
    "its green context was destroyed": ("host:retain:0 host:set-green", "host:set:o host:destroy-green", STREAMS),
    "its green context was the primary's last": ("host:set-green", "host:set:o host:destroy-green", ALL),
}
# Of which deeds of each kind is found that its context is over, and where the process then ends, if that owned it. What an
# address is may be asked of any.
FOUND = {
    "stream": "query use drop",
    "event": "query use drop",
    "memory": "use drop",
    "managed": "use drop",
    "pinned": "query use drop",
    "portable": "query use drop",
    "module": "query use drop",
    "function": "query use",
    "array": "query use drop",
    "texture": "query",  # to destroy a number that is none is no error
    "pool": "",
    "runtime-stream": "query use drop",
    "runtime-event": "query use drop",
    "runtime-memory": "use drop",
    "runtime-pinned": "query use drop",
    "runtime-array": "query use drop",
}
ABORTS = {(kind, deed) for kind in ("stream", "event", "array", "runtime-stream", "runtime-event", "runtime-array")
          for deed in ("query", "use", "drop")}
ABORTED = "terminated by signal 6"
CRASHED = "terminated by signal 11"  # a copy of memory that is not there
CRASHES = {("pinned", "use"), ("portable", "use")}
STALE = "used-after-context liba.so>-"


def verdict(kind, deed, taken, is_green):
    """What is found, and what the report says."""
    takes_all = kind in taken and not (is_green and kind in STREAMS)
    if takes_all and (kind, deed) in ABORTS | CRASHES:
        return STALE, ABORTED if (kind, deed) in ABORTS else CRASHED
    return STALE if deed in FOUND[kind].split() and (kind in taken or is_green and kind in STREAMS) else "", ""


def used(Row):
    """Of each kind, each end and each deed."""
    for how, (begin, end, taken) in ENDS.items():
        for kind in FOUND:
            for deed in ("query", "use", "drop"):
                finds, says = verdict(kind, deed, taken, "green" in how)
                yield Row(f"{deed} {kind}: {how}", f"{begin} liba.so:make:{kind} {end} liba.so:{deed}:{kind}", finds, says=says,
                          env={"CUDASIM_UNKNOWN_KERNELS": "skip"})


def made_again(Row):
    """Where another has the address now: whose it is cannot be known."""
    for kind in ("memory", "managed", "pinned", "runtime-memory"):
        for deed in ("use", "drop"):
            yield Row(f"{deed} {kind}: its address was given again",
                      f"host:set:h liba.so:make:{kind} host:set:o host:destroy:h libb.so:make:{kind} liba.so:{deed}:{kind}")
        yield Row(f"{kind}: its address was given again, and what is there is freed",
                  f"host:set:h liba.so:make:{kind} host:set:o host:destroy:h libb.so:make:{kind} libb.so:drop:{kind} "
                  f"liba.so:drop:{kind}")


def at_peace(Row):
    """What is no such use."""
    for kind in FOUND:
        yield Row(f"{kind}: it is freed before its context ends",
                  f"host:set:h liba.so:make:{kind} liba.so:drop:{kind} host:destroy:h host:set:o")
        yield Row(f"{kind}: its owner lets go of it", f"host:set:h liba.so:make:{kind} host:destroy:h host:set:o liba.so:sync")
        yield Row(f"{kind}: another context ends",
                  f"host:set:h liba.so:make:{kind} host:set:o liba.so:create liba.so:destroy:mine host:set:h "
                  f"liba.so:query:{kind} liba.so:drop:{kind}")
        yield Row(f"{kind}: made anew after the end",
                  f"host:set:h liba.so:make:{kind} host:set:o host:destroy:h liba.so:make:{kind} liba.so:query:{kind} "
                  f"liba.so:drop:{kind}")
        if (kind, "drop") not in ABORTS:
            yield Row(f"{kind}: freed in exit() after its context",
                      f"host:set:h libd.so:make:{kind} libd.so:at-unload:own:drop:{kind} host:set:o host:destroy:h")


def elsewhere(Row):
    """Which library is named."""
    yield Row("a stream that another library had lent",
              "host:set:h libb.so:make:stream libb.so:lend-object:stream liba.so:borrow:stream host:set:o host:destroy:h "
              "liba.so:query:stream", STALE, says=ABORTED)
    yield Row("libcublas.so uses what it has made for its caller",
              "host:set:h liba.so:do:libcublas.so:make:pinned host:set:o host:destroy:h liba.so:do:libcublas.so:drop:pinned", STALE)
    yield Row("libcublas.so, called by the program itself",
              "host:set:h libcublas.so:make:pinned host:set:o host:destroy:h libcublas.so:drop:pinned",
              "used-after-context host>-")
    yield Row("each of two libraries", "host:set:h liba.so:make:pinned libb.so:make:pinned host:set:o host:destroy:h "
              "liba.so:drop:pinned libb.so:drop:pinned", f"{STALE}; used-after-context libb.so>-")
    yield Row("in a thread of the library's",
              "host:set:h liba.so:make:pinned host:set:o host:destroy:h liba.so:thread:own:drop:pinned", STALE)
    yield Row("a primary context that was retained again",
              "host:set-primary:0 liba.so:make:memory host:reset:0 host:set-primary:0 liba.so:drop:memory", STALE)
    yield Row("in a child", "host:set:h liba.so:make:stream host:destroy:h host:fork:liba.so:query:stream",
              "forked-child liba.so>-")
    yield Row("a caller of exit() goes on using", "host:set:h liba.so:make:pinned host:set:o host:destroy:h "
              "host:at-exit:liba.so:drop:pinned")


def place_of(comment):
    """FILE:LINE of fixtures/caches.cc."""
    lines = (pathlib.Path(__file__).parent / "fixtures" / "caches.cc").read_text().splitlines()
    return f"(caches.cc:{next(i for i, line in enumerate(lines, 1) if line.endswith('// ' + comment))})"


def adopters(Row):
    """What I/O and communication libraries do: one pool for all contexts, streams by thread, events by interface."""
    for word, function, comment, ends in [
            ("pooled-buffer", "caches::ReadFile", "reads the buffer", CRASHED),
            ("pool-cleared", "caches::ClearPool", "frees the buffer", ""),
            ("kept-stream", "caches::Fill", "uses the stream", ABORTED),
            ("late-progress", "caches::Progress", "asks the event", ABORTED),
            ("late-close", "caches::Close", "destroys the event", ABORTED)]:
        for says in filter(None, [f"libcaches.so  {function} {place_of(comment)}", ends]):
            yield Row(f"{word}: {says}", word, "used-after-context libcaches.so>-", says=says)
    yield Row("memory of a primary context that was let go of", "dangling-memory", "used-after-context host>-",
              says="made by libcaches.so  caches::AllocateInPrimary")


def object_rows(Row):
    return [row for rows in (used, made_again, at_peace, elsewhere, adopters) for row in rows(Row)]

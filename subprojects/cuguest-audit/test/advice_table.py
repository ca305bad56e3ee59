# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CASES: for each advice of the report a program that has a finding with it, and the same one that does what it says.

`kind` and `of` are the advice's row in audit/command/advice.cc. `wrong` and `right` are words of fixtures/host.cc and
fixtures/script.h. Both programs test their work: the one that is repaired has no finding and ends with 0.
"""

import dataclasses
import typing


@dataclasses.dataclass
class Case:
    kind: str
    of: str
    wrong: str
    right: str
    call: str = ""  # of the finding; empty: the first one of the kind is meant
    options: str = ""
    env: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)


# The host's context is current in the end, and works.
END = " host:sync host:is-current:h host:work"


def of(kind, which, wrong, right, begin="host:set:h ", end=END, **more):
    return Case(kind, which, begin + wrong + end, begin + right + end, **more)


ON_THE_STACK = [
    of("leaked-push", "cuCtxCreate", "liba.so:do:[own:create,own:work]", "liba.so:do:[own:create,own:work,own:pop]"),
    of("leaked-push", "cuCtxPushCurrent", "liba.so:do:[own:push:o,own:work]", "liba.so:do:[own:push:o,own:work,own:pop]"),
    of("leaked-push", "cuCtxPushCurrent", "host:catch:liba.so:do:[own:push:o,own:throw]",
       "host:catch:liba.so:do:[own:push:o,own:pop,own:throw]"),
    of("leaked-push", "", "liba.so:do:[own:push:o,own:set:h]", "liba.so:do:[own:push:o,own:set:h,own:pop]"),
    of("leaked-push", "", "host:retain:0 liba.so:do:[own:push:o,own:device:0,own:malloc]",
       "host:retain:0 liba.so:do:[own:push:o,own:device:0,own:malloc,own:pop]"),
    of("extra-pop", "cuCtxPopCurrent", "liba.so:do:[own:push:o,own:pop,own:pop]", "liba.so:do:[own:push:o,own:pop]"),
    of("extra-pop", "", "host:push:o host:push:h liba.so:set:null",
       "host:push:o host:push:h liba.so:do:[own:save,own:set:null,own:push-saved]"),
    of("extra-pop", "", "host:push:o host:push:h liba.so:valid-devices",
       "host:push:o host:push:h liba.so:do:[own:save,own:valid-devices,own:push-saved]", call="cudaSetValidDevices"),
    of("replaced-context", "cuCtxPushCurrent or cuCtxCreate, after a pop", "liba.so:do:[own:pop,own:push:o,own:work]",
       "liba.so:do:[own:push:o,own:work,own:pop]"),
    of("replaced-context", "cuCtxPushCurrent or cuCtxCreate, after a pop", "liba.so:do:[own:pop,own:create,own:work]",
       "liba.so:do:[own:create,own:work,own:pop]", call="cuCtxCreate"),
    of("replaced-context", "cuCtxSetCurrent", "liba.so:do:[own:set:o,own:work]",
       "liba.so:do:[own:save,own:set:o,own:work,own:restore]"),
    of("replaced-context", "cuCtxSetCurrent", "liba.so:do:[own:set:o,own:work]", "liba.so:do:[own:push:o,own:work,own:pop]"),
    of("replaced-context", "", "host:retain:0 liba.so:do:[own:device:0,own:malloc]",
       "host:retain:0 liba.so:do:[own:save,own:device:0,own:malloc,own:restore]"),
    of("left-context", "", "liba.so:set:o", "liba.so:do:[own:set:o,own:work,own:set:null]", begin="host:set:h host:pop ",
       end=" host:is-current:null host:set:h host:work"),
    of("left-context", "", "liba.so:malloc", "liba.so:do:[own:malloc,own:set:null]",
       begin="host:retain:0 host:set:h host:pop ", end=" host:is-current:null host:set:h host:work", call="cudaMalloc"),
]
PRIMARIES = [
    of("created-primary", "cuDevicePrimaryCtxRetain", "host:lend liba.so:retain:0",
       "host:lend liba.so:do:[own:push-of-stream,own:work,own:pop]"),
    of("created-primary", "cuDevicePrimaryCtxRetain", "host:lend liba.so:retain:0",
       "host:lend liba.so:do:[own:push-of-memory,own:work,own:pop]"),
    of("created-primary", "cuGreenCtxCreate", "liba.so:make-green", "liba.so:work"),
    of("created-primary", "a copy or an access between devices by the runtime", "liba.so:do:[own:alloc,own:copy-between-devices]",
       "liba.so:do:[own:alloc,own:copy-between-contexts]"),
    of("created-primary", "a copy or an access between devices by the runtime",
       "host:pop liba.so:do:[own:peer-access,own:set:null] host:set:h",
       "host:pop liba.so:do:[own:push:h,own:peer-access-of-contexts,own:pop] host:set:h"),
    of("created-primary", "", "liba.so:thread:[own:malloc,own:free-malloc]",
       "liba.so:thread:[own:push:h,own:malloc,own:free-malloc,own:pop]"),
    of("query-created-primary", "cudaSetDevice", "liba.so:do:[own:save,own:device:0,own:restore]",
       "liba.so:do:[own:save,own:while-active:own:device:0,own:restore]"),
    of("query-created-primary", "cudaInitDevice", "liba.so:init-device:0", "liba.so:work"),
    of("query-created-primary", "cudaSetDeviceFlags", "host:pop liba.so:do:[own:device-flags:4,own:set:null] host:set:h",
       "host:pop liba.so:primary-flags host:set:h"),
    of("query-created-primary", "cudaDeviceGetExecutionCtx", "liba.so:execution-context:1", "liba.so:work",
       env={"CUDASIM_RUNTIME_VERSION": "13.5"}),
    of("query-created-primary", "cudaThreadExchangeStreamCaptureMode",
       "host:pop liba.so:do:[own:exchange-mode,own:set:null] host:set:h", "host:pop liba.so:relaxed:own:do:[] host:set:h"),
    of("query-created-primary", "cudaMemGetInfo", "host:pop liba.so:do:[own:ask-for-memory,own:set:null] host:set:h",
       "host:pop liba.so:do:[own:push:h,own:ask-for-memory,own:pop] host:set:h"),
    of("query-created-primary", "a call that frees", "host:pop liba.so:do:[own:free-null,own:set:null] host:set:h",
       "host:pop liba.so:do:[] host:set:h"),
    of("query-created-primary", "a call that frees", "host:pop liba.so:do:[own:destroy-null-texture,own:set:null] host:set:h",
       "host:pop liba.so:do:[] host:set:h", call="cudaDestroyTextureObject"),
    of("query-created-primary", "a call that frees", "liba.so:malloc liba.so:thread:own:free-malloc",
       "liba.so:malloc liba.so:thread:[own:push:h,own:free-malloc,own:pop]"),
    of("query-created-primary", "a call that waits", "host:pop liba.so:do:[own:device-sync,own:set:null] host:set:h",
       "host:pop liba.so:while-active:own:device-sync host:set:h"),
    of("query-created-primary", "a call that sets", "host:pop liba.so:do:[own:device-limit:4096,own:set:null] host:set:h",
       "host:pop liba.so:do:[own:create,own:device-limit:4096,own:pop] host:set:h"),
    of("query-created-primary", "", "host:lend host:pop liba.so:do:[own:ask-if-capturing,own:set:null] host:set:h",
       "host:lend host:pop liba.so:do:[own:push-of-stream,own:ask-if-capturing,own:pop] host:set:h"),
    Case("touched-device-zero", "cudaSetDevice, cudaInitDevice", "host:device:1 host:malloc liba.so:visit-device:0 host:work",
         "host:device:1 host:malloc liba.so:while-active:own:visit-device:0 host:work"),
    Case("touched-device-zero", "cudaSetDevice, cudaInitDevice",
         "host:device:1 host:malloc liba.so:thread:own:visit-device:1 host:work",
         "host:device:1 host:malloc liba.so:thread:[own:device:1,own:malloc,own:free-malloc] host:work"),
    Case("touched-device-zero", "", "host:device:1 host:malloc liba.so:thread:own:ask-for-memory host:work",
         "host:device:1 host:malloc liba.so:thread:[own:device:1,own:ask-for-memory] host:work"),
    of("reset-primary", "cuDevicePrimaryCtxReset", "host:retain:0 liba.so:do:[own:retain:0,own:reset:0]",
       "host:retain:0 liba.so:do:[own:retain:0,own:release:0]"),
    Case("reset-primary", "", "libb.so:malloc liba.so:device-reset libb.so:work", "libb.so:malloc liba.so:do:[] libb.so:work"),
    of("over-released-primary", "", "host:retain:0 liba.so:do:[own:retain:0,own:release:0,own:release:0]",
       "host:retain:0 liba.so:do:[own:retain:0,own:release:0]"),
    of("leaked-reference", "", "liba.so:do:[own:retain:0,own:release:0,own:retain:0]",
       "liba.so:do:[own:retain:0,own:release:0,own:retain:0,own:release:0]", options="--leaks=yes"),
]
CONTEXTS = [
    of("destroyed-context", "", "liba.so:do:[own:create,own:pop,own:destroy:h]",
       "liba.so:do:[own:create,own:pop,own:destroy:mine]"),
    of("destroyed-work", "", "liba.so:do:[own:create,host:alloc,own:destroy:mine]",
       "liba.so:do:[own:save,own:create,own:push-saved,host:alloc,own:pop,own:destroy:mine] host:free"),
    Case("destroyed-in-use", "", "host:set:o host:while-current-elsewhere:[h,liba.so:destroy:h] host:work",
         "host:set:o host:while-current-elsewhere:[h,liba.so:work] liba.so:destroy:h host:work"),
    Case("used-destroyed-context", "", "host:set:o liba.so:note-id:h host:destroy:h liba.so:push:h",
         "host:set:o liba.so:note-id:h liba.so:while-noted:[h,own:do:[own:push:h,own:work,own:pop]] host:destroy:h "
         "liba.so:while-noted:[h,own:do:[own:push:h,own:work,own:pop]] host:is-current:o host:work"),
    of("changed-setting", "a limit", "liba.so:limit:4096", "liba.so:limit-and-back:4096"),
    of("changed-setting", "flags of the primary context", "host:retain:0 liba.so:primary-flags",
       "host:retain:0 liba.so:primary-flags-and-back"),
    of("changed-setting", "flags", "liba.so:flags", "liba.so:flags-and-back"),
    of("changed-setting", "a cache configuration", "liba.so:cache-config", "liba.so:function-cache-config"),
    of("changed-setting", "", "liba.so:shared-config", "liba.so:shared-config-and-back"),
    of("left-error", "a call that asks", "liba.so:ask-for-no-device host:last-error",
       "liba.so:ask-driver-for-no-device host:last-error"),
    of("left-error", "a call that asks", "liba.so:ask-for-no-device host:last-error",
       "liba.so:do:[own:ask-for-no-device,own:last-error] host:last-error"),
    of("left-error", "", "liba.so:device:99 host:last-error", "liba.so:do:[own:device:99,own:last-error] host:last-error"),
    of("leaked-context", "", "liba.so:do:[own:create,own:pop] host:unload:liba.so",
       "liba.so:do:[own:create,own:pop,own:destroy:mine] host:unload:liba.so", options="--leaks=yes"),
]


def captured(which, wrong, right, call, before="own:do:[]", graph="graph", **more):
    """The words are in a library that is called while the host captures."""
    return of("broke-capture", which, *[f"liba.so:do:[own:alloc,own:open-stream,{before}] host:{graph}:liba.so:{words}"
                                        for words in (wrong, right)], call=call, **more)


CAPTURES = [
    captured("a call in stream 0, for which a blocking stream captures (906)", "fill:zero", "fill:own", "cuMemsetD8Async",
             graph="graph-of-blocking"),
    captured("a call about an event that was recorded in the capture (907)", "query-event:lent",
             "relaxed:own:query-event:own", "cuEventQuery", before="own:record"),
    captured("a wait in a capturing stream for an event from outside (905)", "wait-event:own", "wait-event-outside:own",
             "cuStreamWaitEvent", before="own:record"),
    captured("a wait that joins two captures (902)", "join-captures", "capture-alone", "cuStreamWaitEvent"),
    captured("a call about a whole context or device", "sync", "relaxed:own:sync-stream:own", "cuCtxSynchronize"),
    captured("a call about a whole context or device", "device-sync", "relaxed:own:sync-stream:own", "cudaDeviceSynchronize"),
    captured("a wait for or a query of a stream", "sync-stream:own", "relaxed:own:sync-stream:own", "cuStreamSynchronize"),
    captured("a wait for or a query of a stream", "sync-stream:lent", "unless-capturing:own:sync-stream:lent",
             "cuStreamSynchronize"),
    captured("a question about the captured stream", "stream-id:lent", "unless-capturing:own:stream-id:lent", "cuStreamGetId"),
    captured("a question about the captured stream", "stream-id:lent", "stream-context:lent", "cuStreamGetId"),
    captured("cuStreamAddCallback", "add-callback:lent", "add-host-function:lent", "cuStreamAddCallback"),
    captured("the launch or upload of a graph in the captured stream", "launch-graph:lent", "launch-graph:own",
             "cuGraphLaunch", before="own:make-graph"),
    captured("a copy between devices, or a prefetch, in the captured stream", "copy-peer:lent", "copy:lent",
             "cuMemcpyPeerAsync"),
    captured("", "alloc", "relaxed:own:alloc", "cuMemAlloc"),
    captured("", "malloc", "relaxed:own:malloc", "cudaMalloc"),
    captured("", "thread:[own:push:h,own:alloc]", "thread:own:relaxed:own:do:[own:push:h,own:alloc]", "cuMemAlloc"),
    captured("", "free", "relaxed:own:free", "cuMemFree"),
    captured("", "query-event:own", "relaxed:own:query-event:own", "cuEventQuery", before="own:record"),
    captured("", "limit-and-back:4096", "relaxed:own:limit-and-back:4096", "cuCtxSetLimit"),
    captured("", "make-graph", "relaxed:own:make-graph", "cuGraphInstantiate"),
]
NOTED = "host:set:h liba.so:do:[own:note-id:h,own:make:pinned] host:set:o host:destroy:h "
LEFT_OVER = [
    Case("used-after-context", "a call that frees", "host:set:h liba.so:make:pinned host:set:o host:destroy:h "
         "liba.so:drop:pinned host:work",
         "host:set:h liba.so:make:pinned liba.so:drop:pinned host:set:o host:destroy:h host:is-current:o host:work"),
    Case("used-after-context", "a call that frees", NOTED + "liba.so:drop:pinned host:work",
         NOTED + "liba.so:while-noted:[h,own:drop:pinned] host:is-current:o host:work"),
    Case("used-after-context", "", NOTED + "liba.so:query:pinned host:work",
         NOTED + "liba.so:do:[own:while-noted:[h,own:query:pinned],own:make:pinned,own:query:pinned,own:drop:pinned] "
         "host:is-current:o host:work"),
]
PROCESSES = [
    of("forked-child", "", "host:fork:liba.so:work", "host:spawn:[host:set:h,liba.so:work]"),
    Case("after-shutdown", "", "after-shutdown host:set:h host:work",
         "host:set:h liba.so:do:[own:alloc,own:free] host:work"),
    of("forbidden-use", "", "liba.so:malloc", "liba.so:work", options="--forbid=api:cudaMalloc"),
    of("noisy-call", "", "liba.so:pop", "liba.so:unless-nothing-is-current:own:pop", begin="", end=" host:set:h host:work",
       options="--noise"),
]
CASES = [*ON_THE_STACK, *PRIMARIES, *CONTEXTS, *CAPTURES, *LEFT_OVER, *PROCESSES]

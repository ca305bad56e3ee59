# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ROWS: programs, and what must be reported of each.

The program is audit_host with `words`, those of fixtures/host.cc and fixtures/script.h, and --error-exitcode=9. `finds` is
"KIND CULPRIT>VICTIM" for each finding in the order of the report, with "; " between them: libraries by file name, "host" for
the program, "-" for no victim, " x3" for three times, " in 2 processes", " after 1" for what follows from the first finding.
"""

import dataclasses
import typing

import object_rows


@dataclasses.dataclass
class Row:
    name: str
    words: typing.Optional[str]  # None: no program is given
    finds: typing.Optional[str] = ""  # None: whatever
    # What else must be in the report, and the exit status, which is 9 of a report with findings or that is incomplete.
    unaudited: typing.Sequence[str] = ()  # how the reason begins, of each process that is not audited
    incomplete: bool = False  # for another reason
    says: str = ""
    status: typing.Optional[int] = None
    refused: bool = False  # there is no report
    # In which circumstances.
    options: str = ""
    env: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    files: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)  # in the folder, {here}; they stay as they are
    outside: str = ":"  # shell, before the command is run
    inside: str = ""  # shell that the command runs, "$@" being the program
    program: str = "audit_host"  # a copy of it with that name, or another program with its path
    possible: str = "true"  # shell that fails where the row cannot be run
    # What the log must have of the last process, in this order: "KIND CALL".
    events: typing.Sequence[str] = ()


def log_of_leaks(number):
    """A log of a library that leaves pushes in so many places of its code."""
    lines = ["cuguest-audit-log 1", "process 1 100 99 - 0 /bin/host", "source cupti", "object 1 - /bin/host",
             "object 2 - /lib/third.so", "chain 1 1+1@50000", "context 1 1 cuCtxCreate context=1 device=0 chain=1",
             "call 1 2 cuCtxCreate before=0 after=1 context=1 chain=1"]
    for place in range(1, number + 1):
        lines += [f"chain 2 2+{place:x}@4ff00 1+1@50000",
                  f"call 1 {3 * place} cuCtxPushCurrent before=1 after=1 context=1 chain=2",
                  f"check 1 {3 * place + 1} - before=1 after=1 chain=1",
                  f"call 1 {3 * place + 2} cuCtxPopCurrent before=1 after=1 context=1 chain=1"]
    return "\n".join([*lines, "end", ""])


UNSEEN = "no process initialised CUDA"
LEAK = "host:set:h liba.so:push:o host:sync"
SUPPRESSION = "{\n known\n cuguest-audit:leaked-push\n ...\n}\n"
FULL = "the channel of 2 MiB was full; --buffer=8 makes it larger"

ON_THE_STACK = [
    Row("a push", LEAK, "leaked-push liba.so>host"),
    Row("a push, three times", "host:set:h" + 3 * " liba.so:push:o host:sync", "leaked-push liba.so>host x3"),
    Row("a push of what is current", "host:set:h liba.so:push-current host:sync", "leaked-push liba.so>host"),
    Row("a push before an exception", "host:set:h host:catch:liba.so:do:[own:push:o,own:throw] host:sync",
        "leaked-push liba.so>host"),
    Row("a push through cuGetProcAddress",
        "host:set:h liba.so:push-by-proc-address:o host:sync", "leaked-push liba.so>host"),
    Row("a push through dlsym", "host:set:h liba.so:push-by-dlsym:o host:sync", "leaked-push liba.so>host"),
    Row("a context that is created stays current", "host:set:h liba.so:create host:sync", "leaked-push liba.so>host"),
    Row("pushes of two libraries", "host:set:h liba.so:push:o host:sync libb.so:push:o host:sync",
        "leaked-push liba.so>host; leaked-push libb.so>host"),
    Row("pushes of two libraries, of what is current",
        "host:set:h liba.so:push-current host:sync libb.so:push-current host:sync",
        "leaked-push liba.so>host; leaked-push libb.so>host"),
    Row("a library and one that it calls", "host:set:h liba.so:do:[own:push:o,own:pop,libb.so:push:o,own:push:o] host:sync",
        "leaked-push libb.so>liba.so; leaked-push liba.so>host after 1"),
    Row("a library that minds only later", "host:set:h liba.so:do:[libb.so:push:o,own:push:o] host:sync",
        "leaked-push libb.so>liba.so; leaked-push liba.so>host after 1"),
    Row("a pop", "host:set:h liba.so:pop host:sync", "extra-pop liba.so>host"),
    Row("a pop of one of two entries that are the same",
        "host:set:h host:push:h liba.so:pop host:sync", "extra-pop liba.so>host"),
    Row("pops of two libraries", "host:set:h host:push:h liba.so:pop host:sync libb.so:pop host:sync",
        "extra-pop liba.so>host; extra-pop libb.so>host"),
    Row("pops of two libraries, and the same is current",
        "host:set:h host:push:h host:push:h liba.so:pop host:sync libb.so:pop host:sync",
        "extra-pop liba.so>host; extra-pop libb.so>host"),
    Row("two pops for one push", "host:set:h liba.so:do:[own:push:o,own:pop,own:pop] host:sync", "extra-pop liba.so>host"),
    Row("a null context is set", "host:set:h liba.so:set:null host:sync", "extra-pop liba.so>host"),
    Row("a null context is set over another",
        "host:set:h host:push:o liba.so:set:null host:sync host:push:o host:pop", "extra-pop liba.so>host"),
    Row("a callee sets null over what its caller has pushed", "host:set:h liba.so:do:[own:push:o,libb.so:set:null] host:sync",
        "extra-pop libb.so>liba.so"),
    Row("a library that calls itself through another",
        "host:set:h liba.so:do:[libb.so:do:[liba.so:push:o],own:alloc,own:pop] host:sync"),
    Row("another context is set", "host:set:h liba.so:set:o host:sync", "replaced-context liba.so>host"),
    Row("another is pushed in place of what is popped", "host:set:h liba.so:do:[own:pop,own:push:o] host:sync",
        "replaced-context liba.so>host"),
    Row("two libraries set contexts, and the host repairs it",
        "host:set:h liba.so:set:o host:set:h libb.so:set:o host:set:h",
        "replaced-context liba.so>host; replaced-context libb.so>host"),
    Row("cudaSetDevice", "host:set:h liba.so:device:0 host:sync",
        "query-created-primary liba.so>host; replaced-context liba.so>host"),
    Row("a context where there was none", "host:set:h host:pop liba.so:set:o host:sync", "left-context liba.so>host"),
    Row("a push in a thread of the host's", "host:thread:[host:set:h,liba.so:push:o,host:sync]", "leaked-push liba.so>host"),
    Row("the end of the host's thread", "host:thread:[host:set:h,liba.so:push:o]", "leaked-push liba.so>host"),
    Row("64 threads", "threads", "leaked-push libhostile.so>host"),
    Row("what follows from a callback", "host:set:h liba.so:do:[own:push:o,host:push:h,own:pop] host:sync",
        "leaked-push liba.so>host after 2; leaked-push host>liba.so"),
    Row("a destructor in dlclose", "host:set:h libd.so:at-unload:own:pop host:sync host:unload:libd.so host:sync",
        "extra-pop libd.so>host"),
    Row("over what a library has by the runtime, which goes on in that",
        "liba.so:malloc libb.so:create liba.so:malloc", "leaked-push libb.so>liba.so"),
    Row("twice over what a library has by the runtime, which goes on in that",
        "liba.so:malloc libb.so:do:[own:create,own:push:mine] liba.so:malloc",
        "leaked-push libb.so>liba.so"),
    Row("in place of what a library has by the runtime, which goes on in that",
        "liba.so:malloc libb.so:do:[own:create,own:pop,own:set:mine] liba.so:malloc", "replaced-context libb.so>liba.so"),
    Row("over what a library has by the runtime, which does not come back", "liba.so:malloc libb.so:create host:sync"),
    Row("over what a library has by the runtime, which chooses its device again",
        "liba.so:malloc libb.so:create liba.so:device:0 liba.so:malloc", "replaced-context liba.so>host"),
    Row("over what a library has by the runtime, and the host minds",
        "host:set:h host:pop liba.so:malloc libb.so:create liba.so:malloc",
        "created-primary liba.so>host; left-context liba.so>host; leaked-push libb.so>host"),
    Row("another primary context in place of what a library has by the runtime",
        "liba.so:malloc libb.so:device:1 liba.so:malloc"),
    Row("what the host repairs is found", "host:set:h liba.so:push:o host:pop host:sync", "leaked-push liba.so>host"),
]
PRIMARIES = [
    Row("a primary context is retained", "host:set:h liba.so:retain:0", "created-primary liba.so>host"),
    Row("a primary context as a side effect", "host:set:h liba.so:do:[own:save,own:device:1,own:restore] host:sync",
        "query-created-primary liba.so>host"),
    Row("a device's execution context", "host:set:h liba.so:execution-context:1", "query-created-primary liba.so>host",
        env={"CUDASIM_RUNTIME_VERSION": "13.5"}),
    Row("a primary context in a thread of the library's", "host:set:h liba.so:thread:own:malloc",
        "created-primary liba.so>host"),
    Row("device 0, of which nobody does anything", "touched-device-zero", "touched-device-zero libhostile.so>-"),
    Row("device 0, which is used later", "touched-device-zero use-device-zero"),
    Row("cudaDeviceReset under a sibling",
        "libb.so:malloc liba.so:device-reset libb.so:malloc", "reset-primary liba.so>libb.so"),
    Row("cuDevicePrimaryCtxReset under the host", "host:retain:0 liba.so:reset:0", "reset-primary liba.so>host"),
    Row("one release too many", "host:retain:0 liba.so:release:0", "over-released-primary liba.so>host"),
    Row("references that are not released", 1000 * "liba.so:retain:0 ", "leaked-reference liba.so>- x1000",
        options="--leaks=yes"),
    Row("references that are not released, without --leaks", 1000 * "liba.so:retain:0 "),
    Row("a context of a library that was unloaded", "liba.so:do:[own:create,own:pop] host:unload:liba.so",
        "leaked-context liba.so>-", options="--leaks=yes"),
    Row("a context of a library that is loaded", "liba.so:do:[own:create,own:pop]", options="--leaks=yes"),
]
CONTEXTS = [
    Row("the host's context is destroyed", "host:set:h liba.so:destroy:h", "destroyed-context liba.so>host"),
    Row("the host's green context is destroyed by the runtime", "host:set-green liba.so:destroy-execution-context",
        "destroyed-context liba.so>host", env={"CUDASIM_RUNTIME_VERSION": "13.5"}),
    Row("a context that is current elsewhere", "host:set:o host:while-current-elsewhere:[h,liba.so:destroy:h]",
        "destroyed-in-use liba.so>host"),
    Row("a destroyed context is used", "host:set:o host:destroy:h liba.so:push:h", "used-destroyed-context liba.so>-"),
    Row("the host's work goes with a library's context",
        "host:set:h liba.so:do:[own:create,host:alloc,own:destroy:mine] host:sync",
        "destroyed-work liba.so>host"),
    Row("the host has freed its work", "host:set:h liba.so:do:[own:create,host:alloc,host:free,own:destroy:mine] host:sync"),
    Row("a limit", "host:set:h liba.so:limit:4096 host:sync", "changed-setting liba.so>host"),
    Row("an error that is left", "host:set:h liba.so:device:99 host:last-error", "left-error liba.so>host"),
    Row("an allocation in a capture", "host:set:h host:capture:liba.so:alloc", "broke-capture liba.so>host"),
    Row("an allocation in a capture, in another thread", "host:set:h host:capture:liba.so:thread:[host:set:h,own:alloc]",
        "broke-capture liba.so>host"),
]
ENDS = [
    Row("a destructor in exit() that pops", "host:set:h libd.so:at-unload:own:pop host:sync"),
    Row("a destructor in exit() that sets null", "host:set:h libd.so:at-unload:own:set:null host:sync"),
    Row("a handler of exit() in which the host goes on", "host:set:h host:at-exit:[liba.so:push:o,host:sync]",
        "leaked-push liba.so>host"),
    Row("memory is freed after the driver's end", "after-shutdown", "after-shutdown libhostile.so>-"),
    Row("the library's call is the last", "host:set:h liba.so:push:o", "leaked-push liba.so>host"),
    Row("exit", "host:set:h liba.so:push:o exit", "leaked-push liba.so>host"),
    Row("quick_exit", "host:set:h liba.so:push:o quick_exit", "leaked-push liba.so>host"),
    Row("_exit: whether a library whose call is the last had returned", "host:set:h liba.so:push:o _exit",
        incomplete=True, says="nothing tells whether liba.so had returned from "),
    Row("kill: whether a library whose call is the last had returned", "host:set:h liba.so:pop host:signal:15",
        incomplete=True, says="; if it had, its cuCtxPopCurrent is a finding: extra pop"),
    Row("kill in a library", "host:set:h liba.so:do:[own:limit:4096,host:signal:15]", incomplete=True,
        says="; if it had, its cuCtxSetLimit is a finding: changed a setting"),
    Row("_exit, which is accepted", "host:set:h liba.so:push:o _exit", incomplete=True, options="--accept-incomplete",
        status=3),
    Row("_exit, which is suppressed", "host:set:h liba.so:push:o _exit", status=3, options="--suppressions={here}/known",
        files={"known": SUPPRESSION}, says='by "known"'),
    Row("_exit: a library whose fault is found", LEAK + " liba.so:push:o _exit", "leaked-push liba.so>host"),
    Row("_exit: a library that leaves nothing", "host:set:h liba.so:do:[own:push:o,own:pop] _exit", status=3),
    Row("_exit: what nobody minds", "liba.so:create _exit", status=3),
    Row("_exit: what the program itself leaves", "host:set:h host:push:o _exit", status=3),
    Row("exit in a library", "host:set:h liba.so:do:[own:push:o,own:exit:3]", status=3),
    Row("_exit", LEAK + " _exit", "leaked-push liba.so>host"),
    Row("a crash", LEAK + " crash", "leaked-push liba.so>host", says="terminated by signal 11"),
    Row("abort", LEAK + " host:signal:6", "leaked-push liba.so>host", says="terminated by signal 6"),
    Row("kill -9", LEAK + " host:signal:9", "leaked-push liba.so>host", says="terminated by signal 9"),
    Row("exec", "host:set:h host:exec:[host:set:h,liba.so:push:o,host:sync]", "leaked-push liba.so>host"),
]
PROCESSES = [
    Row("fork", "host:set:h host:fork:liba.so:sync", "forked-child liba.so>-"),
    Row("a child that first asks for the driver's version",
        "host:set:h host:fork:liba.so:do:[own:ask-for-version,own:sync,own:sync]", "forked-child liba.so>- x2"),
    Row("a child that first asks for an error's name",
        "host:set:h host:fork:liba.so:do:[own:ask-for-name,own:sync]", "forked-child liba.so>-"),
    Row("a child's thread that first asks for the driver's version",
        "host:set:h host:fork:liba.so:thread:[own:ask-for-version,own:sync]", "forked-child liba.so>-"),
    Row("a child that asks for the driver's version alone", "host:set:h host:fork:liba.so:ask-for-version"),
    Row("a child that calls nothing", "host:set:h host:fork:host:sleep:400"),
    Row("a child of _Fork that calls nothing", "host:set:h host:_Fork:host:sleep:400"),
    Row("a child of a child", "host:set:h host:fork:host:fork:[host:sleep:300,liba.so:sync]", "forked-child liba.so>-"),
    Row("a child of _Fork that exits", "host:set:h host:_Fork:host:exit:0 liba.so:push:o host:sync",
        "leaked-push liba.so>host"),
    Row("fork, and faults of both", LEAK + " host:fork:liba.so:sync libb.so:push:o host:sync",
        "leaked-push liba.so>host; leaked-push libb.so>host; forked-child liba.so>-"),
    Row("a child of _Fork", "host:set:h host:_Fork:[host:push:h,liba.so:push:o,host:sync]", "leaked-push liba.so>host"),
    Row("two processes", "host:set:h" + 20 * " liba.so:push:o host:sync", "leaked-push liba.so>host x40 in 2 processes",
        inside='"$@"; "$@"'),
    Row("SIGCHLD is ignored", LEAK, "leaked-push liba.so>host", outside='exec env --ignore-signal=CHLD "$@"',
        possible="env --ignore-signal=CHLD true"),
    Row("a file-size limit of the program", LEAK, "leaked-push liba.so>host", inside='ulimit -f 0; exec "$@"'),
    Row("a file-size limit of the command", LEAK, outside="ulimit -f 100", options="--log=/dev/null --trace=/dev/null",
        unaudited=["the file-size limit (ulimit -f) is below the 2 MiB"]),
    Row("a program that truncates its channel", "leaked-push truncate extra-pop _exit",
        "leaked-push libhostile.so>host; extra-pop libhostile.so>host"),
    Row("another PID namespace", LEAK, "leaked-push liba.so>host", inside='exec unshare --pid --fork --mount-proc "$@"',
        possible="unshare --pid --fork --mount-proc true"),
    Row("another mount namespace", LEAK, "leaked-push liba.so>host", inside='exec unshare --mount "$@"',
        possible="unshare --mount true"),
    Row("another network namespace", LEAK + 5 * " idle", inside='exec unshare --net "$@"', possible="unshare --net true",
        unaudited=["it is in another network namespace"]),
    Row("another root folder",
        "host:set:h liba.so:sync host:chroot:/tmp liba.so:push:o host:sync", "leaked-push liba.so>host",
        possible="chroot / true"),
    Row("another user", LEAK, "leaked-push liba.so>host",
        inside='exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"',
        possible='setpriv --reuid=65534 --regid=65534 --clear-groups test -r "$COMMAND" -a -x "$PROGRAM"'),
    Row("a process without the environment",
        LEAK + 5 * " idle", inside='exec env -i LD_LIBRARY_PATH="$LD_LIBRARY_PATH" "$@"',
        unaudited=["it was started without the variables of cuguest-audit in its environment"]),
    Row("descriptors are closed", LEAK, "leaked-push liba.so>host",
        inside='exec "$PYTHON" -c "import subprocess, sys; subprocess.run(sys.argv[1:], close_fds=True)" "$@"'),
    Row("a newline and an escape in the program's name", LEAK, r"leaked-push liba.so>a\nb\x1b[31m", program="a\nb\x1b[31m",
        says=r"a\nb\x1b[31m ("),
    Row("an escape in a library's name", "host:set:h libevil\x1b]0;x\x07\u009b.so:push:o host:sync",
        r"leaked-push libevil\x1b]0;x\x07\xc2\x9b.so>host", says=r"libevil\x1b]0;x\x07\xc2\x9b.so"),
    Row("TMPDIR is relative", LEAK, "leaked-push liba.so>host", env={"TMPDIR": "tmp"}, inside='cd /; exec "$@"'),
    Row("TMPDIR is missing", LEAK, "leaked-push liba.so>host", env={"TMPDIR": "/no/such/folder"}),
    Row("TMPDIR is full", LEAK, "leaked-push liba.so>host", env={"TMPDIR": "/dev/full"}),
    Row("--no-follow-fork behind a shell", LEAK, options="--no-follow-fork", inside='"$@"; exit 0',
        unaudited=["--no-follow-fork leaves out"]),
    Row("--no-follow-fork and the program itself", LEAK, "leaked-push liba.so>host", options="--no-follow-fork"),
    Row("no source of events", LEAK, options="--source=cupti", env={"CUGUEST_AUDIT_CUPTI": "/no/such/libcupti.so"},
        unaudited=["no source of events could be had"]),
    Row("no source of events, which is accepted", LEAK, options="--source=cupti --accept-incomplete", status=0,
        env={"CUGUEST_AUDIT_CUPTI": "/no/such/libcupti.so"}, unaudited=["no source of events could be had"]),
    Row("the auditor is stopped before the program starts", LEAK, inside='kill -STOP $PPID; "$@"; kill -CONT $PPID',
        unaudited=["it waited in vain for cuguest-audit"]),
    Row("the auditor is stopped", "host:signal-parent:19 flood host:signal-parent:18", incomplete=True, says=FULL),
    Row("the auditor is stopped, which is accepted", "host:signal-parent:19 flood host:signal-parent:18", incomplete=True,
        options="--accept-incomplete", status=0),
    Row("the auditor is stopped, and has room", "host:signal-parent:19 flood host:signal-parent:18", options="--buffer=8"),
    Row("64 threads while the auditor is stopped", "host:signal-parent:19" + 5 * " threads" + " host:signal-parent:18", None,
        incomplete=True, says=FULL),
    Row("no device", LEAK, env={"CUDASIM_DEVICES": "0"}, status=2, says=UNSEEN),
    Row("a program without CUDA", "", program="/bin/true", says=UNSEEN),
]
LIBRARIES = [
    *[Row(f"{name} is a library as others are", f"host:set:h {name}:push:o host:sync libx.so:do:{name}:push:h host:sync",
          f"leaked-push {name}>host x2")
      for name in ("libcuda-tools.so", "libnvidia-mine.so", "libcudart.solver.so", "libompute.so", "libffi_gpu.so",
                   "libgcc_sx.so", "libc.sound.so")],
    Row("a library that is loaded again elsewhere", "host:set:h" + 300 * " liba.so:push:o host:sync host:unload:liba.so",
        "leaked-push liba.so>host x300"),
    Row("a library that is loaded again 5000 times",
        "host:set:h" + 5000 * " liba.so:push:o host:pop host:unload:liba.so", None,
        incomplete=True, says="more than 4096 libraries were loaded"),
    Row("a copy in another folder", "host:set:h liba.so:push:o host:sync {libraries}/again/liba.so:push:o host:sync",
        "leaked-push liba.so>host x2"),
    Row("Python without its lock", LEAK, "leaked-push liba.so>host", inside='LD_PRELOAD=libaudit_free_threaded.so exec "$@"',
        says="the functions of Python 3.13.0 experimental free-threading build, for"),
]
OPTIONS = [
    Row("--forbid=init", "print", "forbidden-use host>-", options="--forbid=init", says="did what is forbidden"),
    Row("--forbid=context:0", "liba.so:malloc", "forbidden-use liba.so>-", options="--forbid=context:0"),
    Row("--forbid=context:1", "liba.so:malloc", options="--forbid=context:1"),
    Row("--forbid=api:", "liba.so:malloc", "forbidden-use liba.so>-", options="--forbid=api:cudaMal*"),
    Row("--forbid=api: of what a runtime calls", "liba.so:malloc", options="--forbid=api:cuMem*"),
    Row("a suppression", LEAK, options="--suppressions={here}/known", files={"known": SUPPRESSION}, says='by "known"'),
    Row("a suppression of what is not found",
        "host:set:h", options="--suppressions={here}/known", files={"known": SUPPRESSION},
        says="unused suppression: known ("),
    Row("a suppression with an error",
        LEAK, options="--suppressions={here}/known", files={"known": "{\n x\n cuguest-audit:leaked-push\n f:x\n}\n"},
        status=125, refused=True, says="known:4: "),
    Row("an error in .cuguest-audit", LEAK, files={".cuguest-audit": "# all\n\n--jsno=x\n"}, status=125, refused=True,
        says=".cuguest-audit:3: there is no option --jsno"),
    Row("two outputs in one file", LEAK, options="--log={here}/report.json", status=125, refused=True, says="name one file"),
    Row("a log that is to be replayed", None, options="--log={here}/log --replay={here}/log", files={"log": log_of_leaks(1)},
        status=125, refused=True, says="name one file"),
    Row("a program that cannot be found", "", program="/no/such/program", status=127, refused=True),
]
LOGS = [
    Row("a log", None, "leaked-push third.so>host", options="--replay={here}/log", files={"log": log_of_leaks(1)}),
    Row("a log of a newer version", None, options="--replay={here}/log", files={"log": "cuguest-audit-log 99\nend\n"},
        status=125, refused=True, says="line 1: "),
    Row("a log of an older version", None, options="--replay={here}/log", files={"log": "cuguest-audit-log 0\nend\n"},
        status=125, refused=True, says="line 1: "),
    Row("an empty log", None, options="--replay={here}/log", files={"log": ""}, status=125, refused=True, says="line 1: "),
    Row("what is no log", None, options="--replay={here}/log", files={"log": "\x7fELF"}, status=125, refused=True,
        says="line 1: "),
    Row("a log that was cut off", None, "leaked-push third.so>host", options="--replay={here}/log", incomplete=True,
        files={"log": log_of_leaks(1).removesuffix("end\n")}, says="cut off; the report is of what precedes it"),
    Row("more findings than there is room for",
        None, None, options="--replay={here}/log", files={"log": log_of_leaks(16385)},
        incomplete=True, says="1 time a finding was dropped"),
    Row("a finding dropped, which is accepted", None, None, options="--replay={here}/log --object=none --accept-incomplete",
        files={"log": log_of_leaks(16385)}, incomplete=True, status=0),
]
NOISE = [
    Row("a call that fails", "liba.so:pop host:set:h host:sync", "noisy-call liba.so>host", options="--noise"),
    Row("a call that fails, and nobody asks", "liba.so:pop host:set:h host:sync"),
    Row("calls that fail in the program itself", "host:pop host:set:h host:sync", options="--noise"),
    Row("no call that fails", "host:set:h liba.so:do:[own:push:o,own:alloc,own:pop] host:sync", options="--noise"),
]
# Where nothing is wrong, nothing is found, and nothing more where another one is.
NOTHING = [
    Row("a program that does nothing", "host:set:h"),
    Row("the runtime alone", "liba.so:malloc libb.so:device:1 libb.so:malloc liba.so:free-malloc"),
    Row("the runtime in the host's context",
        "host:set:h liba.so:malloc liba.so:ask-for-memory liba.so:free-malloc host:sync"),
    Row("a push and a pop", "host:set:h" + 9 * " liba.so:do:[own:push:o,own:alloc,own:free,own:pop] host:sync"),
    Row("a pop and a push", "host:set:h liba.so:do:[own:pop,own:sync,own:push:h] host:sync"),
    Row("a library that sets, and restores", "host:set:h liba.so:do:[own:save,own:set:o,own:alloc,own:restore] host:sync"),
    Row("a library that restores what another one has left", "host:set:h liba.so:set:o host:sync "
        "libb.so:do:[own:save,own:set:o,own:alloc,own:restore] host:sync", "replaced-context liba.so>host"),
    Row("a guard of the device", "host:device:0 liba.so:visit-device:1 liba.so:malloc host:malloc"),
    Row("enter and leave", "host:set:h liba.so:push:o host:sync liba.so:pop host:sync"),
    Row("a context of the library's own", "host:set:h liba.so:do:[own:create,own:limit:4096,own:pop] "
        "liba.so:do:[own:push:mine,own:alloc,own:pop] liba.so:destroy:mine host:sync"),
    Row("a primary context, retained and released", "host:set:h liba.so:do:[own:retain:0,own:release:0] host:sync",
        options="--leaks=yes"),
    Row("a limit that is set back", "host:set:h liba.so:limit-and-back:4096 host:sync"),
    Row("an error that the library takes", "host:set:h liba.so:do:[own:device:99,own:last-error] host:last-error"),
    Row("a capture of which nobody takes notice", "host:set:h host:capture:liba.so:do:[own:push:o,own:pop] host:sync"),
    Row("a thread of the library's own", "host:set:h liba.so:thread:[own:push:o,own:alloc] host:sync"),
    Row("the library's own primary context is reset", "liba.so:malloc liba.so:device-reset"),
    Row("the program does what it likes", "host:set:h host:push:o host:set:h host:device:0 host:limit:4096 host:destroy:o"),
    Row("what an exception undoes", "host:set:h host:catch:liba.so:do:[own:push:o,own:pop,own:throw] host:sync"),
    Row("a callback in which the host behaves",
        "host:set:h liba.so:do:[own:push:o,host:push:h,host:alloc,host:pop,own:pop] host:sync"),
    Row("a library that is loaded and unloaded", "host:set:h" + 9 * " liba.so:sync host:unload:liba.so"),
]
# Those of the table in docs/audit.md, "What is in scope".
RUNTIME_13_5 = {"CUDASIM_RUNTIME_VERSION": "13.5"}
SCOPE = [
    Row("work in a stream of the library's own while another's context is current",
        "host:set:h liba.so:stream libb.so:do:[own:push:o,liba.so:work-in-stream,own:pop] host:sync"),
    Row("memory of the library's own pool while another's context is current",
        "host:set:h liba.so:do:[own:pool:0,own:alloc-from-pool,own:read,own:free-async] host:sync"),
    Row("pool memory of a caller in a library's context, which is destroyed",
        "host:set:h liba.so:do:[own:create,host:alloc-async,own:destroy:mine] host:sync"),
    Row("memory of a pool where no context is current, by the runtime", "host:set:h host:pop liba.so:malloc-async",
        "created-primary liba.so>host; left-context liba.so>host"),
    Row("pool memory of another device that the current context cannot reach",
        "host:set:h liba.so:do:[own:pool:1,own:alloc-from-pool,own:read] host:sync"),
    Row("pool memory of another device that the current context cannot reach, with --noise",
        "host:set:h liba.so:do:[own:pool:1,own:alloc-from-pool,own:read] host:sync", "noisy-call liba.so>host", options="--noise"),
    Row("the pool of a device, or its threshold, is set", "host:set:h liba.so:do:[own:pool:0,own:set-pool:0,own:set-threshold:0] host:sync"),
    Row("peer access is enabled in another's context", "host:retain:1 host:set:h liba.so:enable-peer:1 host:sync"),
    Row("a stream of the primary's execution context", "host:retain:0 host:set:h liba.so:do:[own:execution-stream:0,own:work-in-stream] host:sync",
        env=RUNTIME_13_5),
    Row("a stream of an execution context where the primary is not there",
        "host:set:h liba.so:execution-stream:1 host:sync", "query-created-primary liba.so>host", env=RUNTIME_13_5),
    Row("an execution context of another's is destroyed, with its streams", "host:set-green host:stream liba.so:destroy-execution-context",
        "destroyed-context liba.so>host", env=RUNTIME_13_5),
    Row("a pool is set while another captures", "host:set:h host:capture:liba.so:set-threshold:0", "broke-capture liba.so>host"),
]
# Of each kind: a program in which liba.so does it, the victim, options, and the events that the analysis decides by: Note [What
# each finding needs] in collector.h.
RETAIN, SET, DESTROY, CHECK = "call cuDevicePrimaryCtxRetain", "call cuCtxSetCurrent", "call cuCtxDestroy", "check cuCtxSynchronize"
NEEDS = {
    "leaked-push": ("host:set:h,liba.so:push:o,host:sync", "host", "", ["call cuCtxPushCurrent", CHECK]),
    "extra-pop": ("host:set:h,liba.so:pop,host:sync", "host", "", [SET, "call cuCtxPopCurrent", "call cuCtxSynchronize"]),
    "replaced-context": ("host:set:h,liba.so:set:o,host:sync", "host", "", [SET, SET, CHECK]),
    "left-context": ("host:set:h,host:pop,liba.so:set:o,host:sync", "host", "", ["call cuCtxPopCurrent", SET, CHECK]),
    "created-primary": ("host:set:h,liba.so:retain:0", "host", "", [SET, "context cuDevicePrimaryCtxRetain"]),
    "query-created-primary": ("host:set:h,liba.so:do:[own:save,own:device:1,own:restore],host:sync", "host", "",
                              [SET, "context cudaSetDevice"]),
    "touched-device-zero": ("liba.so:do:[own:device:1,own:malloc,own:visit-device:0]", "-", "",
                            ["context cudaSetDevice", "used cudaMalloc", "context cudaSetDevice"]),
    "reset-primary": ("host:retain:0,liba.so:reset:0", "host", "", [RETAIN, "call cuDevicePrimaryCtxReset"]),
    "over-released-primary": ("host:retain:0,liba.so:release:0", "host", "", [RETAIN, "call cuDevicePrimaryCtxRelease"]),
    "destroyed-context": ("host:set:h,liba.so:destroy:h", "host", "", [SET, DESTROY]),
    "destroyed-work": ("host:set:h,liba.so:do:[own:create,host:alloc,own:destroy:mine],host:sync", "host", "",
                       ["context cuCtxCreate", "used cuMemAlloc", DESTROY]),
    "destroyed-in-use": ("host:set:o,host:while-current-elsewhere:[h,liba.so:destroy:h]", "host", "", [SET, SET, DESTROY]),
    "used-destroyed-context": ("host:set:o,host:destroy:h,liba.so:push:h", "-", "", [DESTROY, "entered cuCtxPushCurrent"]),
    "changed-setting": ("host:set:h,liba.so:limit:4096,host:sync", "host", "", ["call cuCtxSetLimit", CHECK]),
    "left-error": ("host:set:h,liba.so:device:99,host:last-error", "host", "", ["call cudaSetDevice", "call cudaGetLastError"]),
    "broke-capture": ("host:set:h,host:capture:liba.so:alloc", "host", "",
                      ["call cuStreamBeginCapture", "call cuMemAlloc", "call cuStreamEndCapture"]),
    "forked-child": ("host:fork:liba.so:do:[own:ask-for-version,own:sync]", "-", "", ["call cuCtxSynchronize"]),
    "after-shutdown": ("host:at-unload:liba.so:sync", "-", "", ["process_end", "call cuCtxSynchronize"]),
    "leaked-reference": ("liba.so:retain:0", "-", "--leaks=yes", [RETAIN]),
    "leaked-context": ("liba.so:do:[own:create,own:pop],host:unload:liba.so", "-", "--leaks=yes", ["context cuCtxCreate", "unloaded"]),
    "forbidden-use": ("liba.so:malloc", "-", "--forbid=api:cudaMalloc", ["call cudaMalloc"]),
    "noisy-call": ("liba.so:pop,host:set:h,host:sync", "host", "--noise", ["call cuCtxPopCurrent"]),
    "used-after-context": ("host:set:h,liba.so:make:pinned,host:set:o,host:destroy:h,liba.so:drop:pinned", "-", "",
                           ["made cuMemHostAlloc", DESTROY, "stale cuMemFreeHost"]),
}
PLACES = {
    "": "host:do:[{}]",
    " in a second thread": "host:thread:[{}]",
    " in a forked child": "host:_Fork:[{},host:exit:0]",
    " in a thread of a forked child": "host:_Fork:[host:thread:[{}],host:exit:0]",
}
NEEDED = [
    *[Row(kind + where, place.format(words), f"{kind} liba.so>{victim}", options=options, events=events)
      for kind, (words, victim, options, events) in NEEDS.items() for where, place in PLACES.items()
      # A child has nothing of its parent's, and cannot make anything, but on the simulation.
      if kind != "used-after-context" or "child" not in where],
    # By the first call of a child.
    Row("a destroyed context that a child uses first", "host:set:o host:destroy:h host:_Fork:liba.so:push:h",
        "used-destroyed-context liba.so>-", events=["entered cuCtxPushCurrent"]),
    Row("a runtime's retain by a child's first call", "host:retain:0 host:device:1 host:_Fork:host:device:0",
        events=[RETAIN, "call cudaSetDevice"]),
    # What a process has told, its forked child tells again.
    Row("work of a process and of its child",
        "host:set:h host:alloc host:_Fork:host:alloc", events=["used cuMemAlloc"]),
    Row("a forbidden call of a process and of its child", "liba.so:ask-for-version host:_Fork:liba.so:ask-for-version",
        "forbidden-use liba.so>- x2 in 2 processes", options="--forbid=api:cuDriver*", events=["call cuDriverGetVersion"]),
]
OBJECTS = object_rows.object_rows(Row)
ROWS = [*ON_THE_STACK, *PRIMARIES, *CONTEXTS, *ENDS, *PROCESSES, *LIBRARIES, *OPTIONS, *LOGS, *NOISE, *NOTHING, *SCOPE, *NEEDED, *OBJECTS]

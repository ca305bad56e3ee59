#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""command_test.py COMMAND HOST HOSTILE PLUGIN NVML SIMDIR SOURCE_ROOT

cuguest-audit on the simulation, with a program that calls a library of faults: what is found and named, how programs end,
and what is reported of bad input.
"""

import json
import os
import pathlib
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time

import schema
from checks import check, done, skip
from command_runs import (command, ENVIRONMENT, FAULTS, folder, found, host, hostile, is_at, knows_lines, line_of,
                          NOTHING, ON_DEVICE_ONE, plugin, report_schema, root, Run, simdir, temporary)

# Each fault is found, once, at its line.
sections = {}
for kind, function in {**FAULTS, **ON_DEVICE_ONE}.items():
    run = Run("--", host, *["well"] * (kind in FAULTS), kind)
    finding = found(run, kind)
    check(f"finds {kind}", finding is not None and finding["count"] == 1, run)
    if finding:
        sections[kind] = finding["section"]
        culprit = finding["culprit"]
        check(f"{kind}: names the function and its line",
              culprit.get("function") == function and culprit["object"] == hostile
              and is_at(culprit, "hostile.cc", kind), culprit)
        place = f" (hostile.cc:{culprit['line']})" if knows_lines else ""
        check(f"{kind}: the report's text names it",
              f"{pathlib.Path(hostile).name}  {function}{place}" in run.err, run)
        why, todo = (re.search(rf"^    {label} +\S.*(?:\n {{12}}\S.*)*", run.err, re.M) for label in ("why:", "to do:"))
        check(f"{kind}: why it matters and what to do", finding["why"] and why and todo
              and finding["fix"] in re.sub(r"\s+", " ", run.err), run)
        lines = run.err[run.err.find("\n[1] "):].splitlines()
        check(f"{kind}: lines of 120 columns", all(len(line) <= 120 for line in lines), run)
    check(f"{kind}: the schema", run.report is not None and not schema.errors(run.report, report_schema),
          run.report and schema.errors(run.report, report_schema))

run = Run("--", host, "leaked-push", "leaked-push")
finding = found(run, "leaked-push") or {"victim": {}}
check("counts what is repeated", finding.get("count") == 2 and "2 times, first on thread 1 (tid " in run.err, run)
check("names the victim", finding["victim"] and "CallWith" in finding["victim"].get("function", ""), run)
check("names the library that created the context", re.search(r"context \d+ \(device 0, created by audit_host\b", run.err), run)

check("names a limit and its value", "CU_LIMIT_STACK_SIZE is 4096" in Run("--", host, "changed-setting").err)

run = Run("--", host, "well", "well", "print")
check("a program that behaves", run.findings == [] and "0 findings, 0 libraries" in run.err, run)
check("the program's output stays as it is", run.out == "output\n", run)
check("says where events come from", re.search(r"audit_host \(\d+\): events from cudasim", run.err), run)

run = Run("--", host, "unload")
finding = found(run, "leaked-push")
check("a library that was unloaded keeps its name",
      finding and finding["culprit"]["object"] == plugin
      and is_at(finding["culprit"], "plugin.cc", "leaked-push"), run)
if knows_lines:
    check("names an inlined function and the one that it is in",
          finding and finding["culprit"].get("inlined")
          and [(frame.get("function"), frame.get("line")) for frame in finding["chain"][:2]]
          == [("plugin::(anonymous namespace)::Leaker::Leak", line_of("plugin.cc", "leaked-push")),
              ("PluginLeaksPush", line_of("plugin.cc", "call of the inlined function"))], finding)

# What a reader gets.
page = root.parent.parent / "docs" / "audit.md"
if page.exists():
    check("sections of the manual", all(f"### {section} (`{kind}`)" in page.read_text()
                                        for kind, section in sections.items()), sections)
run = Run("--", host, "replaced-context")
check("why: the device of the next launch", "next launch runs on GPU 0, in context" in run.err, run)
check("a result has its name", "result: CUDA_ERROR_DEINITIALIZED" in Run("--", host, "after-shutdown").err)
check("cudaSetDevice is no query", "query" not in Run("--", host, "query-created-primary").err.split("\n", 2)[2])
check("the origin of a context", re.search(r"created by audit_host\s+in\s+Create", Run("--", host, "leaked-push").err))
check("the origin of a capture", re.search(r"of: +the capture that was begun by audit_host  CaptureAround",
                                           Run("--", host, "broke-capture").err))
run = Run("--paths", "--", host, "leaked-push")
check("--paths", f"{hostile}  hostile::LeakPush" in run.err and f"victim: {host}" in run.err, run)
copies = [pathlib.Path(folder.name) / name / "libplug.so" for name in ("first", "second")]
for copy in copies:
    copy.parent.mkdir()
    shutil.copy(plugin, copy)
copies[1].write_bytes(copies[1].read_bytes() + b"\0")
run = Run("--", "sh", "-c", " && ".join(f"HOST_PLUGIN={copy} {host} unload" for copy in copies))
check("two libraries of one file name are told apart",
      "first/libplug.so  Plugin" in run.err and "second/libplug.so  Plugin" in run.err, run)
run = Run("--", host, "callback-pushes")
causes = [finding for finding in run.findings if finding.get("consequence_of")]
check("what follows from a callback's fault names that", len(run.findings) == 2 and len(causes) == 1
      and causes[0]["culprit"].get("function") == "hostile::CallBack"
      and "PushOnce" in run.findings[causes[0]["consequence_of"] - 1]["culprit"].get("function", "")
      and re.search(r"cause:  \[\d\] leaked push by audit_host", run.err), run)
if knows_lines:
    run = Run("--", host, "push-twice")
    check("two calls on one line are one finding", run.kinds() == ["leaked-push"] and run.findings[0]["count"] == 2, run)
run = Run("--", host, "unload")
check("the headline has the function that returned", re.search(r"^\[1\] leaked push +\S+  PluginLeaksPush", run.err, re.M)
      and run.findings[0]["returned"]["function"] == "PluginLeaksPush", run)

# What is found if it is asked for.
run = Run("--leaks=yes", "--", host, *["created-primary"] * 3)
finding = found(run, "leaked-reference")
check("--leaks=yes: a reference", finding and finding["count"] == 3 and finding["victim"] is None
      and finding["culprit"].get("function") == "hostile::CreatePrimary", run)
FORBIDDEN = {
    ("init", "print"): ("cuInit", "main"),
    ("context", "well"): ("cuCtxCreate", "(anonymous namespace)::Create"),
    ("context:0", "well"): ("cuCtxCreate", "(anonymous namespace)::Create"),
    ("api:cuCtxPush*", "leaked-push"): ("cuCtxPushCurrent", "(anonymous namespace)::CallWith"),
    ("api:cudaMalloc", "use-device-zero"): ("cudaMalloc", "(anonymous namespace)::AllocateOn"),
    ("api:cuMemAlloc", "destroyed-work"): ("cuMemAlloc", "(anonymous namespace)::AllocateMemory"),
    ("api:cuStreamCreate", "broke-capture"): ("cuStreamCreate", "(anonymous namespace)::CaptureAround"),
}
for (what, word), expected in FORBIDDEN.items():
    run = Run(f"--forbid={what}", "--error-exitcode=9", "--", host, word, "exit")
    uses = [(use["call"], use["culprit"].get("function")) for use in run.findings if use["kind"] == "forbidden-use"]
    check(f"--forbid={what}: {word}", uses == [expected] and run.code == 9 and "did what is forbidden" in run.err, run)
    check(f"--forbid={what}: the schema", not schema.errors(run.report, report_schema))
log = pathlib.Path(folder.name) / "forbid.log"
Run(f"--log={log}", "--", host, "well")
run = Run("--forbid=api:cuCtxPush*", "--no-follow-fork", "--", "sh", "-c", f"exec '{host}' well")
check("--forbid: of a program that a program becomes", run.kinds() == ["forbidden-use"], run)
run = Run("--forbid=api:cuCtxPush*", "--", "sh", "-c", f"'{host}' well; '{host}' well; true", CUGUEST_AUDIT_OPTIONS="-v --paths")
check("--forbid: of processes that the program starts", run.kinds() == ["forbidden-use"]
      and run.findings[0]["call"] == "cuCtxPushCurrent" and "in 2 processes" in run.err
      and f"{host}  CallWith" in run.err and run.report["complete"], run)
run = Run("--forbid=init", "-q", "--", host, "print", "exit")
check("--forbid and -q", run.code == 3 and "did what is forbidden" in run.err and "to do:" in run.err, run)
run = Run("--forbid=context:1", "--leaks=yes", "-q", "--", host, "print")
check("--forbid and --leaks=yes and -q: nothing", run.code == 0 and run.err == "", run)
check("--forbid and --replay", Run("--forbid=init", f"--replay={log}").kinds() == ["forbidden-use"])

run = Run("--noise", "--error-exitcode=9", "--", host, "noisy-call", "exit")
finding = found(run, "noisy-call") or {"culprit": {}, "victim": {}}
check("--noise: a call of the driver that failed in a library", run.kinds() == ["noisy-call"] and run.code == 9
      and finding["culprit"].get("function") == "hostile::ProbeByFailing" and is_at(finding["culprit"], "hostile.cc", "noisy-call")
      and finding["victim"]["object"] == host and "result: CUDA_ERROR_INVALID_DEVICE" in run.err, run)
check("--noise: the schema", not schema.errors(run.report, report_schema), run)
check("--noise: a section of the manual", not page.exists() or f"### {finding.get('section')} (`noisy-call`)" in page.read_text())
run = Run("--noise", "--", host, "left-error", "well")
check("--noise: a call of the runtime, beside other findings", sorted(run.kinds()) == ["left-error", "noisy-call"], run)
check("without --noise", Run("--", host, "noisy-call").kinds() == [])
check("--noise of a program that behaves", Run("--noise", "--", host, "well", "unload").kinds() == ["leaked-push"])
supp = pathlib.Path(folder.name) / "noise.supp"
supp.write_text("{\n probing\n cuguest-audit:noisy-call\n fun:hostile::ProbeByFailing\n}\n")
run = Run("--noise", f"--suppressions={supp}", "--", host, "noisy-call")
check("--noise and suppressions", run.kinds() == [] and 'suppressed: 1 finding by "probing"' in run.err, run)
run = Run("--", host, "well", "own-thread")
finding = found(run, "created-primary") or {}
pid = run.report["processes"][0]["pid"]
check("the thread of a finding", finding.get("thread_name") == "worker" and finding["tid"] > pid
      and f"1 time, thread 2 (tid {finding['tid']}, \"worker\") at" in run.err, run)
run = Run("--", host, "leaked-push")
finding = found(run, "leaked-push") or {}
check("the thread of a finding in the first thread", finding.get("tid") == run.report["processes"][0]["pid"]
      and finding["thread_name"] == pathlib.Path(host).name[:15], run)

# How a process ends.
run = Run("--", host, "leaked-push", "exit")
check("the program's exit status", run.code == 3 and run.kinds() == ["leaked-push"] and run.report["exit_status"] == 3, run)
run = Run("--", host, "leaked-push", "crash")
check("a crash: what was found until then", run.code == 128 + signal.SIGSEGV and run.kinds() == ["leaked-push"]
      and run.report["signal"] == signal.SIGSEGV and "terminated by signal 11" in run.err, run)
NO_SIMULATION = {"LD_LIBRARY_PATH": "/"}
if subprocess.run([sys.executable, "-c", "import ctypes; ctypes.CDLL('libcuda.so.1')"], capture_output=True,
                  env={**ENVIRONMENT, **NO_SIMULATION}).returncode == 0:
    skip("no driver", "the machine has one")
else:
    run = Run("--", host, "print", **NO_SIMULATION)
    check("no driver", run.code == 127 and "libcuda.so.1" in run.err and "no process initialised CUDA" in run.err, run)
run = Run("--", host, "well", CUDA_INJECTION64_PATH="/opt/other.so")
check("names an injection that it takes the place of", "CUDA_INJECTION64_PATH was /opt/other.so" in run.err, run)

signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background job inherits that it is ignored
for sent in signal.SIGINT, signal.SIGTERM:
    report = pathlib.Path(folder.name) / "signalled.json"
    process = subprocess.Popen([command, f"--json={report}", "--", host, "leaked-push", "sleep"], env=ENVIRONMENT,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    process.stdout.readline()
    process.send_signal(sent)
    _, err = process.communicate(timeout=60)
    kinds = [finding["kind"] for finding in json.loads(report.read_text())["findings"]]
    check(f"{sent.name} ends the program, and then there is a report",
          process.returncode == 128 + sent and kinds == ["leaked-push"], err)
check("leaves nothing in the folder for temporary files", not list(temporary.iterdir()))


def started(*words, stdin=None):
    """The command with a program that has written a line."""
    process = subprocess.Popen([command, *words], env=ENVIRONMENT, stdin=stdin, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    process.stdout.readline()
    return process


def killed_with_its_program(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.communicate()


# Of two commands that name one file the first has it.
names = {name: pathlib.Path(folder.name) / f"shared{name}" for name in ("json", "html", "sarif", "trace", "log", "output")}
options = [f"--{name}={path}" for name, path in names.items()]
process = started(*options, "--", host, "leaked-push", "sleep")
run = Run(*options, "--", host, "extra-pop", json_file=False)
check("files that another command writes: named in the report, on standard error", "extra-pop" in run.err
      and all(f"{path}: another cuguest-audit writes it" in run.err for path in names.values()), run)
process.terminate()
_, err = process.communicate(timeout=60)
texts = {name: path.read_text() for name, path in names.items()}
check("and they are of the first command alone", "1 finding" in texts["output"] and texts["log"].endswith("\nend\n")
      and all(json.loads(texts[name]) for name in ("json", "sarif", "trace")) and texts["html"].endswith("</html>\n")
      and not any("extra-pop" in text for name, text in texts.items() if name != "sarif"), texts)

# However the command ends.
for sent in signal.SIGPIPE, signal.SIGUSR1, signal.SIGKILL:
    process = started("--", host, "leaked-push", "sleep")
    process.send_signal(sent)
    process.wait(timeout=60)
    check(f"{sent.name}: leaves nothing in the folder for temporary files", not list(temporary.iterdir()),
          list(temporary.iterdir()))
    killed_with_its_program(process)
process = started("--", host, "flood", stdin=subprocess.PIPE)
process.kill()
process.wait()
process.stdin.write("\n")
process.stdin.flush()
took = int(process.stdout.readline())
check("a program whose auditor was killed goes on at once", took < 1000, f"{took} ms")
killed_with_its_program(process)

# An auditor that does not run loses events, names the reason, and the program goes on.
process = started("--error-exitcode=9", "--", host, "flood", "leaked-push", stdin=subprocess.PIPE)
process.send_signal(signal.SIGSTOP)
process.stdin.write("\n")
process.stdin.flush()
took = int(process.stdout.readline())
process.send_signal(signal.SIGCONT)
_, err = process.communicate(timeout=60)
check("lost events: the reason, and how to lose none", process.returncode == 9 and re.search(
    r"events were lost: cuguest-audit was stopped or got no processor for \d\.\d s, and the channel of 2 MiB was full; "
    r"--buffer=8 makes it larger\n", err) and re.search(r"\d+ events were lost\n", err) and 1900 < took < 10000, err)
# What the command and the program inherit.
SIGNALS = "import signal; print([str(signal.getsignal(getattr(signal, s))) for s in ('SIGCHLD', 'SIGXFSZ', 'SIGTERM')])"
for handler in signal.SIG_DFL, signal.SIG_IGN:
    def set_signals(handler=handler):
        signal.signal(signal.SIGCHLD, handler)
        signal.signal(signal.SIGXFSZ, handler)
    try:
        run = Run("--", sys.executable, "-c", SIGNALS + "; raise SystemExit(7)", preexec=set_signals)
        # Python itself ignores SIGXFSZ.
        check(f"SIGCHLD {handler.name}: the program's exit status, and it inherits that",
              run.code == 7 and run.out.startswith(f"['{handler}'"), run)
    except subprocess.TimeoutExpired as expired:
        check(f"SIGCHLD {handler.name}: ends", False, expired)
run = Run("--", "sh", "-c", "trap '' CHLD; grep SigIgn /proc/self/status")
check("a program without an ignored signal has none", "SigIgn:\t0000000000000000" in run.out
      or int(run.out.split()[-1], 16) & (1 << (signal.SIGXFSZ - 1)) == 0, run)

check("no limit is reached in general", "limit was reached" not in Run("--", host, "well", "threads", "unload").err)

big = pathlib.Path(folder.name) / "big.log"
limited = subprocess.run(["sh", "-c", f"ulimit -f 5000; exec {command} --log={big} -- {host} threads threads threads threads "
                          + "threads " * 40], env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
check("a log beyond the file-size limit ends early, and there is a report", limited.returncode == 0
      and f"the log ends early: {big}: File too large" in limited.stderr, (limited.returncode, limited.stderr[-2000:]))
start = time.monotonic()
run = Run("--", "sh", "-c", '"$@" > /dev/null 2>&1 & sleep 0.3', "sh", host, "leaked-push", *["flood"] * 3000)
took = time.monotonic() - start
check("a process that is left behind and writes for ever is waited for no longer than a second",
      run.kinds() == ["leaked-push"] and "it still runs" in run.err and took < 8, (took, run.err[-500:]))
# A daemon, whose parents have ended before it uses CUDA.
LEFT = '(sleep {}; exec setsid "$@") > /dev/null 2>&1 &'
run = Run("--error-exitcode=9", "--", "sh", "-c", LEFT.format(0.4), "sh", host, "leaked-push")
check("a process that is left behind and then uses CUDA", run.kinds() == ["leaked-push"] and run.report["complete"], run)
run = Run("--error-exitcode=9", "--", "sh", "-c", LEFT.format(0.4), "sh", "env", "-i", f"LD_LIBRARY_PATH={simdir}", host,
          *["idle"] * 3)
check("a process that is left behind without the environment is named", run.code == 9 and [
    process.get("unaudited", "")[:37] for process in run.report["processes"]] == ["it was started without the variables "], run)
start = time.monotonic()
run = Run("--error-exitcode=9", "--", "sh", "-c", LEFT.format(0), "sh", "sleep", "4")
took = time.monotonic() - start
check("a process that is left behind and uses no CUDA is waited for no longer than a second, and named",
      run.code == 0 and run.report["complete"] and 0.9 < took < 3 and re.search(
          r"/\S*sleep \(\d+\) still runs, and has not used CUDA; what it does now is not audited", run.err), (took, run))
start = time.monotonic()
run = Run("--", "true")
took = time.monotonic() - start
check("where nothing is left behind, nothing is waited for", run.code == 0 and took < 0.7, (took, run))


LIBRARIES = {"LD_LIBRARY_PATH": f"{pathlib.Path(hostile).parent}:{simdir}"}
# Without socket().
SANDBOX = """
import ctypes, os, struct, sys
code = b"".join(struct.pack("HBBI", *line) for line in [(0x20, 0, 0, 0), (0x15, 0, 1, 41), (6, 0, 0, 0x50001), (6, 0, 0, 0x7fff0000)])
prctl = ctypes.CDLL(None, use_errno=True).prctl
lines = ctypes.create_string_buffer(code)
program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(lines))
if prctl(38, 1, 0, 0, 0) or prctl(22, 2, program): sys.exit("no seccomp")
os.execvp(sys.argv[1], sys.argv[1:])
"""
# In which there is no descriptor for the memory.
FEW_DESCRIPTORS = """
import ctypes, os, resource, sys, time
driver = ctypes.CDLL("libcuda.so.1")
free = os.dup(1)
os.close(free)
resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, free + 1))
driver.cuInit(0)
print("ready", flush=True)
time.sleep(float(sys.argv[1]))
"""
why = "the collector in it could not ask for a channel"
for options, code in ((["--error-exitcode=9"], 9), (["--error-exitcode=9", "--accept-incomplete"], 124)):
    run = Run(*options, "--", "timeout", "2", sys.executable, "-c", SANDBOX, host, "leaked-push", "sleep")
    check(f"a sandbox, {' '.join(options)}: named as not audited",
          run.code == code and run.report["processes"][0]["unaudited"].startswith(why) and NOTHING not in run.err
          and re.search(rf"\(\d+\): not audited, because {why}", run.err) and not run.report["complete"], run)
    check("a sandbox: the schema", not schema.errors(run.report, report_schema), run.report)
# Processes that are forked after cuInit.
POOL = """
import ctypes, multiprocessing, time
ctypes.CDLL("libcuda.so.1").cuInit(0)
with multiprocessing.get_context("fork").Pool(2) as pool: pool.map(abs, [-1, 2]), time.sleep(0.4)
"""
run = Run("--error-exitcode=9", "--", sys.executable, "-c", POOL)
check("a pool of processes that do not use CUDA", run.code == 0 and run.report["complete"]
      and len(run.report["processes"]) == 1, run)
IN_CHILD = SANDBOX.replace("os.execvp(sys.argv[1], sys.argv[1:])", """
driver.cuDeviceGetCount(ctypes.byref(ctypes.c_int()))
time.sleep(0.4)
""").replace("import ctypes, os, struct, sys", """
import ctypes, os, struct, sys, time
driver = ctypes.CDLL("libcuda.so.1")
driver.cuInit(0)
if os.fork(): sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
""")
run = Run("--error-exitcode=9", "--", sys.executable, "-c", IN_CHILD)
check("a forked child in a sandbox that uses CUDA: named as not audited", run.code == 9
      and [process.get("unaudited", "")[:len(why)] for process in run.report["processes"]] == ["", why], run)
sandboxed = subprocess.run([sys.executable, "-c", SANDBOX, command, "--", host, "print"], env=ENVIRONMENT,
                           capture_output=True, text=True)
check("a sandbox for the command itself", sandboxed.returncode == 125 and sandboxed.stdout == ""
      and "no socket for the audited processes: Operation not permitted" in sandboxed.stderr, sandboxed)
run = Run("--", host, "print", json_file=False, preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4)))
check("no descriptors for the command", run.code == 126 and run.out == ""
      and "no descriptor to wait with: Too many open files" in run.err, run)
# One that ends, and one that the program leaves behind.
fifo = pathlib.Path(folder.name) / "ready"
os.mkfifo(fifo)
for script, seconds, why in (('"$@"', "0", "it ended before it had mapped its channel"),
                             (f'"$@" > {fifo} 2> {os.devnull} & read line < {fifo}', "8", "it has not mapped its channel")):
    run = Run("--error-exitcode=9", "--", "sh", "-c", script, "sh", sys.executable, "-c", FEW_DESCRIPTORS, seconds)
    check(f"a process without a descriptor to spare: {why}", run.code == 9
          and [process.get("unaudited") for process in run.report["processes"]] == [why], run)
# What is reported.
run = Run("--error-exitcode=9", "--", host, "well", "exit")
check("--error-exitcode without one", run.code == 3, run)
run = Run("--error-exitcode=9", "--", host, "forked-child", "exit")
check("a forked child is audited", run.code == 9 and all(process["source"] for process in run.report["processes"])
      and sorted(process["forked"] for process in run.report["processes"]) == [False, True], run.report)
for pattern, expected in {"libhostile*": 1, hostile: 1, "audit_host": 1, "libother*": 0}.items():
    run = Run(f"--object={pattern}", "--error-exitcode=9", "--", host, "leaked-push")
    check(f"--object={pattern}", len(run.findings) == expected and run.code == (9 if expected else 0)
          and run.report["left_out"] == 1 - expected, run)
supp = pathlib.Path(folder.name) / "known.supp"
supp.write_text("{\n known\n cuguest-audit:leaked-push\n ...\n fun:*CallWith*\n}\n")
run = Run(f"--suppressions={supp}", "--error-exitcode=9", "--", host, "leaked-push", "leaked-push")
check("--suppressions", run.code == 0 and run.findings == []
      and run.report["suppressed"] == [{"name": "known", "findings": 1, "count": 2}]
      and 'suppressed: 1 finding by "known"' in run.err, run)
run = Run("--gen-suppressions", "--", host, "leaked-push", "extra-pop")
supp.write_text("".join(re.findall(r"^\{\n.*?^\}\n", run.err, re.M | re.S)).replace("<a name of this suppression>", "made"))
run = Run(f"--suppressions={supp}", "--", host, "leaked-push", "extra-pop", "changed-setting")
check("--gen-suppressions: those suppress just that", run.kinds() == ["changed-setting"], run)
output = pathlib.Path(folder.name) / "report.txt"
run = Run(f"--output={output}", "--", host, "leaked-push")
check("--output", "1 finding, 1 library" in output.read_text() and run.err == "", run)

run = Run("--", "/no/such\x1b[31m", json_file=False)
check("control characters in a program's name are escaped", run.code == 127 and r"/no/such\x1b[31m: No such" in run.err, run)

# Conventions.
run = Run("--version", json_file=False)
check("--version", run.code == 0 and re.fullmatch(r"cuguest-audit \d+\.\d+\.\d+\n", run.out), run)
check("-h is --help", Run("-h", json_file=False).out == Run("--help", json_file=False).out != "")
run = Run("-q", "--", host, "well", "print")
check("-q: no report without a finding", run.err == "" and run.out == "output\n" and run.report["findings"] == [], run)
check("-q: a report with one", "1 finding, 1 library" in Run("-q", "--", host, "leaked-push").err)
check("-q: a report that is incomplete", "not audited" in Run(
    "-q", "--source=cupti", "--", host, "well", CUGUEST_AUDIT_CUPTI="/no/such/libcupti.so").err)
run = Run("-v", "--", host, "leaked-push")
check("-v: the events of each process", re.search(rf"events from cudasim, \d+ events of {host}\n", run.err), run)
run = Run("--output=%h-%%-%p.txt", "--", host, "well", cwd=folder.name)
names = [path.name for path in pathlib.Path(folder.name).glob("*-%-*.txt")]
check("%p and %h in the names of files", len(names) == 1 and names[0].startswith(os.uname().nodename + "-%-")
      and names[0].split("-%-")[1].removesuffix(".txt").isdigit(), names)
place = pathlib.Path(folder.name) / "defaults"
place.mkdir()
defaults = place / ".cuguest-audit"
defaults.write_text("# for all\n\n--error-exitcode 9\n--object=none\n")
run = Run("--", host, "leaked-push", cwd=place)
check("defaults from .cuguest-audit", run.code == 0 and run.report["left_out"] == 1, run)
run = Run("--", host, "leaked-push", cwd=place, CUGUEST_AUDIT_OPTIONS="--object=libhostile* -q")
check("defaults from CUGUEST_AUDIT_OPTIONS, too", run.code == 9, run)
run = Run("--error-exitcode=8", "--", host, "leaked-push", cwd=place, CUGUEST_AUDIT_OPTIONS="--object=libhostile*")
check("the command line comes last", run.code == 8, run)
defaults.write_text("--jsno=x\n")
check("an error in the file does not hide --help", Run("--help", json_file=False, cwd=place).code == 0)
run = Run("--", host, "print", CUGUEST_AUDIT_OPTIONS="-q --jsno=x")
check("an error in the variable", run.code == 125 and "CUGUEST_AUDIT_OPTIONS: there is no option --jsno" in run.err, run)
defaults.unlink()
defaults.mkdir()
run = Run("--", host, "print", cwd=place)
check("a folder in place of the file", run.code == 125 and ".cuguest-audit: Is a directory" in run.err and run.out == "", run)
defaults.rmdir()
defaults.write_text("")
defaults.chmod(0o666)
run = Run("--", host, "print", cwd=place)
check("a file that others may write is not read", run.code == 0
      and ".cuguest-audit was not read: another user may have written it" in run.err, run)

# No file is emptied for nothing.
content = b"of an earlier run"
for name in "--html", "--json", "--sarif", "--trace", "--log", "--output":
    for program, code in (("/no/such/program", 127), ("/", 126)):
        log.write_bytes(content)
        new = pathlib.Path(folder.name) / "new"
        runs = [Run(f"{name}={path}", "--", program, json_file=False) for path in (log, new)]
        check(f"{name}: {program} cannot be run, and the file stays as it is",
              all(run.code == code for run in runs) and log.read_bytes() == content and not new.exists(), runs[0])
    run = Run(f"{name}={log}", f"--replay={temporary / '..' / log.name}", json_file=False)
    check(f"{name} and --replay of one file", run.code == 125 and f"{name} and --replay name one file" in run.err
          and log.read_bytes() == content, run)
    busy = pathlib.Path(folder.name) / "busy"
    shutil.copy(host, busy)
    run = Run(f"{name}={busy}", "--", str(busy), "leaked-push", "exit", json_file=False, **LIBRARIES)
    check(f"{name}: a file that can no longer be opened once the program runs", run.code == 3
          and "1 finding, 1 library" in run.err and f"{busy}: Text file busy" in run.err, run)
run = Run(f"--html={log}", f"--sarif={log}", "--", host, "print", json_file=False)
check("--html and --sarif of one file", run.code == 125 and "--html and --sarif name one file" in run.err
      and run.out == "" and log.read_bytes() == content, run)


# Names.
def renamed(change, **environment):
    """The culprit of a leak in a copy of the hostile library that `change` has changed after the run."""
    copy = pathlib.Path(folder.name) / "copy"
    copy.mkdir()
    library = copy / pathlib.Path(hostile).name
    shutil.copy(hostile, library)
    log = pathlib.Path(folder.name) / "names.log"
    Run(f"--log={log}", "--", host, "leaked-push", LD_LIBRARY_PATH=f"{copy}:{simdir}")
    change(library)
    run = Run(f"--replay={log}", **environment)
    shutil.rmtree(copy)
    finding = found(run, "leaked-push")
    return finding["culprit"] if finding else {"run": str(run)}


def objcopy(*words):
    subprocess.run(["objcopy", *map(str, words)], check=True)


def strip_with_link(library):
    debug = library.parent / ".debug" / "hostile.debug"
    debug.parent.mkdir()
    objcopy("--only-keep-debug", library, debug)
    objcopy("--strip-all", f"--add-gnu-debuglink={debug}", library)


cache = pathlib.Path(folder.name) / "cache"


def build_id(library):
    notes = subprocess.run(["readelf", "-n", str(library)], check=True, capture_output=True, text=True).stdout
    return re.search(r"Build ID: (\w+)", notes)[1]


def rebuild(library):
    """As another build of the same source."""
    own = bytes.fromhex(build_id(library))
    library.write_bytes(library.read_bytes().replace(own, bytes(reversed(own))))


def strip_into_cache(library):
    entry = cache / build_id(library) / "debuginfo"
    entry.parent.mkdir(parents=True)
    objcopy("--only-keep-debug", library, entry)
    objcopy("--strip-all", library)


if knows_lines and shutil.which("objcopy") and shutil.which("readelf"):
    line = line_of("hostile.cc", "leaked-push")
    culprit = renamed(lambda library: None)
    check("names: with debug information", culprit.get("line") == line, culprit)
    culprit = renamed(lambda library: objcopy("--remove-section=.debug_aranges", library))
    check("names: of what clang compiled", culprit.get("line") == line, culprit)
    culprit = renamed(lambda library: objcopy("--strip-all", library))
    check("names: an exported function of a stripped library", culprit.get("function") == "hostile::LeakPush"
          and "line" not in culprit, culprit)
    culprit = renamed(strip_with_link)
    check("names: by .gnu_debuglink", culprit.get("line") == line, culprit)
    culprit = renamed(strip_into_cache, DEBUGINFOD_CACHE_PATH=str(cache))
    check("names: from debuginfod's cache", culprit.get("line") == line, culprit)
    culprit = renamed(rebuild)
    check("names: not those of another build at the same path", "function" not in culprit and culprit.get("offset"), culprit)
    culprit = renamed(lambda library: library.unlink())
    check("names: of a library that is gone, its path and offset", "function" not in culprit and culprit.get("offset"), culprit)

# Bad input: 125 and what is wrong, and nothing runs.
supp.write_text("# known\n{\n name\n cuguest-audit:leaked-push\n function:f\n}\n")
BAD = {
    (): "there is no program after --",
    ("--", ): "there is no program after --",
    (host, ): "-- is missing before",
    ("--jsno=f", "--", host, "print"): "there is no option --jsno",
    ("--json=/no/folder/f", "--", host, "print"): "/no/folder/f: No such file or directory",
    ("--html=/no/folder/f", "--", host, "print"): "/no/folder/f: No such file or directory",
    ("--sarif=/no/folder/f", "--", host, "print"): "/no/folder/f: No such file or directory",
    ("--color=yes", "--", host, "print"): "auto, always or never",
    ("--trace=/no/folder/f", "--", host, "print"): "/no/folder/f: No such file or directory",
    ("--log=/no/folder/f", "--", host, "print"): "/no/folder/f: No such file or directory",
    ("--output=/no/folder/f", "--", host, "print"): "/no/folder/f: No such file or directory",
    ("--suppressions=/no/file", "--", host, "print"): "/no/file: No such file or directory",
    ("--suppressions=/", "--", host, "print"): "/: Is a directory",
    (f"--suppressions={supp}", "--", host, "print"): "known.supp:5: expected fun:, obj:, src:, ... or }, found \"function:f\"",
    ("--error-exitcode=0", "--", host, "print"): "a number from 1 to 255",
    ("--leaks=some", "--", host, "print"): "yes or no",
    ("--forbid=all", "--", host, "print"): "init, context, context:N or api:PATTERN",
    ("--forbid=context:x", "--", host, "print"): "init, context, context:N or api:PATTERN",
}
for words, message in BAD.items():
    run = Run(*words, json_file=False)
    check(f"{' '.join(words)}: {message}", run.code == 125 and message in run.err and run.out == "", run)
run = Run("--help", json_file=False)
check("--help", run.code == 0 and run.out.startswith("usage: cuguest-audit"), run)
lines = run.out.splitlines()
check("--help fits a screen", len(lines) <= 40 and all(len(line) <= 80 for line in lines), run)
options = set(re.findall(r'^    \{"(--[a-z-]+)", (?:true|false)\}', (root / "audit" / "command" / "options.cc").read_text(), re.M))
helped = set(re.findall(r"--[a-z]+(?:-[a-z]+)*", run.out))
check("--help has each option, but the default --follow-fork", options - helped == {"--follow-fork"} and helped <= options,
      options ^ helped)
if page.exists():
    table = page.read_text().split("## Options")[1].split("\n## ")[0]
    check("the manual has each option", options == set(re.findall(r"`(--[a-z-]+)", "".join(
        line.split(" | ")[0] for line in table.splitlines() if line.startswith("| `")))), options)
run = Run("--", "there-is-no-such-program")
check("a program that is not found", run.code == 127 and "No such file" in run.err, run)
not_executable = pathlib.Path(folder.name) / "not_executable"
not_executable.touch(stat.S_IRUSR)
run = Run("--", str(not_executable))
check("a file that cannot be run", run.code == 126 and "Permission denied" in run.err, run)

# The schema lists all kinds.
kinds = report_schema["$defs"]["finding"]["properties"]["kind"]["enum"]
identifiers = re.findall(r'"([a-z]+(?:-[a-z]+)+)"\}', (root / "audit" / "finding.cc").read_text())
check("the schema has all kinds of findings", kinds == identifiers and len(kinds) > 10, (kinds, identifiers))
checker = Run("--", host, "leaked-push").report
checker["findings"][0]["kind"] = "unknown"
check("the schema refuses an unknown kind", schema.errors(checker, report_schema))
checker["findings"][0]["kind"] = "leaked-push"
del checker["findings"][0]["culprit"]
check("the schema refuses a missing member", list(schema.own_errors(checker, report_schema, report_schema)))

done()

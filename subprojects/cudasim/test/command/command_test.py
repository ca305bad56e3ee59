#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""command_test.py CUDASIM PROGRAM

The command `cudasim`: what it runs, what it says afterwards, its exit status, and what it says of bad input.
"""

import os
import re
import signal
import stat
import subprocess
import sys
import tempfile

cudasim, program = sys.argv[1:]
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if name != "LD_LIBRARY_PATH" and not name.startswith("CUDASIM_")}
passed = failed = 0


class Run:
    def __init__(self, *words):
        done = subprocess.run([cudasim, *words], env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
        self.code, self.out, self.err, self.words = done.returncode, done.stdout, done.stderr, words
        # Of the one process that reports.
        self.calls = {name: int(count) for count, name in re.findall(r"^cudasim: +(\d+)  (\w+)$", done.stderr, re.M)}

    def __str__(self):
        return f"cudasim {' '.join(self.words)}\n  exit status {self.code}\n  stdout: {self.out}\n  stderr: {self.err}"


def check(what, holds, run):
    global passed, failed
    print("ok:" if holds else "NOT OK:", what)
    if holds:
        passed += 1
    else:
        failed += 1
        print(run)


def lines(run, pattern):
    return re.findall(rf"^cudasim: {pattern}$", run.err, re.M)


# What a process did.
run = Run("--", program, "begin", "allocate", "allocate", "free")
check("a program's own exit status", run.code == 0, run)
check("counts calls by entry", run.calls == {"cuMemAlloc": 2, "cuInit": 1, "cuDevicePrimaryCtxRetain": 1,
                                             "cuCtxPushCurrent": 1, "cuMemFree": 1}, run)
check("counts them all, and says version and devices",
      len(lines(run, r"command_program \(\d+\): 6 calls of 5 entries; CUDA 13\.0, devices: 2")) == 1, run)
check("most calls first", run.err.index("cuMemAlloc") < run.err.index("cuInit"), run)
check("says what is left", lines(run, "left alive: (.*)") == ["references to primary contexts: 1, allocations: 1"], run)
run = Run("--", program, "begin", "allocate", "free", "end")
check("says that nothing is left", lines(run, "left alive: (.*)") == ["nothing"], run)
check("names no entry where none was missing", not lines(run, "asked for and not found.*"), run)
run = Run("--", program, "missing")
check("names the missing entry, once, with its version",
      lines(run, "asked for and not found: (.*)") == ["cuThereIsNoSuchEntry of CUDA 12.4"], run)
run = Run("--", program)
check("says that the driver was not loaded", lines(run, "no process loaded libcuda.*") and run.code == 0, run)

# The options.
run = Run("--devices", "3", "--", program, "devices")
check("--devices", run.out == "cuInit: 0, devices: 3\n" and "devices: 3" in run.err, run)
run = Run("--devices", "0", "--", program, "devices")
check("--devices 0: no device", run.out == "cuInit: 100, devices: 0\n", run)
run = Run("--driver-version", "11.8", "--", program, "version")
check("--driver-version of an older driver", run.out == "version: 11080, cuKernelGetName: 0\n", run)
run = Run("--driver-version", "13.0", "--", program, "version")
check("--driver-version of the default driver", run.out == "version: 13000, cuKernelGetName: 1\n", run)
run = Run("--driver-version", "13.5", "--", program, "version")
check("--driver-version of a newer driver", run.out == "version: 13050, cuKernelGetName: 1\n", run)
for code in "OUT_OF_MEMORY", "CUDA_ERROR_OUT_OF_MEMORY", "2":
    run = Run("--fail", f"cuMemAlloc:2:{code}", "--", program, "begin", "allocate", "allocate", "allocate")
    check(f"--fail with {code}: the second call and no other",
          run.out == "cuMemAlloc: 0\ncuMemAlloc: 2\ncuMemAlloc: 0\n" and not lines(run, "did not get to.*"), run)
run = Run("--fail", "cuMemAlloc:1:2", "--fail", "cuMemAlloc:2:UNKNOWN", "--fail", "cuMemFree:5:999", "--", program,
          "begin", "allocate", "allocate")
check("more than one --fail", run.out == "cuMemAlloc: 2\ncuMemAlloc: 999\n", run)
check("says which was not reached", lines(run, "did not get to the call that was to fail: (.*)") == ["cuMemFree"], run)
run = Run("--", program, "begin", "launch")
check("a kernel without a host function ends the program",
      run.code == 128 + signal.SIGABRT and 'launch of "unknown": no host function' in run.err, run)
run = Run("--skip-unknown-kernels", "--", program, "begin", "launch")
check("--skip-unknown-kernels", run.code == 0 and run.out == "cuLaunchKernel: 0\n" * 2
      and lines(run, "skipped: (.*)") == ["kernel unknown, launches: 2"], run)
run = Run("--", program, "begin", "unmodelled")
check("names what is not modelled, with how often it was called",
      run.out == "cuMulticastUnbind: 801\n" * 3 and lines(run, "not modelled: (.*)") == ["3 cuMulticastUnbind"], run)
run = Run("--", program, "begin", "fill")
check("work is done at once", run.out == "before: 2, after: 2\n", run)
run = Run("--schedule", "1:5", "--", program, "begin", "fill")
check("--schedule: work is done later", run.out == "before: 1, after: 2\n", run)
run = Run("--", program, "table")
check("names who asks for a private table, once, and says what to link",
      len(re.findall(r"command_program asked for a private table.*-cudart shared", run.err)) == 1
      and len(lines(run, "asked for a private table of the driver, .*: .*command_program")) == 1, run)
run = Run("--help")
check("--help", run.code == 0 and run.out.startswith("usage: cudasim") and "11.2" in run.out and "0 to 16" in run.out, run)

# How a process ends.
run = Run("--", program, "begin", "fail")
check("an exit status that is not 0", run.code == 7 and run.calls["cuInit"] == 1, run)
run = Run("--", program, "begin", "kill")
check("a signal: 128 and its number, and no report",
      run.code == 128 + signal.SIGTERM and lines(run, r"command_program \(\d+\): ended by a signal or _exit, without a report"), run)
for sent in signal.SIGTERM, signal.SIGHUP:
    signal.signal(sent, signal.SIG_DFL)  # which nohup has ignored
    with subprocess.Popen([cudasim, "--", "sh", "-c", f"{program} begin; echo begun; exec sleep 60"], env=ENVIRONMENT,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        process.send_signal(sent)
        _, err = process.communicate(timeout=30)
    check(f"{sent.name} to the command ends the program, and there is a report",
          process.returncode == 128 + sent and "command_program (" in err, err)
IGNORED = "grep SigIgn /proc/self/status"
done = [subprocess.run(["sh", "-c", f"trap '' INT QUIT TERM HUP; {before} {IGNORED}"], env=ENVIRONMENT, capture_output=True,
                       text=True, timeout=60).stdout for before in ("", f"'{cudasim}' --")]
check("signals that are ignored stay so", done[0] == done[1] != "", done)
done = subprocess.run([cudasim, "--", "sh", "-c", "echo $LD_LIBRARY_PATH"], env={**ENVIRONMENT, "LD_LIBRARY_PATH": ""},
                      capture_output=True, text=True, timeout=60)
check("an empty LD_LIBRARY_PATH adds no current folder", "" not in done.stdout.rstrip("\n").split(":"), done)
run = Run("--", program, "begin", "_exit")
check("_exit: no report", run.code == 3 and lines(run, r"command_program \(\d+\): ended by a signal or _exit, without a report"), run)
run = Run("--", program, "begin", "misuse")
check("what is undefined: the message, the signal, and the calls up to there",
      run.code == 128 + signal.SIGABRT and "cuCtxPushCurrent(0x" in run.err and run.calls.get("cuCtxDestroy") == 1
      and lines(run, "ended by the simulation.*"), run)
run = Run("--", program, "version", "fork_and_begin", "begin", "allocate")
check("a child that was forked before cuInit reports its own calls", sorted(
    int(total) for total in lines(run, r"command_program \(\d+\): (\d+) calls.*")) == [3, 5], run)
run = Run("--", program, "version", "clear_environment", "fork_and_begin")
check("so does one of a process that has cleared its environment", sorted(
    int(total) for total in lines(run, r"command_program \(\d+\): (\d+) calls.*")) == [1, 3], run)
run = Run("--", program, "version", "leave")
left = lines(run, r"command_program \((\d+)\): still runs, and reports no more")
check("a child that is left behind still runs", len(left) == 1 and len(lines(run, r"command_program .* calls.*")) == 1, run)
for process in left:
    os.kill(int(process), signal.SIGKILL)
run = Run("--", program, "begin", "allocate", "fork")
check("a child that was forked after cuInit does not report", len(lines(run, r"command_program \(\d+\): .*")) == 1
      and run.calls["cuMemAlloc"] == 1, run)
run = Run("--", "sh", "-c", f"{program} begin; {program} begin allocate; exit 9")
check("each process of a script reports", run.code == 9 and len(lines(run, r"command_program \(\d+\): .* calls.*")) == 2, run)
with tempfile.TemporaryDirectory() as folder:
    file = f"{folder}/not_executable"
    open(file, "w").close()
    os.chmod(file, stat.S_IRUSR)
    run = Run("--", file)
    check("a file that cannot be run", run.code == 126 and "Permission denied" in run.err, run)
run = Run("--", "there-is-no-such-program")
check("a program that is not found", run.code == 127 and "No such file" in run.err, run)

# Bad input: 125 and what is wrong, and nothing runs.
BAD = {
    (): "there is no program after --",
    ("--",): "there is no program after --",
    (program,): "-- is missing before",
    ("--device", "2", "--", program): "there is no option --device",
    ("--devices", "--", program): "--devices needs a value",
    ("--devices",): "--devices needs a value",
    ("--devices", "17", "--", program, "devices"): "--devices 17: a number from 0 to 16",
    ("--devices", "-1", "--", program, "devices"): "--devices -1: a number from 0 to 16",
    ("--devices", "two", "--", program, "devices"): "--devices two: a number",
    ("--devices", "", "--", program, "devices"): "--devices : a number",
    ("--driver-version", "12.1", "--", program, "devices"): "there are 11.2, 11.4,",
    ("--driver-version", "../sim", "--", program, "devices"): "there are 11.2, 11.4,",
    ("--fail", "cuMemAlloc", "--", program, "devices"): "--fail cuMemAlloc: ENTRY:NTH:CODE",
    ("--fail", "cuMemAlloc:1", "--", program, "devices"): "ENTRY:NTH:CODE",
    ("--fail", "cuNothing:1:2", "--", program, "devices"): "the simulated driver has no cuNothing",
    ("--fail", "cuMemAlloc_v2:1:2", "--", program, "devices"): "names are without _v2",
    ("--fail", "cuMemAlloc:0:2", "--", program, "devices"): "of which the first is 1",
    ("--fail", "cuMemAlloc:x:2", "--", program, "devices"): "is not the number of a call",
    ("--fail", "cuMemAlloc:99999999999:2", "--", program, "devices"): "is not the number of a call",
    ("--fail", "cuMemAlloc:1:NO_SUCH_ERROR", "--", program, "devices"): "\"NO_SUCH_ERROR\" is no error of CUDA",
    ("--fail", "cuMemAlloc:1:0", "--", program, "devices"): "\"0\" is no error of CUDA",
    ("--fail", "cuMemAlloc:1:SUCCESS", "--", program, "devices"): "\"SUCCESS\" is no error of CUDA",
    ("--schedule", "1", "--", program, "fill"): "--schedule 1: SEED:CALLS",
    ("--schedule", "x:1", "--", program, "fill"): "--schedule x:1: SEED:CALLS",
    ("--schedule", "1:", "--", program, "fill"): "--schedule 1:: SEED:CALLS",
    ("--schedule", "1:123456789", "--", program, "fill"): "SEED:CALLS",
}
for words, message in BAD.items():
    run = Run(*words)
    check(f"{' '.join(words[:2])}: {message}",
          run.code == 125 and message in run.err and not run.out and run.err.count("\n") == 1, run)

# The variables by themselves: a value that cannot be used ends the program with a message.
simulation = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(cudasim))), "sim")
for name, value, message in (("CUDASIM_DEVICES", "many", 'CUDASIM_DEVICES: "many"'),
                             ("CUDASIM_DEVICES", "17", 'CUDASIM_DEVICES: "17" is no number of devices, 0 to 16'),
                             ("CUDASIM_FAIL", "cuMemAlloc:1", '"cuMemAlloc:1" is not ENTRY:NTH:CODE'),
                             ("CUDASIM_FAIL", "cuMemAlloc:99999999999:2", '"cuMemAlloc:99999999999:2" is not ENTRY:NTH:CODE'),
                             ("CUDASIM_SCHEDULE", "1", '"1" is not SEED:CALLS'),
                             ("CUDASIM_SCHEDULE", "1:x", '"1:x" is not SEED:CALLS'),
                             ("CUDASIM_FAIL", "cuMemAlloc:1:2,x", '"x" is not ENTRY:NTH:CODE')):
    done = subprocess.run([program, "devices"], env={**ENVIRONMENT, "LD_LIBRARY_PATH": simulation, name: value},
                          capture_output=True, text=True)
    check(f"{name}={value}", done.returncode == -signal.SIGABRT and message in done.stderr, f"{done.returncode} {done.stderr}")

RUNTIME = "import ctypes; ctypes.CDLL('libcudart.so.13').cudaRuntimeGetVersion(ctypes.byref(ctypes.c_int()))"
for value in "12.4x", "12.04", "12", "13.0.1", "99999999999.0", "":
    done = subprocess.run([sys.executable, "-c", RUNTIME], env={**ENVIRONMENT, "LD_LIBRARY_PATH": simulation,
                                                                "CUDASIM_RUNTIME_VERSION": value}, capture_output=True, text=True)
    check(f"CUDASIM_RUNTIME_VERSION={value}", done.returncode == -signal.SIGABRT
          and f"CUDASIM_RUNTIME_VERSION={value}: 12.0 to" in done.stderr, f"{done.returncode} {done.stderr}")

# A report that cannot be written is a message, and the program goes on.
for folder in "/nonexistent", "/dev/null":
    done = subprocess.run([program, "devices"], env={**ENVIRONMENT, "LD_LIBRARY_PATH": simulation, "CUDASIM_REPORT": folder},
                          capture_output=True, text=True)
    check(f"CUDASIM_REPORT={folder}", done.returncode == 0 and done.stdout == "cuInit: 0, devices: 2\n"
          and f"cudasim: CUDASIM_REPORT: the report cannot be written to {folder}/" in done.stderr, f"{done.returncode} {done.stderr}")

print(f"cases: {passed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""run.py [--report DIRECTORY] [--only PATTERN] [--jobs N] [--results FILE] [--fresh SCRIPT ARGUMENT...]

Runs a folder made by pack.py on the real driver, or of it the programs whose "suite/name" has PATTERN in it, N at a
time where they may run side by side (as many as there are cores, and as the GPU's memory has room for the contexts
of); then those again that skipped a case for want of MPS, with a server of their own, where there is one. Writes
<gpu>-<driver>.md into DIRECTORY (its own, unless told), which it makes; of a report in its place the part that was
written by hand stays. A benchmark that breaks a promise is run twice more, and two of the three runs must break it.
Of examples the report has what the driver logged. A machine without a GPU is a failure, never a pass.

SCRIPT, of Python, is run as conformance/fresh_sequences; its arguments are paths. Where there are two GPUs it is run once
more, with --devices 2.

FILE keeps the result of each program as it ends, so that a run which is cut off can go on:
what has passed or was skipped, of the same archive on the same GPU, is not run again.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import ctypes
import datetime
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
CONTENTS = HERE / "contents"  # of the archive
SKIPPED = 77
# The driver makes and destroys the contexts of all processes one after the other, so that more at a time
# end no sooner, and each may run past its time limit.
AT_A_TIME = 8
# One queue to the device for each context instead of eight: on an H100 a context is then made and destroyed
# in 0.06 s instead of 0.17. Not for what is timed or belongs to others.
FEW_QUEUES = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
# Of a device's memory, for one program: six contexts of about half a GiB, and what they hold.
MEMORY_OF_PROGRAM = 4 << 30
# The C library overwrites what is freed, so that a program which relies on what the driver reads there is
# noticed.
OVERWRITE_FREED = {"MALLOC_PERTURB_": "165"}
# Where streams are held up to see which of them others wait for: in one queue they all do.
NEEDS_QUEUES = {"sim_busy_facts"}
# A program of the fresh sequences has up to nine contexts, each of which may ask for a stack of 1.1 GiB. They fill
# the memory, of which the simulation has enough: beside other programs their answers would differ.
MEMORY_OF_SEQUENCE = 4 * MEMORY_OF_PROGRAM
# Suites whose programs are to leave nothing in the driver's log of errors but what they are about.
LOGGED = "examples"
# Suites whose output is a part of the report.
TRANSCRIPTS = {"audited": "Audit", "benchmark": "Benchmark", "conformance": "Conformance", "hosts": "Host"}

# Where this machine keeps the packages of Python, its programs and the sources, which a compiler may name either way.
PLACES = re.compile(r"(?<![\w./-])(?:/[\w.+-]+)+?/"
                    r"(?:(?:\.\.|site-packages|bin)/|(?=(?:subprojects|test|lib|examples)/[\w./-]+\.(?:cc|h|py)\b))")

# In a report, the line from which on it was written by hand.
BY_HAND = "<!-- by hand: stays when the report is written anew -->"


def in_report(output):
    """`output` without the places of this machine."""
    return PLACES.sub("", output.replace(f"{CONTENTS}/", "")).rstrip()


def no_gpu(why):
    sys.exit(f"test/run --gpu: no usable GPU: {why}")


def look_at_driver():
    """(GPU names, CUDA version, driver version, bytes of memory of the first GPU)"""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        no_gpu(error)
    if hasattr(driver, "cudasimControl"):
        no_gpu("libcuda.so.1 is the simulation; take it off LD_LIBRARY_PATH")
    code = driver.cuInit(0)
    if code:
        no_gpu(f"cuInit answers {code}")
    count, version = ctypes.c_int(), ctypes.c_int()
    driver.cuDeviceGetCount(ctypes.byref(count))
    driver.cuDriverGetVersion(ctypes.byref(version))
    memory = ctypes.c_size_t()
    driver.cuDeviceTotalMem_v2(ctypes.byref(memory), 0)
    names = []
    for device in range(count.value):
        name = ctypes.create_string_buffer(200)
        driver.cuDeviceGetName(name, 200, device)
        names.append(name.value.decode())
    if not names:
        no_gpu("the driver sees no device")
    try:
        release = subprocess.check_output(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], text=True).split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        try:
            release = re.search(r"Kernel Module\D+([\d.]+)", pathlib.Path("/proc/driver/nvidia/version").read_text())[1]
        except (OSError, TypeError):
            release = "unknown"
    return names, f"{version.value // 1000}.{version.value % 1000 // 10}", release, memory.value


def failing_calls(log):
    """{"function (CODE)": times} of a log of the driver's."""
    lines = log.read_text(errors="replace") if log.exists() else ""
    return collections.Counter(f"{call} ({code})" for code, call in
                               re.findall(r"Returning \d+ \((?:CUDA_ERROR_)?(\w+)\) from (\w+)", lines))


def run(test):
    with tempfile.TemporaryDirectory() as directory:
        log = pathlib.Path(directory) / "errors"
        result = run_with(test, {"CUDA_LOG_FILE": str(log)} if test["suite"] == LOGGED else {})
        return dict(result, failing=failing_calls(log))


def broken_promises(result):
    return set(re.findall(r"^\| ([^|]+) \|.* BROKEN \|$|^BROKEN: (.+?): [\d.]+ ", result["output"], re.M))


def run_benchmark(test):
    """A promise is broken if the median of three runs breaks it, that is, if two of them do."""
    results = [run(test)]
    if broken_promises(results[0]):
        results += [run(test), run(test)]
    times = collections.Counter(promise for result in results for promise in broken_promises(result))
    broken = {promise for promise, count in times.items() if count > 1}
    for result in results:
        if result["result"] == "failed" and (not broken_promises(result) or broken & broken_promises(result)):
            return result
    best = min(results, key=lambda result: len(broken_promises(result)))
    return dict(best, result="skipped" if best["result"] == "skipped" else "passed")


def run_with(test, environment):
    libraries = [str(CONTENTS / directory) for directory in test["libraries"]]
    if not test["file"].endswith(".py"):  # where this machine's toolkit is, if it is not where the pack looks for it
        libraries += filter(None, [os.environ.get("LD_LIBRARY_PATH")])
    # A caller's number of queues would be that of what is timed, too.
    inherited = {name: value for name, value in os.environ.items() if name not in FEW_QUEUES}
    env = dict(inherited, LD_LIBRARY_PATH=":".join(libraries), CUDASIM_TEST_DRIVER="real",
               **({} if test["suite"] in TRANSCRIPTS or test["name"] in NEEDS_QUEUES else FEW_QUEUES),
               **({} if test["suite"] in TRANSCRIPTS else OVERWRITE_FREED),
               **{name: str(CONTENTS / path) for name, path in test["paths"].items()},
               **test["environment"], **environment)
    interpreter = [sys.executable] if test["file"].endswith(".py") else []
    command = [*interpreter, str(CONTENTS / test["file"]), *test["args"]]
    start = time.monotonic()
    try:
        done = subprocess.run(command, env=env, cwd=CONTENTS, text=True, errors="replace", stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=test["timeout"] or None)
        code, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as expired:
        code, output = "timeout", (expired.stdout or b"").decode(errors="replace")
    except OSError as error:
        code, output = "not run", str(error)
    counts = re.findall(r"^cases: (\d+) passed, (\d+) failed, (\d+) skipped", output, re.M)
    result = {0: "passed", SKIPPED: "skipped"}.get(code, "failed")
    seconds = time.monotonic() - start
    print(f"{result:8} {seconds:7.1f} s  {test['suite']}/{test['name']}", flush=True)
    if result == "failed":
        print(output[-4000:], f"(exit: {code})", sep="\n", flush=True)
    return dict(test, result=result, code=code, seconds=seconds, output=output, cases=counts[-1] if counts else None,
                skips=re.findall(r"^skipped: (.+?): (.+)$", output, re.M))


class Results:
    """Of the programs of one archive on one GPU, kept in the file `path` unless that is None."""

    def __init__(self, path, machine):
        self.path, self.lock, self.known = path, threading.Lock(), {}
        self.origin = [*machine, hashlib.sha256((HERE / "pack.tar.xz").read_bytes()).hexdigest()]
        for line in path.read_text().splitlines() if path and path.exists() else []:
            try:
                result = json.loads(line)
            except ValueError:  # cut off
                continue
            if result["origin"] == self.origin:
                self.known[result["name"]] = result

    def of(self, test):
        before = self.known.get(test["name"])
        if before and before["result"] != "failed":
            return before
        fresh = run_benchmark(test) if test["suite"] == "benchmark" else run(test)
        result = dict(fresh, origin=self.origin, tries=before["tries"] + 1 if before else 1)
        if self.path:
            with self.lock, self.path.open("a") as file:
                file.write("\n" + json.dumps(result))  # a line of its own, whatever was cut off before
        return result


@contextlib.contextmanager
def mps_server():
    """The environment of its clients; None where there is no such server."""
    control = shutil.which("nvidia-cuda-mps-control")
    with tempfile.TemporaryDirectory() as directory:
        clients = {"CUDA_MPS_PIPE_DIRECTORY": directory, "CUDA_MPS_LOG_DIRECTORY": directory}
        env = dict(os.environ, **clients)
        if not control or subprocess.run([control, "-d"], env=env, timeout=60).returncode:
            yield None
            return
        try:
            yield clients
        finally:
            subprocess.run([control], input="quit", env=env, text=True, timeout=60)


def run_again_under_mps(results, kept):
    wanted = [r for r in results if any(reason == "needs a client of MPS" for _, reason in r["skips"])]
    with mps_server() as clients:
        if clients is None:
            return []
        return [kept.of({"name": f"{r['name']} under MPS", "environment": {**r["environment"], **clients},
                         **{key: r[key] for key in ("suite", "file", "args", "libraries", "paths", "timeout")}})
                for r in wanted]


def report(results, counts, gpus, cuda, release):
    os_name = next((line.split("=", 1)[1].strip().strip('"') for line in open("/etc/os-release")
                    if line.startswith("PRETTY_NAME=")), "unknown")
    lines = [
        "<!-- SPDX-License-" "Identifier: Apache-2.0 WITH LLVM-exception -->", f"# {gpus[0]}, driver {release}", "",
        "Written by `test/run --gpu`: the programs of the simulated runs, on the real driver.", "",
        "| | |", "|---|---|", f"| GPU | {gpus[0]}{f', {len(gpus)} of them' if len(gpus) > 1 else ''} |",
        f"| driver | {release} (CUDA {cuda}) |", f"| date | {datetime.date.today()} |",
        f"| system | {os_name}, Linux {platform.release()} {platform.machine()} |", f"| result | {counts} |", "",
        "## Tests", "", "With `CUDA_DEVICE_MAX_CONNECTIONS=1` and `MALLOC_PERTURB_=165`, but for benchmarks and hosts.", "",
        "| suite | program | result | cases passed | failed | skipped | seconds |",
        "|---|---|---|---|---|---|---|"]
    tests = [r for r in results if r["suite"] != "benchmark"]
    for r in tests:
        cases = " | ".join(r["cases"] or ("", "", ""))
        why = f" ({r['code']})" if r["result"] == "failed" else f" (try {r['tries']})" if r["tries"] > 1 else ""
        lines.append(f"| {r['suite']} | {r['name']} | {r['result']}{why} | {cases} | {r['seconds']:.1f} |")
    skips = [(r["name"], case, reason) for r in tests for case, reason in r["skips"]]
    # Of one that has no cases.
    skips += [(r["name"], "all", reason) for r in tests if r["result"] == "skipped" and not r["cases"]
              for reason in re.findall(r"^skipped: (.+)$", r["output"], re.M)]
    lines += ["", "## Skipped", ""]
    lines += ["| program | case | reason |", "|---|---|---|"] if skips else ["Nothing."]
    lines += [f"| {name} | {case} | {reason} |" for name, case, reason in skips]
    lines += ["", "## Driver calls that failed, in the examples", "",
              "From the driver's log of errors, `CUDA_LOG_FILE`, which has a line or two for each.", "",
              "| example | calls |", "|---|---|"]
    lines += [f"| {r['name']} | {', '.join(f'{n} {call}' for call, n in sorted(r['failing'].items())) or 'none'} |"
              for r in results if r["suite"] == LOGGED and r["result"] != "skipped"]
    for r in results:
        if r["suite"] in TRANSCRIPTS:
            lines += ["", f"## {TRANSCRIPTS[r['suite']]}: {r['name']}", "", "```", in_report(r["output"]), "```"]
        elif r["result"] == "failed":
            lines += ["", f"## Output of {r['name']}", "", "```", in_report(r["output"])[-4000:], "```"]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--report", type=pathlib.Path, default=HERE)
    parser.add_argument("--only", type=re.compile, default=re.compile(""))
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--fresh", type=pathlib.Path, nargs="+")
    options = parser.parse_args()
    # Now, and not after hours of work whose results it is for.
    for directory in [options.report, *([options.results.parent] if options.results else [])]:
        directory.mkdir(parents=True, exist_ok=True)
    gpus, cuda, release, memory = look_at_driver()
    cores = len(os.sched_getaffinity(0))
    jobs = options.jobs or max(1, min(AT_A_TIME, cores, memory // MEMORY_OF_PROGRAM))
    print(f"{gpus[0]}, driver {release}, CUDA {cuda}; {jobs} at a time")

    shutil.rmtree(CONTENTS, ignore_errors=True)
    shutil.unpack_archive(HERE / "pack.tar.xz", CONTENTS)
    tests = json.loads((CONTENTS / "manifest.json").read_text())
    if options.fresh:
        script, *arguments = [str(path.resolve()) for path in options.fresh]
        fresh = {"name": "fresh_sequences", "suite": "conformance", "file": script,
                 "args": [*arguments, "--jobs", str(max(1, min(cores, memory // MEMORY_OF_SEQUENCE)))],
                 "libraries": [], "paths": {}, "environment": {}, "timeout": 600, "parallel": False}
        tests.append(fresh)
        if len(gpus) > 1:
            tests.append({**fresh, "name": "fresh_sequences_of_two_devices", "args": [*fresh["args"], "--devices", "2"]})
    tests = [test for test in tests if options.only.search(f"{test['suite']}/{test['name']}")]
    kept = Results(options.results, [*gpus, release])
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        parallel = [t for t in tests if t["parallel"] and t["suite"] != "benchmark"]
        # What may take longest first, so that its end is not waited for with nothing beside it.
        results = list(pool.map(kept.of, sorted(parallel, key=lambda t: -t["timeout"])))
    alone = time.monotonic()
    results += [kept.of(t) for t in tests if not t["parallel"] or t["suite"] == "benchmark"]
    order = {test["name"]: position for position, test in enumerate(tests)}
    results.sort(key=lambda r: order[r["name"]])
    results += run_again_under_mps(results, kept)

    tally = [sum(r["result"] == outcome for r in results) for outcome in ("passed", "failed", "skipped")]
    counts = "{} passed, {} failed, {} skipped".format(*tally)
    slug = re.sub(r"[^a-z0-9]+", "-", gpus[0].lower()).strip("-")
    if options.only.pattern:
        counts += f" (of the programs that match `{options.only.pattern}`)"
    path = options.report / f"{slug}-{release}.md"
    _, _, by_hand = path.read_text().partition(BY_HAND) if path.exists() else ("", "", "")
    path.write_text(report(results, counts, gpus, cuda, release) + (f"\n{BY_HAND}{by_hand}" if by_hand else ""))
    print(f"{alone - start:.0f} s side by side, then {time.monotonic() - alone:.0f} s one by one")
    print(f"report: {path}")
    print(counts)
    return 1 if tally[1] or not tally[0] else 0


if __name__ == "__main__":
    sys.exit(main())

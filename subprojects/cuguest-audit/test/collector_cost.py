#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""collector_cost.py BENCHMARK COLLECTOR SWITCH

What a driver call takes on a real driver: without callbacks, with CUPTI's to a function that returns at once, and with the
auditor. A machine runs a process at one of several speeds, so all three are measured in turns in one process, the median of
each counts, and the ratios of several processes are compared, whose median counts. Prints a table, what an event is made of,
how far the reader was behind, what a million events leave in memory, and whether it is kept that a push or a pop costs at
most so many times what it costs with the callback that returns at once. On the simulation, which CUPTI does not see, it is
skipped unless CUGUEST_BENCHMARK_CUPTI says what stands for CUPTI there.
"""

import collections
import ctypes
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

PROCESSES = 5
SKIPPED = 77
# Name of the benchmark: how many times what it costs with the callback that returns at once. Each frame is compared.
PROMISED = {"push_pop": 2.6, "push_pop_20": 2.6, "push_pop_80": 2.9}
# Name of the benchmark: what it is, and how many calls of it are counted as one.
CALLS = {"common": ("a call that is no event", 1), "push_pop": ("a push or a pop", 2),
         "push_pop_20": ("the same, 20 frames deep", 2), "push_pop_80": ("the same, 80 frames deep", 2),
         "launch": ("a launch", 1), "copy": ("an asynchronous copy", 1), "record": ("an event's record", 1),
         "make_free": ("an event that is made or destroyed", 2)}
PARTS = {"part_time": "the time", "part_chain_1": "the chain, 1 frame deep", "part_chain_20": "the chain, 20 frames deep",
         "part_chain_80": "the chain, 80 frames deep", "part_write": "the record in the channel, written without a pause"}
KINDS = ("plain", "empty callback", "auditor")
program, collector, switch = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:])


def measured():
    """{name of the benchmark: nanoseconds of one call} of a process, and its lines on stderr; None: there is no driver."""
    done = subprocess.run([program, collector, switch, "--benchmark_format=json",
                           "--benchmark_enable_random_interleaving=true"], capture_output=True, text=True, timeout=120)
    if done.returncode == SKIPPED:
        return None
    if done.returncode:
        sys.exit(f"{program}: exit status {done.returncode}\n{done.stderr}")
    times = collections.defaultdict(list)
    for run in json.loads(done.stdout)["benchmarks"]:
        if run.get("error_occurred"):
            sys.exit(f"{run['name']}: {run['error_message']}")
        if run["run_type"] == "iteration":
            times[run["run_name"].partition("/iterations:")[0]].append(run["real_time"])
    calls = {f"{name}/{kind}": count for name, (_, count) in CALLS.items() for kind in KINDS}
    expected = {*calls, *PARTS}
    if set(times) != expected:
        sys.exit(f"not measured: {sorted(expected - set(times))}\n{done.stderr}")
    lines = re.findall(r"^(?:reader|memory): .*$", done.stderr, re.M)
    return {name: statistics.median(times[name]) / calls.get(name, 1) for name in times}, lines


def more(times, name, kind):
    return times[f"{name}/{kind}"] - times[f"{name}/plain"]


def ratio(times, name):
    return more(times, name, "auditor") / more(times, name, "empty callback")


def cell(values):
    return f"{statistics.median(values):.0f} ({', '.join(f'{value:.0f}' for value in values)})"


def main():
    on_simulation = hasattr(ctypes.CDLL("libcuda.so.1"), "cudasimControl")
    if on_simulation and "CUGUEST_BENCHMARK_CUPTI" not in os.environ:
        print("skipped: CUPTI does not see the simulation")
        return SKIPPED
    if on_simulation:
        os.environ["CUGUEST_AUDIT_SOURCE"] = "cupti"
    results = [measured() for _ in range(PROCESSES)]
    if None in results:
        print("skipped: no driver")
        return SKIPPED
    processes = [times for times, _ in results]
    print(f"nanoseconds of a call: median of {PROCESSES} processes, and what was measured in each\n")
    print(f"| | {' | '.join(KINDS)} |\n|---|{'---:|' * len(KINDS)}")
    for name, (what, _) in CALLS.items():
        print(f"| {what} | {' | '.join(cell([times[f'{name}/{kind}'] for times in processes]) for kind in KINDS)} |")
    print("\n| nanoseconds of a part of an event | |\n|---|---:|")
    for name, what in PARTS.items():
        print(f"| {what} | {cell([times[name] for times in processes])} |")
    print()
    for _, lines in results:
        print("; ".join(lines))
    broken = False
    for name, most in PROMISED.items():
        ratios = [ratio(times, name) for times in processes]
        ours, of_cupti = (statistics.median(more(times, name, kind) for times in processes)
                          for kind in ("auditor", "empty callback"))
        is_kept = statistics.median(ratios) <= most
        broken = broken or not is_kept
        # The form that test/hardware/run.py reads.
        print(f"{'kept' if is_kept else 'BROKEN'}: {CALLS[name][0]}: {statistics.median(ratios):.2f} times what an empty "
              f"callback costs ({', '.join(f'{one:.2f}' for one in ratios)}; {ours:.0f} and {of_cupti:.0f} ns more), "
              f"at most {most} promised")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

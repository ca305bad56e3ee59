#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""collector_cost.py BENCHMARK COLLECTOR EMPTY

What a driver call takes on a real driver: without a collector, with the collector EMPTY, whose callback returns at once, and
with the auditor's. A machine runs a process at one of several speeds, so each is measured in processes in turn, and the best
of each counts. Prints a table, and whether it is kept that a push or a pop up to 20 frames deep costs at most 1.2 times what
EMPTY costs, and 120 ns. On the simulation, which CUPTI does not see, it is skipped.
"""

import collections
import ctypes
import json
import os
import pathlib
import subprocess
import sys

ROUNDS = 4
SKIPPED = 77
FACTOR, MORE_NS = 1.2, 120
PROMISED = ("PushAndPop/0", "PushAndPop/20")
# Name of the benchmark: what it is, and how many calls of it are events.
ROWS = {"CommonCall/0": ("a call that is no event", 1), "PushAndPop/0": ("a push or a pop", 2),
        "PushAndPop/20": ("the same, 20 frames deep", 2), "PushAndPop/80": ("the same, 80 frames deep", 2),
        "Launch": ("a launch", 1), "Copy": ("an asynchronous copy", 1), "EventRecord": ("an event's record", 1)}
program, collector, empty = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:])
KINDS = {"plain": ("", {}), "empty callback": ("", {"CUDA_INJECTION64_PATH": empty}), "auditor": (collector, {})}


def measured(argument, environment):
    """{name of the benchmark: nanoseconds of one call}; None if the program is skipped."""
    done = subprocess.run([program, argument, "--benchmark_format=json"], capture_output=True, text=True,
                          env=dict(os.environ, **environment), timeout=120)
    if done.returncode == SKIPPED:
        return None
    if done.returncode:
        sys.exit(f"{program} {argument}: exit status {done.returncode}\n{done.stderr}")
    times = collections.defaultdict(list)
    for run in json.loads(done.stdout)["benchmarks"]:
        if run["run_type"] == "iteration":
            times[run["run_name"].partition("/iterations:")[0]].append(run["real_time"])
    return {name: min(times[name]) / ROWS[name][1] for name in ROWS}


def main():
    if hasattr(ctypes.CDLL("libcuda.so.1"), "cudasimControl"):
        print("skipped: CUPTI does not see the simulation")
        return SKIPPED
    rounds = [{kind: measured(*how) for kind, how in KINDS.items()} for _ in range(ROUNDS)]
    if None in rounds[0].values():
        print("skipped: no driver")
        return SKIPPED
    print(f"nanoseconds of a call, best of {ROUNDS} processes, and what was measured in each\n")
    print(f"| | {' | '.join(KINDS)} |\n|---|{'---:|' * len(KINDS)}")
    broken = False
    for name, (what, _) in ROWS.items():
        all_of = {kind: [one[kind][name] for one in rounds] for kind in KINDS}
        cells = [f"{min(times):.0f} ({', '.join(f'{time:.0f}' for time in times)})" for times in all_of.values()]
        print(f"| {what} | {' | '.join(cells)} |")
    for name in PROMISED:
        best = {kind: min(one[kind][name] for one in rounds) for kind in KINDS}
        of_cupti, ours = best["empty callback"] - best["plain"], best["auditor"] - best["plain"]
        limit = FACTOR * of_cupti + MORE_NS
        broken = broken or ours > limit
        # The form that test/hardware/run.py reads.
        print(f"{'kept' if ours <= limit else 'BROKEN'}: {ROWS[name][0]}: {ours / of_cupti:.2f} times what an empty "
              f"callback costs ({ours:.0f} and {of_cupti:.0f} ns more), at most {limit:.0f} ns promised")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

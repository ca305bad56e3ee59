#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""memory_test.py COMMAND HOST SIMDIR

Ten million events from 51,200 threads, 64 at a time: cuguest-audit writes a trace meanwhile, loses no event,
and its memory stays bounded.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile

command, host, simdir = map(os.path.abspath, sys.argv[1:])
MOST_MIB = 64
failures = []
with tempfile.TemporaryDirectory() as folder:
    report = f"{folder}/report.json"
    done = subprocess.run([command, f"--json={report}", "--trace=/dev/null", "--", host, "millions"],
                          env={**os.environ, "LD_LIBRARY_PATH": simdir}, capture_output=True, text=True)
    with open(report) as file:
        content = json.load(file)
process = content["processes"][0]
used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(f"{process['events']} events, {process['lost']} lost; {used:.0f} MiB at most")
if done.returncode != 0 or process["events"] < 10_000_000 or process["lost"] or process["broken"]:
    failures.append(f"events are missing: {process}, exit status {done.returncode}, {done.stderr}")
if [(finding["kind"], finding["count"]) for finding in content["findings"]] != [("leaked-push", 800)]:
    failures.append(f"wrong findings: {done.stderr}")
if used > MOST_MIB:
    failures.append(f"more than {MOST_MIB} MiB")
for failure in failures:
    print("not ok:", failure)
sys.exit(1 if failures else 0)

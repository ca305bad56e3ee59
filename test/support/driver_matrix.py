#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""driver_matrix.py run --sim DIR --results FILE VERSION PROGRAMS
driver_matrix.py table DIRECTORY

`run` runs tests, of which PROGRAMS has a line NAME DIRECTORY PATH [SUITE] each, on the simulated driver
of CUDA VERSION, which is DIR/VERSION or, for the default, DIR itself, and with the simulated
runtime of that version (12.0 at least: an older one cannot be built with; 13.0 at most). It prints what each
suite did and what was skipped for which reason, fails if a case did, and leaves the counts in
FILE, which ends with .driver.json.

`table` prints the counts of all such files of DIRECTORY: versions by suites, passed/failed/
skipped, and the reasons.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

SKIPPED = 77
OLDEST_RUNTIME, NEWEST_RUNTIME = "12.0", "13.0"
SECONDS = 120  # for one program
CASES = re.compile(r"^cases: (\d+) passed, (\d+) failed, (\d+) skipped$", re.MULTILINE)
SKIP = re.compile(r"^skipped: (?:(\S+): )?(.*)$", re.MULTILINE)
DRIVER = re.compile(r"^driver: simulated, CUDA (\d+\.\d+)", re.MULTILINE)


def number(version):
    return tuple(int(part) for part in version.split("."))


def environment(sim, version):
    directories = [sim / version] if (sim / version).is_dir() else []
    path = [str(directory) for directory in directories + [sim]]
    before = os.environ.get("LD_LIBRARY_PATH")
    return dict(
        os.environ,
        BOOST_TEST_COLOR_OUTPUT="0",
        CUDASIM_RUNTIME_VERSION=sorted((OLDEST_RUNTIME, version, NEWEST_RUNTIME), key=number)[1],
        CUDASIM_TEST_DRIVER="sim",
        LD_LIBRARY_PATH=":".join(path + ([before] if before else [])),
    )


def run_program(command, variables):
    """(exit code, what it printed)"""
    try:
        done = subprocess.run(
            command,
            env=variables,
            errors="replace",
            stderr=subprocess.STDOUT,
            stdout=subprocess.PIPE,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired as expired:
        return 124, (expired.stdout or b"").decode(errors="replace") + "\ntimed out\n"
    return done.returncode, done.stdout


def judge(name, version, code, output):
    """(passed, failed, skipped, [(case, reason)], complaint)"""
    driver = DRIVER.search(output)
    skips = [(f"{name}/{case}" if case else name, why) for case, why in SKIP.findall(output)]
    cases = CASES.search(output)
    if driver and driver[1] != version:
        return 0, 1, 0, [], f"ran on CUDA {driver[1]}"
    if code == SKIPPED and not cases:
        return 0, 0, 1, skips, ""
    if not cases or not driver:
        return 0, 1, 0, skips, f"ended with {code} before its last case"
    passed, failed, skipped = map(int, cases.groups())
    complaint = "" if code in (0, SKIPPED) else f"ended with {code}"
    return passed, max(failed, 1 if complaint else 0), skipped, skips, complaint


def run(arguments):
    variables = environment(arguments.sim, arguments.version)
    suites = collections.defaultdict(lambda: [0, 0, 0])
    reasons = []
    for line in arguments.programs.read_text().splitlines():
        name, suite, program, *cases = line.split()
        code, output = run_program([program, *(f"--run_test={case}" for case in cases)], variables)
        *counts, skips, complaint = judge(name, arguments.version, code, output)
        suites[suite] = [a + b for a, b in zip(suites[suite], counts)]
        reasons += skips
        if counts[1]:
            print(f"--- {name} on CUDA {arguments.version}: {complaint}\n{output[-8000:]}")
    result = {"version": arguments.version, "suites": suites, "skipped": reasons}
    arguments.results.write_text(json.dumps(result, indent=1))
    print_table([result])
    for case, why in reasons:
        print(f"skipped: {case}: {why}")
    return 1 if any(failed for _, failed, _ in suites.values()) else 0


def print_table(results):
    suites = sorted({suite for result in results for suite in result["suites"]})
    print("passed/failed/skipped".ljust(24) + "".join(suite.rjust(13) for suite in suites))
    for result in results:
        cells = ["/".join(map(str, result["suites"].get(suite, ["-"]))) for suite in suites]
        print(f"CUDA {result['version']}".ljust(24) + "".join(cell.rjust(13) for cell in cells))


def table(arguments):
    results = [json.loads(path.read_text()) for path in arguments.directory.glob("*.driver.json")]
    if not results:
        sys.exit(f"{arguments.directory} has no results")
    results.sort(key=lambda result: number(result["version"]))
    print_table(results)
    versions = collections.defaultdict(lambda: collections.defaultdict(int))
    for result in results:
        for _, why in result["skipped"]:
            versions[why][result["version"]] += 1
    for why in sorted(versions):
        counts = ", ".join(f"{count} on {version}" for version, count in versions[why].items())
        print(f"skipped ({counts}): {why}")
    return 0


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(required=True)
    running = commands.add_parser("run")
    running.add_argument("--sim", type=pathlib.Path, required=True)
    running.add_argument("--results", type=pathlib.Path, required=True)
    running.add_argument("version")
    running.add_argument("programs", type=pathlib.Path)
    running.set_defaults(command=run)
    showing = commands.add_parser("table")
    showing.add_argument("directory", type=pathlib.Path)
    showing.set_defaults(command=table)
    arguments = parser.parse_args()
    sys.exit(arguments.command(arguments))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""soak.py [--seconds S] [--expect PROGRAM:OBJECT]... COMMAND PROGRAM...

Looks for false findings: for S seconds runs the PROGRAMs under cuguest-audit, one after the other and from the
beginning again, and mixed_torch.py after each tenth where PyTorch is installed. A finding is expected only in a PROGRAM
(the name of its file) that is known to call an OBJECT (a beginning of the name of its file) which disturbs. Prints what
else was found; ends with 1 if there was anything.
"""

import argparse
import collections
import importlib.util
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
LONGEST_S = 60
TORCH_EACH = 10
PASSED = (0, 77)


def programs(options):
    """For ever: what is to be run next, as a list of words."""
    has_torch = importlib.util.find_spec("torch") is not None
    for number, program in enumerate(itertools.cycle(options.programs)):
        if has_torch and number % TORCH_EACH == 0:
            yield [sys.executable, str(HERE / "mixed_torch.py"), str(number)]
        yield [str(pathlib.Path(program).resolve())]


def is_expected(finding, program, expected):
    culprit = pathlib.Path(finding["culprit"].get("object", "")).name
    return any(program == name and culprit.startswith(thing) for name, thing in expected)


def end_of(output):
    return output.decode(errors="replace")[-2000:]


def audited(command, words):
    """The report, or None if the program took too long."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "report.json"
        try:
            done = subprocess.run([command, f"--json={file}", "--", *words], capture_output=True, timeout=LONGEST_S,
                                  cwd=pathlib.Path(words[-1]).parent if len(words) == 1 else folder,
                                  stdin=subprocess.DEVNULL, check=False)
        except subprocess.TimeoutExpired:
            return None, -1
        text = file.read_text() if file.exists() else ""
        if not text:
            sys.exit(f"no report of {words}: exit status {done.returncode}\n{end_of(done.stderr)}")
        if done.returncode not in PASSED:
            print(f"{words}: exit status {done.returncode}\n{end_of(done.stdout)}")
        return json.loads(text), done.returncode


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=540)
    parser.add_argument("--expect", action="append", default=[], type=lambda text: tuple(text.split(":")))
    parser.add_argument("command", type=os.path.abspath)
    parser.add_argument("programs", nargs="+")
    options = parser.parse_args()
    runs, too_long, failed = collections.Counter(), set(), collections.Counter()
    events, found, expected = 0, {}, 0
    end = time.monotonic() + options.seconds
    for words in programs(options):
        if time.monotonic() > end:
            break
        name = pathlib.Path(words[-1] if len(words) == 1 else words[1]).name
        report, code = audited(options.command, words)
        if report is None:
            too_long.add(name)
            continue
        runs[name] += 1
        failed[name] += code not in PASSED
        events += sum(process["events"] for process in report.get("processes", []))
        for finding in report.get("findings", []):
            if is_expected(finding, name, options.expect):
                expected += 1
            else:
                found.setdefault((name, finding["kind"], finding["culprit"].get("object", ""),
                                  finding["culprit"].get("function", "")), finding)
    for (name, kind, thing, function), finding in sorted(found.items()):
        print(f"found: {name}: {kind} by {pathlib.Path(thing).name} {function}: {finding['call']} -> {finding['result']}")
    for name, count in sorted(failed.items()):
        if count:
            print(f"{count} of {runs[name]} runs of {name} failed")
    for name in sorted(too_long):
        print(f"not audited to its end: {name}")
    print(f"{sum(runs.values())} runs of {len(runs)} programs ({runs['mixed_torch.py']} of PyTorch), {events} events: "
          f"{len(found)} findings that were not expected, {expected} that were")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

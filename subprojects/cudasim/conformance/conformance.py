#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""conformance.py record PROGRAM FILE [--seed S] [--first F] [--sequences N] [--calls M] [--jobs J] [--seconds T]
                      [--devices D]
conformance.py replay PROGRAM FILE... [--known FILE] [--part I/N] [--seconds T] [--jobs J]

record: what the driver on the library path answers to sequences of calls, into FILE (.xz). A sequence that
ends the process, or does not end, is named and left out. No sequence begins after T seconds.

replay: plays the sequences of recordings on the driver on the library path, of which --part I/N takes every
Nth, and compares. A difference is printed as the shortest sequence that leads to it. Those that the file of
known differences lists may differ, and no longer must not.
"""

import argparse
import concurrent.futures
import datetime
import lzma
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time


def described(program, devices):
    lines = subprocess.check_output([program, "describe", "--devices", str(devices)], text=True)
    try:
        release = subprocess.check_output(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], text=True).split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        release = "unknown"
    return lines + f"% driver {release}\n% date {datetime.date.today()}\n"


def sequences_in(text):
    """{number: lines of a whole sequence}, of what `play` wrote; and the transitions."""
    found, transitions = {}, {}
    number, lines = None, []
    for line in text.splitlines():
        if line.startswith("#"):
            number, lines = int(line[1:]), []
        elif line == ".":
            found[number], number = lines, None
        elif line.startswith("+"):
            name, count = line[1:].rsplit(" ", 1)
            transitions[name] = transitions.get(name, 0) + int(count)
        else:
            lines.append(line)
    return found, transitions, number


class Recorder:
    def __init__(self, options):
        self.options, self.end = options, time.monotonic() + options.seconds
        self.found, self.transitions, self.skipped, self.logs = {}, {}, {}, []

    def play(self, first, count, *extra):
        with tempfile.NamedTemporaryFile("r", errors="replace") as answers:
            command = [self.options.program, "play", "--seed", self.options.seed, "--first", first, "--sequences", count,
                       "--calls", self.options.calls, "--devices", self.options.devices,
                       "--seconds", max(1, int(self.end - time.monotonic())), "--answers", answers.name, *extra]
            done = subprocess.run([str(word) for word in command], text=True, errors="replace",
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
            return done, sequences_in(answers.read())

    def range(self, first, count):
        end = first + count
        while first < end and time.monotonic() < self.end:
            done, (found, transitions, unfinished) = self.play(first, end - first)
            self.found.update(found)
            for name, number in transitions.items():
                self.transitions[name] = self.transitions.get(name, 0) + number
            self.logs.append(done.stderr)
            if done.returncode == 0:
                return
            if unfinished is None:
                sys.exit(f"{self.options.program}: exit {done.returncode}: {done.stderr[-2000:]}")
            again, _ = self.play(unfinished, 1, "--trace")
            self.skipped[unfinished] = f"exit {done.returncode}, again {again.returncode}"
            tail = "\n".join(again.stdout.splitlines()[-25:])
            print(f"sequence {unfinished}: exit {done.returncode}; alone: {again.returncode}; {done.stderr[-300:]}\n{tail}",
                  flush=True)
            first = unfinished + 1

    def record(self):
        options = self.options
        share = -(-options.sequences // options.jobs)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(lambda job: self.range(options.first + job * share,
                                                 min(share, options.sequences - job * share)),
                          range(-(-options.sequences // share))))


def record(options):
    head = described(options.program, options.devices)
    recorder = Recorder(options)
    start = time.monotonic()
    recorder.record()
    text = head + f"% seed {options.seed}\n% calls {options.calls}\n"
    text += "".join(f"% skipped {number} {why}\n" for number, why in sorted(recorder.skipped.items()))
    for number, lines in sorted(recorder.found.items()):
        text += "\n".join([f"#{number}", *lines, ".\n"])
    options.files[0].write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    options.files[0].with_suffix(".transitions").write_text(
        "".join(f"{name} {count}\n" for name, count in sorted(recorder.transitions.items())))
    options.files[0].with_suffix(".log").write_text("\n".join(recorder.logs))
    calls = sum(len(lines) for lines in recorder.found.values())
    print(f"{calls} calls in {len(recorder.found)} sequences, {len(recorder.transitions)} transitions, "
          f"{len(recorder.skipped)} skipped; {time.monotonic() - start:.0f} s, "
          f"{options.files[0].stat().st_size} bytes")
    return 0


def part_of(path, part, parts):
    """The recording's head and every `parts`th sequence."""
    head, sequences, current = [], [], None
    for line in lzma.open(path, "rt"):
        if line.startswith("#"):
            current = [line]
            sequences.append(current)
        elif current is None:
            head.append(line)
        else:
            current.append(line)
    return "".join(head), ["".join(lines) for lines in sequences[part::parts]]


COUNTS = re.compile(r"^(\d+) calls in (\d+) sequences, of which (\d+) differ$", re.M)


def known_in(path, recording):
    """The numbers of the sequences that are known to differ."""
    rows = [line.split(maxsplit=2) for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {int(number) for name, number, _ in rows if name == recording.name}


def number_of(sequence):
    return int(sequence.split("\n", 1)[0][1:])


def compare(program, head, sequences):
    """(output, calls, sequences, numbers of those that differ); one that ends the process differs."""
    gpu = "H200" if re.search(r"^% gpu .*H200", head, re.M) else "H100"  # of which the simulation has both
    devices = re.search(r"^% devices (\d+)", head, re.M)
    run = subprocess.run([program, "replay", "--devices", devices[1] if devices else "1"],
                         input=head + "".join(sequences), text=True, errors="replace",
                         env=dict(os.environ, CUDASIM_GPU=gpu),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    counts = COUNTS.search(run.stdout)
    if counts:
        numbers = {int(number) for number in re.findall(r"^sequence (\d+)", run.stdout, re.M)}
        return COUNTS.sub("", run.stdout).strip(), int(counts[1]), int(counts[2]), numbers
    if len(sequences) == 1:
        number = number_of(sequences[0])
        return f"{run.stdout}sequence {number}: exit {run.returncode}: {run.stderr[:1000]}", 0, 1, {number}
    first, second = (compare(program, head, half) for half in (sequences[::2], sequences[1::2]))
    return f"{first[0]}\n{second[0]}".strip(), first[1] + second[1], first[2] + second[2], first[3] | second[3]


def replay(options):
    part, parts = (int(number) for number in options.part.split("/"))
    calls = total = differing = wrong = 0
    for path in options.files:
        head, sequences = part_of(path, part, parts)
        known = known_in(options.known, path) if options.known else set()
        shares = [sequences[i::options.jobs] for i in range(min(options.jobs, len(sequences)))]
        with concurrent.futures.ThreadPoolExecutor(len(shares)) as pool:
            results = list(pool.map(lambda share: compare(options.program, head, share), shares))
        differ = set().union(*(numbers for *_, numbers in results))
        for text in (text for text, *_ in results if text):
            print(text)
        for number in sorted(known & {number_of(sequence) for sequence in sequences} - differ):
            print(f"sequence {number} of {path.name} does not differ any more: take it off the list of known differences")
            wrong += 1
        calls += sum(result[1] for result in results)
        total += len(sequences)
        differing += len(differ)
        wrong += len(differ - known)
    print(f"{calls} calls in {total} sequences, of which {differing} differ")
    return 1 if wrong or not total else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=["record", "replay"])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("files", type=pathlib.Path, nargs="+")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--sequences", type=int, default=80)
    parser.add_argument("--calls", type=int, default=250)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--devices", type=int, choices=[1, 2], default=1)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--known", type=pathlib.Path)
    options = parser.parse_args()
    options.program = options.program.resolve()
    return record(options) if options.mode == "record" else replay(options)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fresh.py PROGRAM SIMDIR [--seed S] [--sequences N] [--seconds T] [--jobs J] [--devices D]

Plays sequences that nobody has recorded on the driver on the library path, J at a time, for T seconds at most, and
then on the simulation in the folder SIMDIR, and compares the answers. The seed is the time, unless told.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent


def conformance(mode, program, file, *options, **environment):
    command = [sys.executable, HERE / "conformance.py", mode, program, file, *options]
    return subprocess.run([str(word) for word in command], env=dict(os.environ, **environment), check=False).returncode


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("simdir", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--sequences", type=int, default=800)
    parser.add_argument("--seconds", type=int, default=180)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--devices", type=int, choices=[1, 2], default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        recording = pathlib.Path(directory) / "fresh.xz"
        # As many as the simulation that replays has.
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0,1").split(",")[:options.devices]
        return (conformance("record", options.program, recording, "--seed", options.seed,
                            "--sequences", options.sequences, "--seconds", options.seconds, "--jobs", options.jobs,
                            "--devices", options.devices, CUDA_VISIBLE_DEVICES=",".join(visible)) or
                conformance("replay", options.program, recording, LD_LIBRARY_PATH=str(options.simdir.resolve())))


if __name__ == "__main__":
    sys.exit(main())

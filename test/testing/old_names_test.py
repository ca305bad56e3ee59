#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""old_names_test.py SIMDIR

What docs/migration.md says of the simulation's environment variables: the names of 0.1 still work, and a new name
goes before them.
"""

import os
import pathlib
import subprocess
import sys

simdir = pathlib.Path(sys.argv[1])
READ = """
import ctypes, sys
runtime, version = ctypes.CDLL(sys.argv[1]), ctypes.c_int()
assert runtime.cudaRuntimeGetVersion(ctypes.byref(version)) == 0
print(version.value)
"""
runtime = next(simdir.glob("libcudart.so.*"))
CASES = {
    ("CUGUEST_SIM_RUNTIME_VERSION=12.4",): 12040,
    ("CUDASIM_RUNTIME_VERSION=12.6",): 12060,
    ("CUGUEST_SIM_RUNTIME_VERSION=12.4", "CUDASIM_RUNTIME_VERSION=12.6"): 12060,
}
failed = 0
for settings, expected in CASES.items():
    env = {name: value for name, value in os.environ.items() if "RUNTIME_VERSION" not in name}
    env.update(setting.split("=") for setting in settings)
    env["LD_LIBRARY_PATH"] = str(simdir)
    done = subprocess.run([sys.executable, "-c", READ, str(runtime)], env=env, capture_output=True, text=True)
    holds = done.stdout.strip() == str(expected)
    failed += not holds
    print("ok:" if holds else "NOT OK:", " ".join(settings), done.stdout.strip(), done.stderr)
print(f"cases: {len(CASES) - failed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed else 0)

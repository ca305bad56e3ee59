#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""every_library_test.py CUDASIM PROGRAM

PROGRAM, which is linked with every library that is simulated, starts, ends with 0, and the report of the command
`cudasim` names what it called of each.
"""

import os
import re
import subprocess
import sys

cudasim, program = sys.argv[1:]
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if name != "LD_LIBRARY_PATH" and not name.startswith("CUDASIM_")}
NAMED = ["cuMulticastUnbind", "cublasAsumEx", "cudaGraphDebugDotPrint", "cufftResetPlanProperty", "curandCreateGenerator",
         "cusolverSpCreate", "cusparseAxpby", "ncclAllGather"]

run = subprocess.run([cudasim, "--", program], env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
named = re.findall(r"^cudasim: not modelled: 1 (\w+)$", run.stderr, re.M)
failed = 0
for what, holds in (("it starts and ends with 0", run.returncode == 0), ("the report names each", named == NAMED)):
    print("ok:" if holds else "NOT OK:", what)
    failed += not holds
if failed:
    print(run.returncode, run.stdout, run.stderr)
print(f"cases: {2 - failed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed else 0)

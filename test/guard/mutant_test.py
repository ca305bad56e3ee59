#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mutant_test.py PROGRAM

PROGRAM has the cases of scope_order_test.cc and repair_table_test.cc, and a source of the library that was
made wrong (../schedules/mutate.py). Some of them must notice, in C++ and in C.
"""

import re
import subprocess
import sys

CASES = ["scope_order/*/two_scopes_end_in_any_order", "scope_order/*/three_scopes_end_in_any_order",
         "repair_table/*/every_fault_in_every_mode"]

failures = []
for case in CASES:
    run = subprocess.run([sys.argv[1], "--color_output=no", f"--run_test={case}"], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, errors="replace")
    wrong = [(int(count), int(of_c)) for count, of_c in
             re.findall(r": (\d+) of \d+ are wrong, (\d+) with scopes of C", run.stdout)]
    cpp, c = sum(count - of_c for count, of_c in wrong), sum(of_c for _, of_c in wrong)
    died = run.returncode < 0
    print(f"{case}: {cpp} wrong in C++, {c} in C" + (f", signal {-run.returncode}" if died else ""))
    failures.append((cpp, c, died))
noticed = any(died for *_, died in failures) or all(sum(each[i] for each in failures) > 0 for i in (0, 1))
print(f"cases: {int(noticed)} passed, {int(not noticed)} failed, 0 skipped")
sys.exit(0 if noticed else 1)

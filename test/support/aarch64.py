#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""aarch64.py targets|tests BUILD

Of a build for aarch64, the tests that are run in QEMU, and what Ninja makes for them: the core, contexts, the C API,
processes and schedules.
"""

import json
import os
import subprocess
import sys

what, build = sys.argv[1], os.path.abspath(sys.argv[2])
DIRECTORIES = ("acquire_", "capi_c", "capi_sim_c", "core_", "guard_", "process_", "pycuguest", "schedules_", "share_",
               "stack_", "status_")
# Minutes each in the emulator: all orders of something, and of memory the explorer has a model of its own, which no
# processor changes.
LEFT_OUT = {"guard_random_scopes", "guard_scope_order", "schedules_incident_listener", "schedules_per_context",
            "schedules_records", "schedules_registry"}


def introspected(name):
    return json.loads(subprocess.check_output(["meson", "introspect", f"--{name}", build]))


tests = [test for test in introspected("tests")
         if test["name"].startswith(DIRECTORIES) and test["name"] not in LEFT_OUT
         and test["suite"][0] in ("cuguest:embed", "cuguest:unit", "cuguest:process", "cuguest:schedules")]
if what == "tests":
    print(*(test["name"] for test in tests))
else:
    needed = {part for test in tests for part in test["depends"]}
    print(*(os.path.relpath(file, build) for target in introspected("targets") if target["id"] in needed
            for file in target["filename"]))

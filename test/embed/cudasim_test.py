#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cudasim_test.py quick|whole COMPILER TOOLKIT_INCLUDE MESON...

A copy of subprojects/cudasim outside of the repository configures, builds with all warnings as errors and passes its
tests. `quick`: without the simulated libraries, and a few of the tests.
"""

import json
import pathlib
import shutil
import sys

from common import ROOT, check, done, environment, files_below, run, scratch

extent, compiler, toolkit, *meson = sys.argv[1:]
# One of each kind: facts of the driver, control of the simulation, the older drivers.
QUICK = ["sim_stack_facts", "sim_primary_facts", "sim_sim_control", "sim_driver_version"]



def without_builds(directory, names):
    return [name for name in names if name == "__pycache__"
            or name.startswith("build") and (pathlib.Path(directory) / name).is_dir()]


with scratch() as tmp:
    copy, build, stage = tmp / "cudasim", tmp / "build", tmp / "stage"
    shutil.copytree(ROOT / "subprojects" / "cudasim", copy, ignore=without_builds)
    env = environment(CXX=compiler)
    libraries = "disabled" if extent == "quick" else "enabled"
    run(*meson, "setup", build, copy, "--prefix=/usr", "--libdir=lib", "--buildtype=plain", "-Dwerror=true", "-Dtests=enabled",
        f"-Dlibraries={libraries}", f"-Dtoolkit_include={toolkit}", env=env)
    tests = [test["name"] for test in json.loads(run(*meson, "introspect", "--tests", build))]
    wanted = QUICK if extent == "quick" else tests
    check(f"configures {len(tests)} tests", set(wanted) <= set(tests) and len(tests) > 40, tests)
    targets = [] if extent == "whole" else ["sim_ready.stamp", "test/sim_test"]
    run("ninja", "-C", build, "-j1", *targets, env=env)
    check(f"builds with {compiler}", True)
    print(run(*meson, "test", "-C", build, "--no-rebuild", "--num-processes", "1", *wanted, env=env))
    check(f"{len(wanted)} tests pass", True)
    if extent == "whole":
        run(*meson, "install", "-C", build, "--no-rebuild", "--destdir", stage, env=env)
        installed = set(files_below(stage))
        expected = {"usr/lib/libcudasim.a", "usr/lib/cudasim/libcuda.so.1", "usr/lib/cudasim/11.8/libcuda.so.1",
                    "usr/lib/pkgconfig/cudasim.pc", "usr/include/cudasim/sim.h"}
        check("installs itself", expected <= installed, sorted(installed))
    done()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cudasim_test.py quick|whole COMPILER TOOLKIT_INCLUDE MESON...

A copy of subprojects/cudasim outside of the repository configures, builds with all warnings as errors and passes its
tests. `quick`: without the simulated libraries, and the tests that take no test program of its suites.
"""

import json
import shutil
import sys

from common import ROOT, check, done, files_below, meson_environment, run, scratch, toolkit_options, without_builds

extent, compiler, toolkit, *meson = sys.argv[1:]
QUICK = ["cudasim_exports", "cudasim_command"]


with scratch() as tmp:
    copy, build, stage = tmp / "cudasim", tmp / "build", tmp / "stage"
    shutil.copytree(ROOT / "subprojects" / "cudasim", copy, ignore=without_builds)
    env = meson_environment(compiler)
    libraries = "disabled" if extent == "quick" else "enabled"
    run(*meson, "setup", build, copy, "--prefix=/usr", "--libdir=lib", "--buildtype=plain", "-Dwerror=true", "-Dtests=enabled",
        f"-Dlibraries={libraries}", *toolkit_options(toolkit, "toolkit_include"), env=env)
    tests = [test["name"] for test in json.loads(run(*meson, "introspect", "--tests", build))]
    wanted = QUICK if extent == "quick" else tests
    check(f"configures {len(tests)} tests", set(wanted) <= set(tests) and len(tests) > 40, tests)
    targets = [] if extent == "whole" else ["sim_ready.stamp", "command/cudasim", "test/command_program"]
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

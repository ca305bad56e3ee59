#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""audit_test.py COMPILER TOOLKIT_INCLUDE MESON...

A copy of subprojects/cuguest-audit outside of the repository configures, builds with all warnings as errors, passes its
tests on the copy of the simulation in it, but for those that take long in the repository's own build, and installs the
command, which finds what it injects.
"""

import json
import shutil
import sys

from common import ROOT, check, done, files_below, meson_environment, run, scratch, toolkit_options, without_builds

# Nothing that they look at is otherwise where the auditor is alone.
LONG = {"audit_truth", "audit_command", "audit_advice"}
compiler, toolkit, *meson = sys.argv[1:]

with scratch() as tmp:
    copy, build, stage = tmp / "cuguest-audit", tmp / "build", tmp / "stage"
    shutil.copytree(ROOT / "subprojects" / "cuguest-audit", copy, ignore=without_builds)
    env = meson_environment(compiler)
    # Each target from one source, so no two of its files may give one name to two things.
    run(*meson, "setup", build, copy, "--prefix=/usr", "--libdir=lib", "--buildtype=plain", "-Dwerror=true", "-Dtests=enabled",
        "-Dunity=on", "-Dunity_size=1000", *toolkit_options(toolkit, "toolkit_include"), env=env)
    tests = [test for test in json.loads(run(*meson, "introspect", "--tests", build))
             if test["suite"][0].startswith("cuguest-audit:")]
    names = [test["name"] for test in tests if not any(suite.endswith(":extra") for suite in test["suite"])]
    check("has the tests that take long", LONG <= set(names), names)
    names = [name for name in names if name not in LONG]
    check(f"configures {len(names)} tests", len(names) > 12, names)
    # And of the simulation what they run on.
    own = [target["filename"][0] for target in json.loads(run(*meson, "introspect", "--targets", build))
           if target.get("subproject") is None and target["build_by_default"]]
    run("ninja", "-C", build, "-j1", *(file.removeprefix(f"{build}/") for file in own),
        "subprojects/cudasim/sim_ready.stamp", env=env)
    check(f"builds with {compiler}", True)
    print(run(*meson, "test", "-C", build, "--no-rebuild", "--print-errorlogs", "--num-processes", "1", *names, env=env))
    check(f"{len(names)} tests pass", True)
    run(*meson, "install", "-C", build, "--no-rebuild", "--destdir", stage, env=env)
    installed = set(files_below(stage))
    check("installs itself", installed == {"usr/bin/cuguest-audit", "usr/lib/libcuguest-audit.so"}, sorted(installed))
    # Of two targets of one name Meson builds neither, and ninja knows only files and aliases.
    run("ninja", "-C", build, "-j1", "cuguest-audit", env=env)
    run(*meson, "compile", "-C", build, "-j1", "cuguest-audit", env=env)
    report = run(build / "cuguest-audit", "--", "true", env=env)
    check("has one target cuguest-audit for ninja and for meson", "0 findings" in report, report)
    report = run(stage / "usr" / "bin" / "cuguest-audit", "--", "true", env=env)
    check("the installed command finds the library that it injects", "0 findings" in report, report)
    done()

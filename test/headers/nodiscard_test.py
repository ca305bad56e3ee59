#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""nodiscard_test.py SOURCE_ROOT BUILD_ROOT COMPILER

A guard without a name ends at the semicolon and guards nothing: the compiler warns of it,
whatever the guard is built from. (For g++ [[nodiscard]] on the class says nothing of
constructors.) And it says nothing of one with a name.
"""

import pathlib
import re
import subprocess
import sys

from flags import system_includes

root, build, compiler = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
PROLOGUE = """
#include "cuguest/acquired_guard.h"
#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_scope.h"
#include "cuguest/exact_guard.h"
#include "cuguest/host_scope.h"
#include "cuguest/incident_listener.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/relaxed.h"
#include "cuguest/shared_context.h"
#if __has_include(<cuda_runtime_api.h>)
#define HAVE_RUNTIME 1
#else
#define HAVE_RUNTIME 0
#endif
#if HAVE_RUNTIME
#include "cuguest/runtime/callee_scope.h"
#include "cuguest/runtime/device_guard.h"
#include "cuguest/runtime/last_error_scope.h"
#endif
using namespace cuguest;
struct Library { CUcontext context; ContextRef ref; SharedContext shared; CUstream stream; Device device; };
"""
GUARDS = [
    ("ContextGuard", "l.context"), ("ContextGuard", "l.ref"),
    ("ContextGuard", "l.shared"), ("ContextGuard", "l.context, GuardMode::kAlwaysPush"),
    ("ContextGuard", "l.ref, GuardMode::kElide, Location::Here()"),
    ("ContextGuard", ""), ("ContextGuard", "GuardMode::kAlwaysPush"), ("ContextScope", ""),
    ("ExactGuard", "l.context"), ("ExactGuard", "l.ref"), ("ExactGuard", "l.shared"),
    ("ExactGuard", "l.ref, Location::Here()"),
    ("NoContextGuard", ""), ("NoContextGuard", "Location::Here()"),
    ("HostScope", ""), ("HostScope", "guard"),
    ("AcquiredGuard", "AcquireFromStream(l.stream)"),
    ("AcquiredGuard", "AcquireFromStream(l.stream), GuardMode::kElide, Location::Here()"),
    ("AcquiredGuard", "l.device"), ("AcquiredGuard", "l.device, IfInactive::kRefuse"),
    ("Relaxed<ContextGuard>", "l.ref"), ("Relaxed<AcquiredGuard>", "AcquireFromStream(l.stream)"),
    ("Relaxed<AcquiredGuard>", "l.device, IfInactive::kRefuse"),
    ("CaptureModeGuard", ""), ("IncidentListener", "nullptr"),
    ("runtime::DeviceGuard", "l.device"), ("runtime::LastErrorScope", ""),
    ("runtime::CalleeScope", "l.ref"), ("runtime::CalleeScope", "l.context"),
]


def lines_warned_of(statements):
    """The indices of the statements that the compiler warns of, each in a function of its own."""
    text = PROLOGUE
    for index, statement in enumerate(statements):
        if "runtime::" in statement:
            text += "\n#if HAVE_RUNTIME"
        text += (f'\n#line {index + 1} "statements"\nvoid Call{index}(const Library& l, ContextGuard& guard) '
                 f"{{ {statement} static_cast<void>(l); static_cast<void>(guard); }}")
        if "runtime::" in statement:
            text += "\n#endif"
    result = subprocess.run(
        [compiler, "-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-fsyntax-only", f"-I{root / 'include'}",
         *system_includes(build), "-"], input=text + "\n", capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(result.stderr)
    return {int(line) - 1 for line in re.findall(r"^statements:(\d+):.* warning:", result.stderr, re.M)}


named = [f"const {name} named{{{arguments}}}; static_cast<void>(named);" for name, arguments in GUARDS]
# In parentheses a single name would declare a variable of it; clang++ refuses a qualified one.
unnamed = [f"{name}{{{arguments}}};" for name, arguments in GUARDS] + [
    f"{name}({arguments});" for name, arguments in GUARDS if arguments not in ("guard", "Location::Here()", "GuardMode::kAlwaysPush")]
warned = lines_warned_of(named)
failures = [f"a warning of {named[index]}" for index in sorted(warned)]
warned = lines_warned_of(unnamed)
has_runtime = any("runtime::" in unnamed[index] for index in warned)
failures += [f"nothing is said of {statement}" for index, statement in enumerate(unnamed)
             if index not in warned and (has_runtime or "runtime::" not in statement)]
for failure in failures:
    print(f"FAILED: {failure}")
print(f"cases: {len(named) + len(unnamed) - len(failures)} passed, {len(failures)} failed, 0 skipped")
sys.exit(1 if failures else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""refused_test.py SOURCE_ROOT BUILD_ROOT COMPILER

What public headers refuse to compile, with the words that say what to do instead; and what comes
closest to it compiles.
"""

import pathlib
import subprocess
import sys

from flags import system_includes

root, build, compiler = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
PROLOGUE = """
#include <string>
#include <utility>
#include <vector>
#include "cuguest/acquire.h"
#include "cuguest/context_guard.h"
#include "cuguest/copy.h"
#include "cuguest/device_ptr.h"
#include "cuguest/launch.h"
#include "cuguest/per_context.h"
using namespace cuguest;
struct Given {
  const Kernel& kernel;
  const LaunchShape& shape;
  const StreamRef& stream;
  const DeviceView<int>& view;
  const DeviceView<double>& doubles;
  const DeviceView<char>& letters;
  std::vector<int>& values;
  int* pointer;
  Device device;
  PerContext<int>& cache;
  const ContextRef& context;
};
std::vector<int> Made();
std::string Text();
"""
DELETED = "deleted"
REFUSED = [
    ("static_cast<void>(Launch(g.kernel, g.shape, g.stream, g.pointer));", "a pointer may as well be the host's"),
    ("static_cast<void>(Launch(g.kernel, g.shape, g.stream, DevicePtr<int>(g.view), 1, g.pointer));", "a pointer may as well be the host's"),
    ("static_cast<void>(Launch(g.kernel, g.shape, g.stream, g.values));", "its type must be trivially copyable"),
    ("static_cast<void>(Launch(g.kernel, g.shape, g.stream, nullptr));", "nullptr has no type"),
    ("static_cast<void>(Launch(g.kernel, g.shape, g.stream, HostSpan<int>(g.values)));", "this object is for the host"),
    ("static_cast<void>(Copy(g.values, g.view));", DELETED),
    ("static_cast<void>(Copy(g.view, g.values));", DELETED),
    ("static_cast<void>(CopyAsync(g.view, Made(), g.stream));", DELETED),
    ("static_cast<void>(CopyAsync(g.letters, Text(), g.stream));", DELETED),
    ("static_cast<void>(Fill(g.doubles, 1.0));", "the driver fills with elements of 1, 2 or 4 bytes"),
    ("static_cast<void>(HostSpan<std::string>());", "must be trivially copyable"),
    ("const ContextGuard guard(AcquireOn(g.device)->incarnation());", DELETED),
    ("const ContextGuard guard(AcquireOn(g.device).value().incarnation());", DELETED),
    ("static_cast<void>(g.cache.GetOrMake(g.context, [](const ContextRef&) { return Text(); }));",
     "must return absl::StatusOr<T>"),
]
ACCEPTED = [
    "static_cast<void>(Launch(g.kernel, g.shape, g.stream, DevicePtr<int>(g.pointer), DevicePtr<int>(g.view), 1));",
    "static_cast<void>(Copy(HostSpan<int>(g.values), g.view));",
    "static_cast<void>(Copy(g.view, std::as_const(g.values)));",
    "static_cast<void>(CopyAsync(g.view, std::as_const(g.values), g.stream));",
    "static_cast<void>(Fill(g.view, 1));",
    "static_cast<void>(HostSpan<const int>(HostSpan<int>(g.values)));",
    "const auto acquired = AcquireOn(g.device); if (acquired.ok()) { const ContextGuard guard(acquired->incarnation()); }",
    "static_cast<void>(g.cache.GetOrMake(g.context, [](const ContextRef&) -> absl::StatusOr<int> { return 1; }));",
]


def said_of(statements):
    """What the compiler says of the statements, each in a function of its own."""
    text = PROLOGUE
    for index, statement in enumerate(statements):
        text += f'\n#line {index + 1} "statements"\nvoid Call{index}(const Given& g) {{ {statement} static_cast<void>(g); }}'
    every = ["-ferror-limit=0"] if "clang" in compiler else []
    return subprocess.run(
        [compiler, "-x", "c++", "-std=c++17", "-fsyntax-only", *every, f"-I{root / 'include'}", *system_includes(build),
         "-"], input=text + "\n", capture_output=True, text=True).stderr


failures = []
said = said_of([statement for statement, _ in REFUSED])
for index, (statement, words) in enumerate(REFUSED):
    if f"statements:{index + 1}:" not in said or words not in said:
        failures.append(f"it compiles, or the compiler does not say \"{words}\": {statement}")
said = said_of(ACCEPTED)
if said:
    failures.append(said)
for failure in failures:
    print(f"FAILED: {failure}")
print(f"cases: {len(REFUSED) + len(ACCEPTED) - len(failures)} passed, {len(failures)} failed, 0 skipped")
sys.exit(1 if failures else 0)

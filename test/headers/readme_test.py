#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""readme_test.py SOURCE_ROOT BUILD_ROOT COMPILER

Compiles the C++ of README.md, with what a reader would have around it.
"""

import pathlib
import re
import subprocess
import sys

from flags import system_includes

root, build, compiler = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
AROUND = """
#include <cuda.h>
#include <string>
#include "cuguest/testing/sim.h"
#include "cuguest/testing/stack_probe.h"
void SomebodyElsesFilter(CUdeviceptr from, CUdeviceptr to);
#define BOOST_AUTO_TEST_CASE(name) void name()
#define BOOST_ERROR(text) static_cast<void>(text)
struct Encoder { void Encode(int frame); };
extern Encoder encoder;
extern int frame;
"""

blocks = re.findall(r"```cpp\n(.*?)```", (root / "README.md").read_text(), re.S)
failed = 0
for number, block in enumerate(blocks, 1):
    run = subprocess.run(
        [compiler, "-x", "c++", "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
         f"-I{root / 'include'}", *system_includes(build), "-"],
        input=AROUND + block, capture_output=True, text=True, cwd=build)
    if run.returncode:
        failed += 1
        print(f"not ok: block {number}\n{run.stderr}")
print(f"cases: {len(blocks) - failed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed or not blocks else 0)

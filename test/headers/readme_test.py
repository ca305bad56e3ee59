#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""readme_test.py SOURCE_ROOT BUILD_ROOT COMPILER

Compiles the C++ of README.md and CHANGELOG.md, with what a reader would have around it; looks for the tests
that it and the public headers name, and for one in each cell of its table of conversions.
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

readme = (root / "README.md").read_text()
blocks = re.findall(r"```cpp\n(.*?)```", readme + (root / "CHANGELOG.md").read_text(), re.S)
failed = 0
for number, block in enumerate(blocks, 1):
    run = subprocess.run(
        [compiler, "-x", "c++", "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
         f"-I{root / 'include'}", *system_includes(build), "-"],
        input=AROUND + block, capture_output=True, text=True, cwd=build)
    if run.returncode:
        failed += 1
        print(f"not ok: block {number}\n{run.stderr}")
named = set(re.findall(r"`(test/[^`\s]*)`", readme))
for header in (root / "include").rglob("*.h"):
    named.update(re.findall(r"\b(test/[\w/]+\.(?:cc|h|py))\b", header.read_text()))
for name in sorted(named):
    if not any(root.glob(name)):
        failed += 1
        print(f"not ok: there is no {name}")

cases = set()
for source in (root / "test" / "runtime").glob("*_test.cc"):
    cases.update(re.findall(r"^BOOST_AUTO_TEST_CASE\((\w+)", source.read_text(), re.M))
# What the toolkit does not have, and is said to be so.
NOTHING = ("texture and surface reference", "no runtime call takes", "the runtime has none")
table = readme.split("## From one API to the other")[1].split("\n## ")[0]
cells = 0
for row in re.findall(r"^\|(.*)\|$", table, re.M)[2:]:
    object_name, *directions = row.split("|")
    for cell in directions:
        cells += 1
        tests = [word for word in re.findall(r"`([\w/.]+)`", cell) if word in cases or (root / word).is_file()]
        if not tests and not any(words in object_name + cell for words in NOTHING):
            failed += 1
            print(f"not ok: no test of {object_name.strip()}: {cell.strip()}")

total = len(blocks) + len(named) + cells
print(f"cases: {total - failed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed or not blocks or not cells else 0)

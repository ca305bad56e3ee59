#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""nvcc_test.py SOURCE_ROOT BUILD_ROOT NVCC

Every public header through nvcc, all together, with its warnings and the host compiler's as errors.
"""

import pathlib
import sys

from flags import compile_by_nvcc, headers_that_can_be_included, system_includes

root, build, nvcc = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
headers = headers_that_can_be_included(sorted((root / "include").rglob("*.h")), build, "g++")
text = "".join(f'#include "{header.relative_to(root / "include")}"\n' for header in headers)
errors = compile_by_nvcc(nvcc, "c++17", [f"-I{root / 'include'}", *system_includes(build)], text)
if errors:
    print(f"not ok: {len(headers)} headers\n{errors}")
print(f"cases: {0 if errors else 1} passed, {1 if errors else 0} failed, 0 skipped")
sys.exit(1 if errors or not headers else 0)

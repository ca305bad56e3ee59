#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""light_test.py SOURCE_ROOT BUILD_ROOT COMPILER

The headers on every embedder's hot path bring <cuda.h>, each other, and nothing
else: no Abseil, no standard container.
"""

import pathlib
import re
import subprocess
import sys

from flags import system_includes

root, build, compiler = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
HEADERS = ["context_guard.h", "context_ref.h", "context_scope.h", "host_scope.h", "incident.h", "no_context_guard.h"]
# What <cuda.h> brings is allowed, and these, which cost nothing.
CHEAP = {"cstddef", "stddef.h", "cstdint", "stdint.h", "stdint-gcc.h", "stdint-intn.h"}


def preprocess(include):
    text = subprocess.run(
        [compiler, "-x", "c++", "-std=c++17", "-E", f"-I{root / 'include'}", *system_includes(build), "-"],
        input=f"#include {include}\n", check=True, capture_output=True, text=True).stdout
    files = set(re.findall(r'^# \d+ "([^"<]+)"', text, re.M)) - {"<stdin>"}
    return text.count("\n"), files


failed = 0
cuda_lines, cuda_files = preprocess("<cuda.h>")
print(f"{cuda_lines:7} lines  <cuda.h>")
for header in HEADERS:
    lines, files = preprocess(f'"cuguest/{header}"')
    extra = sorted(f for f in files - cuda_files
                   if not f.startswith(str(root / "include" / "cuguest")) and pathlib.Path(f).name not in CHEAP)
    print(f"{lines:7} lines  {header}", *(["brings:", *extra] if extra else []))
    failed += bool(extra)
print(f"cases: {len(HEADERS) - failed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed else 0)

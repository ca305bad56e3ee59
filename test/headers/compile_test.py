#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""compile_test.py alone|together SOURCE_ROOT BUILD_ROOT COMPILER

Every public header alone, included twice to try its guard; or all headers together,
as C++17 and as C++20. Without exceptions and RTTI, with the warnings that docs/install.md says hosts may ask for,
all of them errors. All together also as system headers, of which compilers say nothing.
"""

import pathlib
import re
import subprocess
import sys

from flags import cached, headers_that_can_be_included, system_includes

part, root, build, compiler = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4]
OPTIONS = ["-fno-exceptions", "-fno-rtti", "-Werror"]


def warnings_in(page):
    """Of a sentence on warnings: those of every compiler, and those of g++ alone."""
    names = re.search(r"(?s)<!-- by test/headers/compile_test.py -->(.*?)<!-- until here -->", page)[1]
    every, gcc = (re.findall(r"-W[\w+=-]+", part) for part in names.split("g++ alone", 1))
    return every, gcc


def check(job):
    name, standard, text, *own = job
    source = folder / f"{re.sub(r'[^a-z0-9]+', '_', name)}_{standard.replace('+', '_')}.cc"
    (build / source).write_text(text)
    run = subprocess.run(
        [*cached(compiler), f"-std={standard}", *OPTIONS, *(own or [*strict, f"-I{root / 'include'}", f"-I{root}"]),
         *includes, "-c", source, "-o", source.with_suffix(".o")],
        capture_output=True, text=True, cwd=build)
    return f"{name} as {standard}", run.returncode, run.stderr


every, gcc = warnings_in((root / "docs" / "install.md").read_text())
is_gcc = "Free Software Foundation" in subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
strict = every + (gcc if is_gcc else [])
# What nobody's headers can be clean of.
as_system = [*strict, "-Wpadded", "-Weffc++", f"-isystem{root / 'include'}"]
includes = system_includes(build)
# The same each time, for ccache.
folder = pathlib.Path("compiled_headers", f"{part}_{pathlib.Path(compiler).name}")
(build / folder).mkdir(parents=True, exist_ok=True)
headers = headers_that_can_be_included(sorted((root / "include").rglob("*.h")), build, compiler)
lines = {str(header.relative_to(root)): f'#include "{header.relative_to(root / "include")}"\n' for header in headers}
together = "".join(lines.values())
jobs = {
    "alone": [(name, "c++17", line * 2) for name, line in lines.items()],
    "together": [("all headers", "c++17", together), ("all headers", "c++20", together),
                 ("all headers, -isystem", "c++17", together, *as_system)],
}[part]

failed = 0
for name, code, errors in map(check, jobs):
    if code:
        failed += 1
        print(f"not ok: {name}\n{errors}")
print(f"{compiler}: {part}: {len(jobs)} compilations, {failed} failed")
print(f"cases: {len(jobs) - failed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed or not headers else 0)

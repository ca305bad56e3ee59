#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""casts_test.py SOURCE_ROOT [--list]

Every cast to a handle of CUDA's says why it may be one. In the comment above it, or above its function, is "Source:",
with the document or the test by which the value is such a handle, or "Round trip:", with what made the value from one.
Handles of the runtime are cast in one header, runtime/internal/handle_cast.h. With --list, prints all of them.
"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
ONE_HEADER = "include/cuguest/runtime/internal/handle_cast.h"
DRIVERS = (r"CU(?:context|stream|event|module|function|kernel|library|array|mipmappedArray|texObject|surfObject|graph"
           r"|graphNode|graphExec|graphicsResource|userObject|memoryPool|greenCtx|deviceptr|linkState|devResourceDesc"
           r"|externalMemory|externalSemaphore|asyncCallbackHandle|logsCallbackHandle)")
RUNTIMES = r"cuda(?!Error_t)\w+_t"
TEMPLATED = "Drivers|Runtimes|Execution"  # of the one header
NAMED = re.compile(rf"\b(reinterpret_cast|static_cast|bit_cast)<\s*(?:const\s+)?({DRIVERS}|{RUNTIMES}|{TEMPLATED})\s*\*?\s*>"
                   rf"\s*\(")
C_STYLE = re.compile(rf"\(\s*({DRIVERS}|{RUNTIMES})\s*\)\s*[\w(&*]")
WHY = re.compile(r"//.*\b(Source|Round trip): (.*)")
BESIDE = 14  # lines: a comment above a function of the house's length


def code_of(line):
    return re.sub(r"//.*", "", line)


def why(lines, number):
    """The comment nearest above, with its further lines, in the same or an enclosing function."""
    for above in range(number, max(-1, number - BESIDE), -1):
        if above < number and code_of(lines[above]).startswith("}"):
            return None  # the end of another function
        if found := WHY.search(lines[above]):
            text = [found[1] + ": " + found[2]]
            for line in lines[above + 1:number]:
                more = re.match(r"\s*///?\s+(\S.*)", line)
                if not more:
                    break
                text.append(more[1])
            return " ".join(text)
    return None


casts, failures = [], []
for tree in ("include", "lib"):
    for path in sorted((root / tree).rglob("*")):
        name = str(path.relative_to(root))
        if path.suffix not in (".h", ".cc") or name.startswith(("lib/image/", "lib/no_toolkit/")):
            continue
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            for found in [*NAMED.finditer(code_of(line)), *C_STYLE.finditer(code_of(line))]:
                kind = found[found.lastindex]
                reason = why(lines, number)
                casts.append(f"{name}:{number + 1}: {kind}: {reason}")
                if reason is None:
                    failures.append(f"{name}:{number + 1} casts to {kind}, and no comment beside it says why")
                if (re.fullmatch(RUNTIMES, kind) or name.startswith("include/cuguest/runtime/")) and name != ONE_HEADER:
                    failures.append(f"{name}:{number + 1} casts to {kind}: only {ONE_HEADER} does")
if "--list" in sys.argv:
    print(*casts, sep="\n")
if not any(cast.startswith(ONE_HEADER) for cast in casts):
    failures.append(f"{ONE_HEADER} has no casts")
for failure in failures:
    print(f"not ok: {failure}")
print(f"cases: {max(len(casts) - len(failures), 0)} passed, {len(failures)} failed, 0 skipped")
sys.exit(1 if failures else 0)

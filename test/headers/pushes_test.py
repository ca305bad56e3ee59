#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pushes_test.py SOURCE_ROOT

A destroyed handle that is pushed corrupts the driver's heap. So what pushes a context, or replaces
the current one, is in few places, which ask first what is known of the context.
"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
ALLOWED = {
    "include/cuguest/internal/incarnation.h": 1,  # EnterIncarnation()
    "include/cuguest/internal/scope.h": 1,  # Enter(), which asks first
    "include/cuguest/internal/stack_calls.h": 1,  # Push()
    "lib/no_cuda/internal/stack_calls.h": 1,  # Push() without a driver
    "lib/stack/thread_stack.cc": 4,  # Enter(), which asks first, PutBack() by it; and nullptr
    "lib/share/ending.cc": 1,  # DestroyLife(), which asks first, of what is current
    "lib/core/driver_access.cc": 1,  # the table of stack_calls.h
    "lib/core/driver_access_adopt.cc": 1,  # what guards require of a driver
}
# Push() of stack_calls.h has one argument.
NAMES = re.compile(
    r"\bCtx(?:PushCurrent|SetCurrent)\b|(?:internal::|(?<![\w.>:]))Push\((?!const\b)[^(),]*\)")
found = {}
for tree in ("include", "lib"):
    for path in sorted((root / tree).rglob("*")):
        name = str(path.relative_to(root))
        # The table declares them; cuguest::testing::Audit pushes what the driver has just said is there.
        if path.suffix not in (".h", ".cc") or path.name == "driver_table.h" or name == "lib/testing/audit.cc":
            continue
        text = re.sub(r"//[^\n]*", "", path.read_text())
        if count := len(NAMES.findall(text)):
            found[name] = count
failures = [f"{name}: {found.get(name, 0)} places that push, not {ALLOWED.get(name, 0)}"
            for name in sorted(found.keys() | ALLOWED.keys()) if found.get(name) != ALLOWED.get(name)]
for failure in failures:
    print(f"not ok: {failure}")
print(f"cases: {len(found.keys() | ALLOWED.keys()) - len(failures)} passed, {len(failures)} failed, 0 skipped")
sys.exit(1 if failures else 0)

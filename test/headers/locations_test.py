#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""locations_test.py SOURCE_ROOT

A guard that std::optional constructs takes its default location from the standard library, and an
incident there names nobody. So wherever cuguest itself emplaces one, it says where.
"""

import pathlib
import re
import sys

GUARD = re.compile(r"std::optional<\w*Guard> (\w+)")
failures = []
places = 0
for tree in ("include", "lib"):
    for path in sorted((pathlib.Path(sys.argv[1]) / tree).rglob("*")):
        if path.suffix not in (".h", ".cc"):
            continue
        # A member is declared in the header and emplaced in the source.
        declared = "".join(other.read_text() for other in path.parent.glob("*.h")) + path.read_text()
        declared = re.sub(r"//[^\n]*", "", declared)
        for name in sorted(set(GUARD.findall(declared))):
            for match in re.finditer(rf"\b{name}\.emplace\(([^;]*)\)", re.sub(r"//[^\n]*", "", path.read_text())):
                places += 1
                if not re.search(r"Location::Here\(\)|\bwhere\b", match[1]):
                    failures.append(f"{path.name}: {match[0]}")
for failure in failures:
    print(f"not ok: {failure} does not say where")
if places < 2:
    failures.append("the places were not found")
print(f"cases: {places - len(failures)} passed, {len(failures)} failed, 0 skipped")
sys.exit(1 if failures else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""layout_test.py SOURCE_ROOT

lib/ and test/ mirror include/cuguest/ (docs/architecture.md): the source of a header NAME.h, public or beside it, is
lib/ROOM/NAME.cc, or lib/ROOM/NAME_PART.cc where it is several, and includes that header first; lib/runtime/ is
include/cuguest/runtime/'s; and each room has its tests in test/ROOM/. All public headers are installed.
"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
lib = root / "lib"
ROOMS = {"context", "core", "launch", "link", "memory", "module", "runtime", "stream"}
OTHERS = {"image", "packaging", "pch"}  # cudaimage, by a link; what is installed; precompiled headers

failures = []


def expect(holds, text):
    if not holds:
        failures.append(text)


folders = {path.name for path in lib.iterdir() if path.is_dir()}
expect(folders == ROOMS | OTHERS, f"lib/: {sorted(folders ^ (ROOMS | OTHERS))}")
public = {}  # name: how it is included
for header in sorted((root / "include" / "cuguest").rglob("*.h")):
    public.setdefault(header.stem, []).append(str(header.relative_to(root / "include")))

listed = set(re.findall(r"'(cuguest/\S+\.h)'", (root / "include" / "meson.build").read_text()))
there = {name for names in public.values() for name in names}
expect(listed == there, f"include/meson.build, for installation: {sorted(listed ^ there)}")

sources = 0
places = {}
for room in sorted(ROOMS & folders):
    expect((root / "test" / room).is_dir(), f"test/{room}/ is missing")
    private = {path.stem: [f"lib/{room}/{path.name}"] for path in (lib / room).glob("*.h")}
    for path in sorted((lib / room).glob("*.cc")):
        sources += 1
        name = f"lib/{room}/{path.name}"
        words = path.stem.split("_")
        candidates = ["_".join(words[:count]) for count in range(len(words), 0, -1)]
        mirrored = [header for stem in candidates for header in private.get(stem, []) + public.get(stem, [])]
        first = re.search(r'^#include "([^"]+)"', path.read_text(), re.M)
        expect(first and first[1] in mirrored, f"{name} implements no header of its name: it includes {first and first[1]} first")
        other = places.setdefault(path.stem, name)
        expect(other == name, f"{name} and {other} have one name")
    for header in (lib / room).glob("*.h"):
        expect(f"LIB_{room.upper()}_{header.stem.upper()}_H_" in header.read_text(), f"{header.relative_to(root)}: its guard")
expect(sources > 40, f"{sources} sources")

print(*failures, sep="\n")
print(f"{len(ROOMS)} rooms, {sources} sources, {len(failures)} wrong")
print(f"cases: {int(not failures)} passed, {int(bool(failures))} failed, 0 skipped")
sys.exit(1 if failures else 0)

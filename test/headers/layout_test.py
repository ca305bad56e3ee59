#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""layout_test.py SOURCE_ROOT

lib/ and test/ mirror include/cuguest/ (docs/architecture.md): the source of a header NAME.h, public or beside it, is
lib/ROOM/NAME.cc, or lib/ROOM/NAME_PART.cc where it is several, and includes that header first; the rooms in
lib/objects/ are include/cuguest/objects/'s, lib/libraries/ is include/cuguest/libraries/'s, and lib/testing/
include/cuguest/testing/'s. Each room has its tests in test/ROOM/, at most 16 sources, and a README.md of at most 40
lines, which says what docs/architecture.md says of what it may include. All public headers are installed, and cite no
test, which only a checkout has: docs/guarantees.md does.

The page's tables of rooms are true: each header of include/cuguest/ itself and of its objects/ is of one room, the one
that has its source and its test, and of a tier of that room; and no file includes another room's that its own may not.
"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
lib = root / "lib"
FOLDERS = {
    "acquire", "cache", "capi", "core", "guard", "libraries", "objects", "objects/code", "objects/graph",
    "objects/launch", "objects/memory", "objects/stream", "share", "stack", "status", "testing",
}
ROOMS = {folder.split("/")[-1]: folder for folder in FOLDERS}  # as the tables and the READMEs name them
UMBRELLA = "cuguest/cuguest.h"  # includes the headers of every room of the heart, and belongs to none
ALL_BELOW = {"libraries"}  # may include each of the rooms above it in the table
# cudaimage, by a link; what stands for a toolkit, and finds one; what is installed; precompiled headers
OTHERS = {"image", "no_cuda", "no_toolkit", "packaging", "pch", "toolkit"}

failures = []


def expect(holds, text):
    if not holds:
        failures.append(text)


folders = {str(path.relative_to(lib)) for pattern in ("*", "objects/*") for path in lib.glob(pattern) if path.is_dir()}
expect(folders == FOLDERS | OTHERS, f"lib/: {sorted(folders ^ (FOLDERS | OTHERS))}")
public = {}  # name: how it is included
for header in sorted((root / "include" / "cuguest").rglob("*.h")):
    public.setdefault(header.stem, []).append(str(header.relative_to(root / "include")))

listed = set(re.findall(r"'(cuguest/\S+\.h)'", (root / "include" / "meson.build").read_text()))
there = {name for names in public.values() for name in names}
expect(listed == there, f"include/meson.build, for installation: {sorted(listed ^ there)}")

for name in sorted(there):
    cited = re.findall(r"///.*?\b(\w+/\w+_(?:test|rows|suite|benchmark)\.\w+)", (root / "include" / name).read_text())
    expect(not cited, f"{name} cites {', '.join(cited)}: docs/guarantees.md")

page = (root / "docs" / "architecture.md").read_text()
tiers, may = {}, {}  # of each room: the tiers, and what it may include (rooms, and headers as they are included)
for numbers, folder, cell in re.findall(r"^\| ([\d, ]+) \| `lib/([\w/]+)/` \|[^|]*\| ([^|]*) \|$", page, re.M):
    room = folder.split("/")[-1]
    tiers[room] = numbers.split(", ")
    named = set(may) if cell == "all of the above" else ROOMS.keys() & set(re.findall(r"\w+", re.sub("`.*?`", "", cell)))
    headers = re.findall(r"`([\w./]+)`", cell)
    may[room] = {room} | named | {name if name.startswith("lib/") else f"cuguest/{name}" for name in headers}
expect(set(may) == set(ROOMS), f"docs/architecture.md, what a room may include: {sorted(set(may) ^ set(ROOMS))}")
home = {}  # as it is included: the room
for folder, cell in re.findall(r"^\| `lib/([\w/]+)/` \| (`[^|]*) \|$", page, re.M):
    where = "cuguest/objects/" if folder.startswith("objects") else "cuguest/"
    for name in re.findall(r"`([\w.]+)`", cell):
        expect(where + name not in home, f"docs/architecture.md has {name} in two rooms")
        home[where + name] = folder.split("/")[-1]
flat = {str(path.relative_to(root / "include")): path
        for pattern in ("*.h", "objects/*.h") for path in (root / "include" / "cuguest").glob(pattern)}
umbrella = re.findall(r'^#include "(.*)"$', flat.pop(UMBRELLA).read_text(), re.M)
heart = {name for name in flat if name.count("/") == 1} - {"cuguest/c.h", "cuguest/cxx.h"}
expect(umbrella == sorted(heart), f"{UMBRELLA}: {sorted(set(umbrella) ^ heart)}")
expect(set(home) == set(flat), f"docs/architecture.md, the headers of the rooms: {sorted(set(home) ^ set(flat))}")
for name in sorted(home.keys() & flat.keys()):
    room, stem = home[name], flat[name].stem
    product = {other: folder for other, folder in ROOMS.items() if folder.startswith("objects") == ("/objects/" in name)}
    tested = {other for other, folder in product.items() if (root / "test" / folder / f"{stem}_test.cc").exists()}
    expect(not tested or room in tested, f"docs/architecture.md has {name} in {room}, and its test is in {sorted(tested)}")
    tier = re.search(r"\btier: (\w+)", flat[name].read_text())
    expect(tier and tier[1] in tiers[room], f"docs/architecture.md has {name} in {room}, whose tiers are {tiers[room]}")


def check_includes(path, room):
    for included in re.findall(r'^#include "((?:cuguest|lib)/[^"]+)"', path.read_text(), re.M):
        other = included.split("/")[-2] if included.startswith("lib/") else home.get(included)
        if other in ROOMS:
            expect(other in may[room] or included in may[room],
                   f"{path.relative_to(root)}, in {room}, includes {included}, in {other}: docs/architecture.md")


for name in home.keys() & flat.keys():
    check_includes(flat[name], home[name])

sources = 0
places = {}
for room, folder in sorted(ROOMS.items()):
    expect((root / "test" / folder).is_dir(), f"test/{folder}/ is missing")
    expect(len(list((lib / folder).glob("*.cc"))) <= 16, f"lib/{folder}/ has more than 16 sources")
    readme = lib / folder / "README.md"
    lines = readme.read_text().splitlines() if readme.exists() else []
    expect(0 < len(lines) <= 40, f"lib/{folder}/README.md: {len(lines)} lines")
    said = re.search(r"^May include: (.*?)\.\s", re.sub("`.*?`", "", "\n".join(lines)), re.M | re.S)
    named = ROOMS.keys() & set(re.findall(r"\w+", said[1] if said else ""))
    expect(said and (room in ALL_BELOW or named == may[room] & ROOMS.keys() - {room}),
           f"lib/{folder}/README.md, what it may include: {sorted(named)}")
    private = {path.stem: [f"lib/{folder}/{path.name}"] for path in (lib / folder).glob("*.h")}
    for path in sorted((lib / folder).glob("*.cc")):
        sources += 1
        name = f"lib/{folder}/{path.name}"
        words = path.stem.split("_")
        candidates = ["_".join(words[:count]) for count in range(len(words), 0, -1)]
        mirrored = [header for stem in candidates for header in private.get(stem, []) + public.get(stem, [])]
        first = re.search(r'^#include "([^"]+)"', path.read_text(), re.M)
        expect(first and first[1] in mirrored, f"{name} implements no header of its name: it includes {first and first[1]} first")
        expect(not first or home.get(first[1], room) == room,
               f"{name} implements {first and first[1]}, which docs/architecture.md has in {first and home.get(first[1])}")
        check_includes(path, room)
        other = places.setdefault(path.stem, name)
        expect(other == name, f"{name} and {other} have one name")
    for header in (lib / folder).glob("*.h"):
        check_includes(header, room)
        guard = f"LIB_{folder.upper().replace('/', '_')}_{header.stem.upper()}_H_"
        expect(guard in header.read_text(), f"{header.relative_to(root)}: its guard")
expect(sources > 40, f"{sources} sources")

print(*failures, sep="\n")
print(f"{len(ROOMS)} rooms, {sources} sources, {len(failures)} wrong")
print(f"cases: {int(not failures)} passed, {int(bool(failures))} failed, 0 skipped")
sys.exit(1 if failures else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""wall_test.py SOURCE_ROOT

The heart (contexts) is a product of its own: no file of it includes one of the objects, the bridge or the libraries; the
objects include none of the bridge or the libraries; and the heart's table of driver entries has what the heart calls, at
most 48, and none of the objects' table.
"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
include = root / "include" / "cuguest"
failures = []


def expect(holds, text):
    if not holds:
        failures.append(text)


def sources(*folders):
    return [path for folder in folders for path in sorted(folder.glob("*")) if path.suffix in (".h", ".cc")]


sys.path.insert(0, str(root / "test" / "support"))
from products import ROOMS  # noqa: E402

heart = sources(include, include / "internal", *(root / "lib" / room for room in ROOMS["heart"].split()))
object_rooms = [root / "lib" / "objects", *(path for path in (root / "lib" / "objects").iterdir() if path.is_dir())]
objects = sources(include / "objects", include / "objects" / "internal", *object_rooms)
expect(len(heart) > 100 and len(objects) > 60, f"{len(heart)} files of the heart, {len(objects)} of the objects")
ABOVE = {"the heart": r"objects|runtime|libraries|testing", "the objects": r"runtime|libraries|testing"}
for product, files in (("the heart", heart), ("the objects", objects)):
    for path in files:
        for name in re.findall(rf'^#include ["<]((?:cuguest|lib)/(?:{ABOVE[product]})/[^">]+)', path.read_text(), re.M):
            failures.append(f"{path.relative_to(root)}, of {product}, includes {name}")


def entries(path):
    return set(re.findall(r"^  X\((\w+), \d+,", path.read_text(), re.M))


table = entries(include / "driver_table.h")
of_objects = entries(include / "objects" / "driver.h")
expect(30 < len(table) <= 48, f"the heart's table has {len(table)} entries")
expect(len(of_objects) > 80, f"the objects' table has {len(of_objects)} entries")
expect(not table & of_objects, f"in both tables: {sorted(table & of_objects)}")
# For its users, who have no other way to wait for a context, or to read its flags.
FOR_USERS = {"CtxSynchronize", "CtxGetFlags"}
said = "".join(path.read_text() for path in heart if path.name != "driver_table.h")
uncalled = {name for name in table if not re.search(rf"\b{name}\b", said)}
expect(uncalled <= FOR_USERS, f"the heart calls no {sorted(uncalled - FOR_USERS)}")



def brings_abseil(path, seen):
    text = path.read_text()
    if re.search(r'^#include "absl/', text, re.M):
        return True
    ours = {root / "include" / name for name in re.findall(r'^#include "(cuguest/[^"]+)', text, re.M)} - seen
    seen |= ours
    return any(brings_abseil(each, seen) for each in sorted(ours))


# docs/architecture.md says which public headers bring Abseil: all but those of the core, and those that the row names.
text = (root / "include" / "meson.build").read_text()
core = re.findall(r"'cuguest/(\S+\.h)'", text[text.index("core_headers = "):text.index("heart_headers = ")])
row = re.search(r"^\| which header brings Abseil\? \|(.*)\|$", (root / "docs" / "architecture.md").read_text(), re.M)[1]
named = []
for files, folder in re.findall(r"((?:`\w+\.h`(?: and |, | )?)+) in `(\w+)/`", row):
    named += [f"{folder}/{name}" for name in re.findall(r"`(\w+\.h)`", files)]
public = [path for path in sorted(include.rglob("*.h")) if "internal" not in path.parts]
free = {str(path.relative_to(include)) for path in public if not brings_abseil(path, set())}
free -= {name for name in core if name.startswith("internal/")}
said_free = {name for name in (*core, *named) if not name.startswith("internal/")}
expect(free == said_free, f"docs/architecture.md, which header brings Abseil: {sorted(free ^ said_free)}")

print(*failures, sep="\n")
print(f"{len(heart)} files of the heart, {len(table)} entries; {len(objects)} of the objects, {len(of_objects)} entries")
print(f"cases: {int(not failures)} passed, {int(bool(failures))} failed, 0 skipped")
sys.exit(1 if failures else 0)

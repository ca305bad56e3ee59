#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tiers_test.py SOURCE_ROOT

Every file includes only its own tier or a lower one. A header's tier is in its
second line. A file under lib/ has the tier of the header it mirrors, which is public or
beside it; one that mirrors none has the highest tier of its directory.
"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
TESTING = 100  # above everything else


def banner_tier(path):
    found = re.search(r"^//.*\btier: (\w+)$", path.read_text(), re.M)
    if not found:
        return None
    return TESTING if found[1] == "testing" else int(found[1])


failures = []
tiers = {}  # as an #include names the file: tier
for header in sorted((root / "include").rglob("*.h")):
    name = str(header.relative_to(root / "include"))
    tiers[name] = banner_tier(header)
    if tiers[name] is None:
        failures.append(f"{name}: no `tier:` in its second line")
        tiers[name] = 0

files = {root / "include" / name: tier for name, tier in tiers.items()}
library = sorted(p for p in (root / "lib").rglob("*") if p.suffix in (".cc", ".h"))


def mirrored(path):
    beside = path.with_suffix(".h")
    room = path.relative_to(root / "lib").parts[0]
    folder = f"{room}/" if room in ("objects", "libraries") else ""
    return tiers.get(f"cuguest/{folder}{path.stem}.h", banner_tier(beside) if beside.exists() else None)


for path in library:
    tier = banner_tier(path)
    if tier is None:
        tier = mirrored(path)
    if tier is None:
        known = [mirrored(other) for other in library if other.parent == path.parent]
        tier = max((t for t in known if t is not None), default=TESTING)
    files[path] = tier
    tiers[str(path.relative_to(root))] = tier

edges = 0
for path, tier in files.items():
    for included in re.findall(r'^#include "((?:cuguest|lib)/[^"]+)"', path.read_text(), re.M):
        edges += 1
        if included.startswith("lib/image/") and (root / included).exists():
            continue  # the reader of images, which includes nothing of ours
        if included not in tiers:
            failures.append(f"{path.relative_to(root)}: includes {included}, which does not exist")
        elif tiers[included] > tier:
            failures.append(f"{path.relative_to(root)} (tier {tier}) includes {included} (tier {tiers[included]})")

print(*failures, sep="\n")
print(f"{len(files)} files, {edges} includes of ours, {len(failures)} wrong")
print(f"cases: {1 if not failures else 0} passed, {1 if failures else 0} failed, 0 skipped")
sys.exit(1 if failures else 0)

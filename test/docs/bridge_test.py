#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bridge_test.py SOURCE_ROOT [--fix INCLUDE]

The table of conversions in docs/bridge.md names every object type of <cuda_runtime_api.h> that runtime_types.txt lists:
what is a typedef of a pointer to a structure, or of a number that stands for an object. --fix INCLUDE writes that list
from the headers of a toolkit. (references_test.py checks that each row of the table names its tests.)
"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
LIST = pathlib.Path(__file__).parent / "runtime_types.txt"
HEADERS = ("driver_types.h", "surface_types.h", "texture_types.h", "cuda_runtime_api.h")
POINTER = r"(?:const )?struct\s+\w+\s*\*"
NUMBER = r"unsigned long long"
OBJECT = re.compile(rf"^typedef\s+(?:__device_builtin__\s+)?(?:{POINTER}|{NUMBER})\s*(cuda\w+);", re.M)


def types_of(include):
    version = re.search(r"#define CUDART_VERSION +(\d+)", (include / "cuda_runtime_api.h").read_text())
    names = {name for header in HEADERS for name in OBJECT.findall((include / header).read_text())}
    return "# SPDX-License-" "Identifier: Apache-2.0 WITH LLVM-exception\n" \
        f"# CUDA {int(version[1]) // 1000}.{int(version[1]) % 1000 // 10}\n" + "".join(f"{name}\n" for name in sorted(names))


if "--fix" in sys.argv:
    LIST.write_text(types_of(pathlib.Path(sys.argv[3])))
_, release, *types = LIST.read_text().splitlines()
table = (root / "docs" / "bridge.md").read_text().split("\n## ")[0]
objects = " ".join(re.findall(r"^\|([^|]*)\|", table, re.M))
missing = [name for name in types if f"`{name}`" not in objects]
for name in missing:
    print(f"not ok: docs/bridge.md has no row with {name}, an object type of {release[2:]}")
print(f"cases: {len(types) - len(missing)} passed, {len(missing)} failed, 0 skipped")
sys.exit(1 if missing or not types else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""initializers_test.py ARCHIVE

No object of the library has anything that runs before main() or at the process's end: loading an
embedder costs nothing, and it can be used from constructors and destructors of others.
"""

import re
import subprocess
import sys

text = subprocess.run(["readelf", "-SW", sys.argv[1]], check=True, capture_output=True, text=True).stdout
objects = dict(re.findall(r"^File: \S*[(\[]([^)\]]+)[)\]]\n(.*?)(?=^File: |\Z)", text, re.M | re.S))
wrong = {name: sorted(set(re.findall(r"\s(\.(?:init_array|fini_array|ctors|dtors)\S*)", sections)))
         for name, sections in objects.items()}
failed = 0
for name, found in sorted(wrong.items()):
    if found:
        failed += 1
        print(f"not ok: {name} has {' '.join(found)}")
print(f"cases: {len(objects) - failed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed or not objects else 0)

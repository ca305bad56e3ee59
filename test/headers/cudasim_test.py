#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cudasim_test.py SOURCE_ROOT

The simulated CUDA knows nothing of cuguest: no file of subprojects/cudasim has the word, but for the line of its
README that says who uses it, and none includes or names a file outside of the folder. (cudaimage, the reader of
device images, is linked into the folder.) cudaimage knows neither of them. cuguest-audit includes nothing of cuguest's,
nor of Abseil.
"""

import pathlib
import re
import subprocess
import sys

root = pathlib.Path(sys.argv[1]).resolve()
cudasim = root / "subprojects" / "cudasim"
LINK = "Used by [cuguest](../../README.md), whose tests run on it."
# A copy of the tree without Git is looked at whole.
listed = subprocess.run(["env", "git", "-C", cudasim, "ls-files", "-co", "--exclude-standard", "."], capture_output=True, text=True)
names = listed.stdout.split() if listed.returncode == 0 and listed.stdout else [
    str(path.relative_to(cudasim)) for path in cudasim.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
files = [cudasim / name for name in names if (cudasim / name).is_file()]

failures = []
links = 0
for path in files:
    name = path.relative_to(cudasim)
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        if name == pathlib.Path("README.md") and line == LINK:
            links += 1
        elif re.search("cuguest", line, re.I):
            failures.append(f"{name}:{number}: {line}")
        included = re.match(r'#include "([^"]+)"', line)
        if included and path.suffix in (".h", ".cc"):
            folders = (cudasim, cudasim / "include", cudasim / "subprojects" / "cudaimage" / "include", path.parent)
            generated = included[1].startswith("test/kernels/") and (cudasim / included[1]).with_suffix(".cu").is_file()
            if not generated and not any((folder / included[1]).is_file() for folder in folders):
                failures.append(f"{name}:{number}: {included[1]} is not in the folder")
        if path.name == "meson.build" and re.search(r"'(?:\.\./)+(?:lib|include/cuguest|kernels)/", line):
            failures.append(f"{name}:{number}: a path outside of the folder: {line.strip()}")

image = root / "subprojects" / "cudaimage"
sources = [path for path in image.rglob("*") if path.suffix in (".h", ".cc", ".build") and "build" not in path.relative_to(image).parts[0]]
for path in sources:
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        if re.search(r'cuguest|cudasim|#include ["<]absl|#include <cuda\.h>', line, re.I):
            failures.append(f"cudaimage/{path.relative_to(image)}:{number}: {line}")

audit = root / "subprojects" / "cuguest-audit"
audit_sources = [path for path in (*(audit / "audit").rglob("*"), *(audit / "test").rglob("*"), *(audit / "fuzz").rglob("*"))
                 if path.suffix in (".h", ".cc", ".build")]
for path in audit_sources:
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        if re.search(r'#include ["<](?:cuguest|lib|absl)/|\'(?:\.\./)+(?:lib|include/cuguest|kernels)/', line):
            failures.append(f"cuguest-audit/{path.relative_to(audit)}:{number}: {line}")

print(*failures, sep="\n")
ok = not failures and links == 1 and len(files) > 100 and len(sources) > 10 and len(audit_sources) > 50
print(f"{len(files)} files, {links} line that says who uses it, {len(failures)} wrong")
print(f"cases: {int(ok)} passed, {int(not ok)} failed, 0 skipped")
sys.exit(0 if ok else 1)

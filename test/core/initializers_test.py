#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""initializers_test.py ARCHIVE SOURCE_ROOT COMPILER... [FLAG...]

No object of the library has anything that runs before main() or at the process's end: loading an
embedder costs nothing, and it can be used from constructors and destructors of others. Nor has the
core, nor the template of a library with its Module::Once, compiled without optimisation by each
COMPILER there is: an optimiser removes initializers that the sources should not have.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "headers"))
from flags import cached

archive, root, *words = sys.argv[1:]
compilers = [word for word in words if not word.startswith("-")]
FLAGS = ["-std=c++17", "-O0", "-w", "-fPIC", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-DCUGUEST_STATIC",
         f"-I{root}", f"-I{root}/include", *(word for word in words if word.startswith("-"))]
passed = failed = 0


def look_at(file, name):
    """Each object of an archive, or the one of an object file."""
    global passed, failed
    text = subprocess.run(["readelf", "-SW", file], check=True, capture_output=True, text=True).stdout
    objects = dict(re.findall(r"^File: \S*[(\[]([^)\]]+)[)\]]\n(.*?)(?=^File: |\Z)", text, re.M | re.S)) or {name: text}
    for name, sections in sorted(objects.items()):
        found = sorted(set(re.findall(r"\s(\.(?:init_array|fini_array|ctors|dtors)\S*)", sections)))
        if found:
            failed += 1
            print(f"not ok: {name} has {' '.join(found)}")
        else:
            passed += 1


look_at(archive, archive)
with tempfile.TemporaryDirectory() as tmp:
    core = pathlib.Path(root, "lib", "core.list").read_text().split()
    source = "core.cc"  # in the same words each time, for ccache
    pathlib.Path(tmp, source).write_text("".join(f'#include "lib/{name}"\n' for name in core))  # together, which takes a tenth of the time
    # As if <iostream>, which Abseil includes, had been included already.
    sources = {"the core": [source],
               "the template": [pathlib.Path(root, "examples", "template", "scale.cc"), "-D_GLIBCXX_IOSTREAM"]}
    for compiler in filter(shutil.which, compilers):
        for what, arguments in sources.items():
            output = f"{tmp}/looked_at.o"
            subprocess.run([*cached(compiler), *FLAGS, "-c", *arguments, "-o", output], check=True, cwd=tmp)
            look_at(output, f"{what} by {compiler}, without optimisation,")
print(f"cases: {passed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed or not passed else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""sources_test.py SOURCE_ROOT BUILD_ROOT COMPILER [--fix]

What an author has copied from a release compiles with these headers, without a warning: as C99 and C++17. Of every
release what uses the core alone, with the headers and with the two files; of this minor version also what uses the
objects and Abseil. Nothing is linked. --fix stores the sources of this version, as they are.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "headers"))
from flags import system_includes  # noqa: E402
from kept import FREEZES, OWN, check, done, skip, stored, unpack, write_bundle  # noqa: E402

root, build, compiler = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
CORE = ["docs/two_files.md", "examples/guest/picture_score.c", "examples/guest/picture_score.h",
        *(f"examples/recipes/{name}_after.h" for name in ("caches", "pair", "retain"))]
ADOPTION = ("codec", "communication_library", "media_framework", "simulation_engine")
ABOVE = ["README.md", *(f"examples/adoption/{name}.cc" for name in ADOPTION),
         *(f"examples/support/{name}.h" for name in ("check", "example", "stage")), "examples/recipes/small_read.h",
         *(f"examples/template/{name}" for name in ("scale.cc", "scale.h", "scale_test.cc"))]
STRICT = ["-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
# Of a recipe nobody calls the functions here.
LANGUAGES = {"c": ["-x", "c", "-std=c99", "-pedantic", "-Wno-unused-function"],
             "c++": ["-x", "c++", "-std=c++17", "-Wno-unused-function"]}
WAYS = [["-DCUGUEST_NO_TOOLKIT"], ["-DCUGUEST_NO_CUDA"], []]
NOT_PROGRAMS = re.compile(r"examples/(support/.*|template/scale|guest/picture_score)\.h$")


def programs(name):
    """The texts of a file, by their paths: of a page those of its programs that begin with their names."""
    text = (root / name).read_text()
    if not name.endswith(".md"):
        return {name: text}
    found = re.findall(r"^```(?:c|cpp)\n((?:/\*|//) (\w+\.\w+)(?: \*/)?\n.*?)^```", text, re.M | re.S)
    return {f"{name.removesuffix('.md')}/{path}": body for body, path in found}


def language(path, text):
    return "c++" if path.endswith(".cc") or re.search(r"^#include <\w+>$", text, re.M) else "c"


def lacks(text):
    """The header of somebody else's that only some machines have, if it is not here."""
    for header in re.findall(r"^#include (<ffnvcodec/.*>)", text, re.M):
        tried = subprocess.run([compiler, "-fsyntax-only", "-x", "c", "-"], input=f"#include {header}\n", capture_output=True, text=True)
        if tried.returncode:
            return header
    return ""


def jobs(folder, paths):
    """What is compiled: a name, and the compiler's words."""
    for path in paths:
        text = (folder / path).read_text()
        if NOT_PROGRAMS.match(path):
            continue
        if header := lacks(text):
            skip(f"{path}: no {header}")
            continue
        for way in WAYS if '"cuguest_core.h"' in text else [[]]:
            yield " ".join([path, *way]), [*LANGUAGES[language(path, text)], *way, f"-I{folder}", str(folder / path)]


def complaint(words):
    done = subprocess.run([compiler, *STRICT, *words, f"-I{root / 'include'}", *system_includes(build)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout or (done.returncode and f"exit status {done.returncode}")


def compile_all(bundle, folder):
    subprocess.run([sys.executable, root / "packaging" / "two_files", folder], check=True)
    listed = list(jobs(folder, unpack(bundle, folder)))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (name, _), said in zip(listed, pool.map(complaint, (words for _, words in listed))):
            check(f"{bundle.parent.name}'s {name}", not said, said)


if FREEZES:
    for name, files in (("core_sources.txt", CORE), ("sources.txt", ABOVE)):
        write_bundle(name, {path: text for file in files for path, text in programs(file).items()})
else:
    for bundle in [*stored("core_sources.txt"), *stored("sources.txt")]:
        if bundle.name == "sources.txt" and bundle.parent != OWN:
            skip(f"what uses the objects of {bundle.parent.name}: they may have changed")
            continue
        with tempfile.TemporaryDirectory() as scratch:
            compile_all(bundle, pathlib.Path(scratch))
done()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""used_test.py quick|whole ROOT CORE_ARCHIVE [-L DIRECTORY]... [--library FILE] [FLAG...]

A library that uses each guard there is (used/guards.cc), in two files of which one is compiled with NDEBUG, by each
compiler on the PATH and at each level: without a warning; without anything that runs before main(); and it works, on
the driver that is found. With --library it uses what stands on Abseil and on the runtime, too, and the shared library.

And no header says something else with NDEBUG, with an optimiser, or where cuguest is an archive: what is in line would
be two things of one name. With --library the whole also: cuguest as one source, as -Dunity=on may make it, has no warning.

FLAG: where <cuda.h> and Abseil are. quick: some compilers and levels.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

COMPILERS = ["g++", "g++-12", "g++-13", "g++-14", "clang++", *(f"clang++-{number}" for number in range(14, 22))]
QUICK = {"g++": [["-O0"], ["-O2"]], "clang++": [["-O2"]]}
LEVELS = [["-O0"], ["-O1"], ["-O2"], ["-O3"], ["-Os"], ["-O2", "-flto"]]
EXPORTED = re.compile(r'\[\[gnu::visibility\("default"\)\]\]|__attribute__\(\(visibility\("default"\)\)\)')
STRICT = ["-std=c++17", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", "-fPIC"]

parser = argparse.ArgumentParser()
parser.add_argument("extent", choices=["quick", "whole"])
parser.add_argument("root", type=pathlib.Path)
parser.add_argument("archive", type=pathlib.Path)
parser.add_argument("-L", dest="directories", action="append", default=[], type=pathlib.Path)
parser.add_argument("--library", type=pathlib.Path)
options, flags = parser.parse_known_args()
root, library = options.root.resolve(), options.library
CACHE = ["ccache"] if shutil.which("ccache") else []  # by itself: it runs from a package, too (test/hardware/pack.py)
USED = pathlib.Path(__file__).resolve().parent / "used"
flags += [f"-I{root / 'include'}"]
directories = [path.resolve() for path in options.directories]
passed = failed = skipped = 0


def run(*command, **kwargs):
    return subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          **kwargs)


def compilers():
    """Those that are installed, each once."""
    found = {}
    for name in COMPILERS:
        if path := shutil.which(name):
            found.setdefault(os.path.realpath(path), name)
    return list(found.values())


def use(compiler, level, tmp):
    """What is wrong, or ""."""
    # <iostream>, which Abseil includes, makes an object in each source where libstdc++ is older than 13.
    defines = ["-DWITH_LIBRARY", "-D_GLIBCXX_IOSTREAM"] if library else ["-DCUGUEST_STATIC"]
    objects = []
    for name, words in (("guards", ["-DPART=First", "-DNDEBUG"]), ("guards", ["-DPART=Second", "-UNDEBUG"]), ("main", [])):
        objects.append(tmp / f"{len(objects)}.o")
        done = run(*CACHE, compiler, *STRICT, *level, *defines, *words, *flags, "-c", USED / f"{name}.cc", "-o", objects[-1])
        if done.returncode:
            return done.stdout
    # Nothing of the C library's start, so that what is there is of these; also of an optimiser that sees all of them.
    done = run(compiler, *level, "-shared", "-nostartfiles", *objects[:2], "-o", tmp / "parts.so")
    if done.returncode:
        return done.stdout
    if at_start := set(re.findall(r"\.(?:init_array|ctors)\S*", run("readelf", "-SW", tmp / "parts.so").stdout)):
        return f"has {at_start}"
    searched = [f"-L{path}" for path in directories]
    linked = [library, *searched, "-lcudart", *ABSEIL, f"-Wl,-rpath,{library.parent.resolve()}"] if library else [options.archive]
    done = run(compiler, *level, *objects, *linked, "-o", tmp / "program", "-ldl", "-pthread")
    if done.returncode:
        return done.stdout
    path = ":".join([*(str(path) for path in directories), os.environ.get("LD_LIBRARY_PATH", "")])
    done = run(tmp / "program", env={**os.environ, "LD_LIBRARY_PATH": path})
    return "" if (done.returncode, done.stdout) == (0, "used: 0 0\n") else f"exit status {done.returncode}: {done.stdout}"


def says(compiler, headers, *words):
    """What our headers are for the compiler behind the preprocessor."""
    done = run(compiler, "-std=c++17", "-E", "-x", "c++", *words, *flags, "-", input=headers)
    if done.returncode:
        return done.stdout
    ours, lines = False, []
    for line in done.stdout.splitlines():
        if marker := re.match(r'# \d+ "(.*)"', line):
            ours = str(root / "include") in marker[1]
        elif ours and line.strip():
            lines.append(" ".join(EXPORTED.sub("", line).split()))
    return "\n".join(line for line in lines if line)


def report(what, problem):
    global passed, failed
    print("not ok:" if problem else "ok:", what)
    if problem:
        print(problem[:3000])
    passed, failed = passed + (not problem), failed + bool(problem)


def difference(one, other):
    if one == other:
        return "" if "class" in one else "nothing of ours"
    return next((f"{a}\n{b}" for a, b in zip(one.splitlines(), other.splitlines()) if a != b), "one has more")


ABSEIL = run("pkg-config", "--libs", "absl_status", "absl_statusor", "absl_strings").stdout.split() if library else []
installed = compilers()
rows = [(compiler, level) for compiler in installed
        for level in (LEVELS if options.extent == "whole" else QUICK.get(compiler, []))]
for missing in (name for name in COMPILERS if options.extent == "whole" and not shutil.which(name)):
    print(f"skipped: {missing}: not installed")
    skipped += 1


def try_row(row):
    with tempfile.TemporaryDirectory(prefix="cuguest-used-") as tmp:
        return use(*row, pathlib.Path(tmp))


with concurrent.futures.ThreadPoolExecutor(min(4, os.cpu_count())) as pool:
    for (compiler, level), problem in zip(rows, pool.map(try_row, rows)):
        report(f"each guard, {compiler} {' '.join(level)}", problem)

# Not those of the toolkit's libraries, which may be missing.
names = sorted(str(path.relative_to(root / "include")) for folder in ("", "objects", "runtime", "libraries")
               for path in (root / "include" / "cuguest" / folder).glob("*.h")
               if not re.search(r"#include [<\"](cu(blas|fft|solver|sparse)|cuguest/libraries/cu)", path.read_text()))
if not library:
    names = re.findall(r'#include "(.*)"', (USED / "guards.cc").read_text().split("#ifdef")[0])
text = "".join(f'#include "{name}"\n' for name in names)
for compiler in installed if options.extent == "whole" else installed[:1]:
    plain = says(compiler, text, "-UNDEBUG", "-O0")
    for words in (["-DNDEBUG", "-O0"], ["-UNDEBUG", "-O2"], ["-UNDEBUG", "-O0", "-DCUGUEST_STATIC"]):
        report(f"{len(names)} headers say the same with {' '.join(words)}, {compiler}",
               difference(plain, says(compiler, text, *words)))

if library and options.extent == "whole":
    folders = {**{f"lib/{name}.list": "lib" for name in ("core", "heart", "objects", "libraries")},
               "subprojects/cudaimage/src/sources.list": "lib/image/src"}
    for order in (list(folders), list(reversed(folders))):
        sources = "".join(f'#include "{folders[name]}/{source}"\n' for name in order
                          for source in (root / name).read_text().split())
        for compiler in installed:
            done = run(compiler, *STRICT, "-fsyntax-only", "-x", "c++", "-DCUGUEST_STATIC", f"-I{root}",
                       f"-I{root / 'subprojects/cudaimage/include'}",
                       '-DCUDAIMAGE_NAMESPACE_HEADER="lib/core/image_namespace.h"', *flags, "-", input=sources)
            report(f"cuguest as one source, from {order[0]} on, {compiler}", done.stdout if done.returncode else "")

if not rows:
    print("skipped: each guard: no compiler")
print(f"cases: {passed} passed, {failed} failed, {skipped + (not rows)} skipped")
sys.exit(1 if failed else 0 if rows else 77)

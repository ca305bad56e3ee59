#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""matrix_test.py SOURCE_ROOT BUILD_ROOT TOOLKIT_INCLUDE [--strength 3] [--keep DIRECTORY]

Libraries that embed cuguest and are compiled in different ways, all in one process. The table has
a row for a library; each two settings of different columns are in a row together (with --strength
3: each three). For each library:

- no visible symbol of ours is in its dynamic table. Instances of other people's templates over our
  types are counted: none where it is compiled with hidden visibility.
- it works on the simulated driver between all others, with the ones that are linked and the ones that
  are loaded in one order, and in the other; finds its own values in its caches; and counts the
  incidents of its own callees.
- it is unloaded when it is closed, unless a unique symbol of somebody else's is in it.

The other releases of cuguest are this one under the names of another: their headers have another
version, their archives' symbols are renamed.
"""

import argparse
import concurrent.futures
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "headers"))
from common import ccache_before, toolkit_flags
from flags import system_includes

HERE = pathlib.Path(__file__).resolve().parent / "matrix"
COLUMNS = {
    "compiler": ["g++", "clang++"],
    "visibility": ["default", "hidden"],
    "level": ["-O0", "-Os", "-O2"],
    "exceptions": ["-fexceptions", "-fno-exceptions"],
    "rtti": ["-frtti", "-fno-rtti"],
    "standard": ["-std=c++17", "-std=c++20"],
    "load": ["needed", "local", "global"],
    "assert": ["-UNDEBUG", "-DNDEBUG"],
    "stream": ["legacy", "per-thread"],
    "release": ["this", "patch", "minor"],
}
OURS = re.compile(r"_Z(?:GV|GR|T[VITS]|Z)*N[KVrRO]*7cuguest")


def covering(columns, strength):
    """Rows in which each `strength` settings of different columns stand together. Greedy: a row begins
    with a combination that is missing, and takes in each other column what covers most."""
    names = list(columns)
    wanted = {frozenset(zip(chosen, values)) for chosen in itertools.combinations(names, strength)
              for values in itertools.product(*(columns[name] for name in chosen))}
    missing, rows = set(wanted), []
    while missing:
        row = dict(min(missing, key=sorted))
        for name in (name for name in names if name not in row):
            row[name] = max(columns[name], key=lambda value: sum(
                set(combination) <= {*row.items(), (name, value)} and (name, value) in combination
                for combination in missing))
        rows.append({name: row[name] for name in names})
        missing -= {combination for combination in missing if set(combination) <= set(row.items())}
    assert all(any(combination <= set(row.items()) for row in rows) for combination in wanted)
    return rows


def run(*command, **kwargs):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **kwargs)
    if done.returncode:
        sys.exit(f"{' '.join(done.args)}\n{done.stdout[-4000:]}")
    return done.stdout


def make_other_release(out, part):
    """An archive of which `part` of the version is another; in `out`, with the version.h for it."""
    header = (root / "include" / "cuguest" / "version.h").read_text()
    numbers = re.findall(r"define CUGUEST_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)
    minor, patch = "v" + "_".join(numbers[:2]), "v" + "_".join(numbers)  # the namespace, the tag
    this, other = {"minor": (minor, f"v{numbers[0]}_9"), "patch": (patch, f"{minor}_9")}[part]
    assert this != other and len(this) == len(other), "names of one length: they are renamed in mangled ones"
    (out / "include" / "cuguest").mkdir(parents=True)
    (out / "include" / "cuguest" / "version.h").write_text(
        re.sub(rf"(define CUGUEST_VERSION_{part.upper()}) \d+", r"\1 9", header))
    names = {line.split()[-1] for line in run("nm", archives["this"]).splitlines() if this in line}
    (out / "names").write_text("".join(f"{name} {name.replace(this, other)}\n" for name in names))
    for number, member in enumerate(run("ar", "t", archives["this"]).split()):  # paths: it is a thin archive
        run("objcopy", f"--redefine-syms={out / 'names'}", member, out / f"{number}.o")
    run("ar", "rcs", out / f"libcuguest_{part}.a", *out.glob("*.o"))
    assert other in run("nm", out / f"libcuguest_{part}.a") and names
    return out / f"libcuguest_{part}.a"


def build(number, row):
    file = out / f"libembedder{number}.so"
    flags = [row[name] for name in ("level", "exceptions", "rtti", "standard", "assert")]
    flags += ["-fvisibility=hidden"] if row["visibility"] == "hidden" else []
    flags += ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"] if row["stream"] == "per-thread" else []
    flags += [f"-I{pathlib.Path(row['release'], 'include')}"] if row["release"] != "this" else []
    flags += [f"-DIS_LOCAL={int(row['load'] == 'local')}"]
    archive = archives[row["release"]]
    # A class of the embedder's has ours as members, without a warning.
    run(*ccache_before(row["compiler"], precompiled=False), row["compiler"], "-fPIC", "-Wall", "-Wextra", "-Werror",
        f"-DROW={number}", "-DCUGUEST_STATIC", *flags, f"-I{root / 'include'}", *includes, "-c",
        HERE / "embedder.cc", "-o", file.with_suffix(".o"), cwd=out)
    run(row["compiler"], "-shared", file.with_suffix(".o"), "-o", file, f"-Wl,-soname,{file.name}", "-Wl,-z,defs",
        f"-Wl,--exclude-libs,{archive.name}", archive, *abseil, "-ldl", "-pthread")
    return file


def table_of(file):
    """[(name, binding, demangled)] of what is visible in a library's dynamic table and is defined there."""
    rows = (line.split() for line in run("readelf", "--dyn-syms", "-W", file).splitlines())
    rows = [(r[7].split("@")[0], r[4]) for r in rows if len(r) > 7 and r[4] in ("GLOBAL", "WEAK", "UNIQUE")
            and r[5] == "DEFAULT" and r[6] != "UND"]
    names = run("c++filt", input="\n".join(name for name, _ in rows)).splitlines()
    return [(name, binding, text) for (name, binding), text in zip(rows, names)]


parser = argparse.ArgumentParser()
parser.add_argument("root", type=pathlib.Path)
parser.add_argument("build", type=pathlib.Path)
parser.add_argument("toolkit")
parser.add_argument("--strength", type=int, default=2)
parser.add_argument("--keep", type=pathlib.Path)
options = parser.parse_args()
root, build_root = options.root.resolve(), options.build.resolve()
archives = {"this": build_root / "lib" / "libcuguest_embedded.a"}
includes = [*toolkit_flags(options.toolkit), *system_includes(build_root)]
abseil = run("pkg-config", "--libs", "absl_status", "absl_statusor", "absl_cord", "absl_strings").split()
for compiler in list(COLUMNS["compiler"]):
    if not shutil.which(compiler):
        print(f"skipped: {compiler}: not installed")
        COLUMNS["compiler"].remove(compiler)
rows = covering(COLUMNS, options.strength)
failed = 0

with tempfile.TemporaryDirectory(prefix="cuguest-matrix-") as scratch:
    out = (options.keep or pathlib.Path(scratch)).resolve()
    for part in ("patch", "minor"):
        archives[part] = make_other_release(out / part, part)
    with concurrent.futures.ThreadPoolExecutor(1 if os.cpu_count() < 4 else 4) as pool:
        files = list(pool.map(build, range(1, len(rows) + 1), rows))

    unique = {}
    for number, (row, file) in enumerate(zip(rows, files), 1):
        table = table_of(file)
        bad = [text for name, _, text in table if OURS.match(name)]
        others = [text for name, _, text in table if not OURS.match(name) and "7cuguest" in name]
        if row["visibility"] == "hidden":
            bad += others
        unique[number] = [text for _, binding, text in table if binding == "UNIQUE"]
        print(f"{number:3} " + " ".join(f"{row[name]:15}" if name in ("exceptions",) else f"{row[name]:10}" for name in COLUMNS)
              + f" visible: ours {len(bad)}, instances {len(others)}, unique {len(unique[number])}")
        for text in sorted(set(bad))[:20]:
            print(f"not ok: row {number}: visible: {text[:200]}")
        failed += bool(bad)

    for turn, order in (("as listed", list(zip(range(1, len(rows) + 1), rows, files))),
                        ("the other way round", list(reversed(list(zip(range(1, len(rows) + 1), rows, files)))))):
        host = out / f"host_{turn.split()[0]}"
        linked = [file for _, row, file in order if row["load"] == "needed"]
        run("g++", "-std=c++17", "-O1", *includes, HERE / "host.cc", "-o", host, "-Wl,--no-as-needed",
            f"-Wl,-rpath,{out}", *linked, "-ldl")
        process = subprocess.run(
            [host, *(f"{file.name}:{number}:{row['load']}" for number, row, file in order)], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "LD_LIBRARY_PATH": f"{build_root / 'subprojects' / 'cudasim' / 'sim'}:{out}"})
        stays = [int(number) for number in re.findall(r"^stays: (\d+)", process.stdout, re.M)]
        wrong = [number for number in stays if not unique[number]]
        print(process.stdout + f"all in one process, {turn}: exit status {process.returncode}; closed and still loaded: "
              f"{len(stays)}" + "".join(f", {number} for {unique[number][0]}" for number in stays if unique[number])[:300])
        for number in wrong:
            print(f"not ok: row {number} stays loaded, and has no unique symbol")
        failed += process.returncode != 0 or bool(wrong)

total = len(rows) + 2
print(f"cases: {total - failed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed else 0)

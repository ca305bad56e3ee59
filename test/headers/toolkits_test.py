#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""toolkits_test.py SOURCE_ROOT BUILD_ROOT [--libraries] [--fix] [RELEASE...]

Compiles cuguest with the headers of other CUDA Toolkits, with g++ and clang++, warnings as errors:
every public header as C++17 and C++20, the versions and signatures of the driver table against the
toolkit's own <cudaTypedefs.h>, the core's two files (packaging/two_files), and every source of the library with the oldest and
the newest toolkit. With the newest toolkit's own nvcc, every public header, too. Of all releases together, the table in
docs/install.md must say what was compiled; --fix writes it.

The headers come from NVIDIA's Python packages, by pip, into BUILD_ROOT/toolkits, where they stay. A
toolkit whose packages cannot be had is skipped. The headers for cuBLAS, cuFFT, cuSOLVER and cuSPARSE
are in large packages: with --libraries, they are compiled with the oldest and the newest toolkit.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

from flags import IMAGE_ARGS, absl_includes, compile_by_nvcc

NEWEST = "newest"
SUFFIX = {release: "-cu12" for release in ("12.0", "12.2", "12.4", "12.6", "12.8", "12.9")}
RELEASES = [*SUFFIX, "13.0", "13.1", "13.3", NEWEST]
# Of CUDA 12.0; they have versions of their own.
OLDEST_LIBRARIES = {"cublas": "12.0.*", "cufft": "11.0.*", "cusolver": "11.4.2.*", "cusparse": "12.0.*"}
STRICT = ["-fsyntax-only", "-fno-exceptions", "-fno-rtti", "-Wall", "-Wextra", "-Wpedantic",
          "-Wconversion", "-Wshadow", "-Werror"]
LIBRARY_HEADER = re.compile(r"^#include <((?:cu(?:blas|fft|solver|sparse)\w*|nccl)\.h)>$", re.M)

options = [word for word in sys.argv[1:] if not word.startswith("--")]
root, build = (pathlib.Path(word).resolve() for word in options[:2])
wanted = options[2:] or RELEASES
with_libraries = "--libraries" in sys.argv
fix = "--fix" in sys.argv
cache = build / "toolkits"
counts = {"passed": 0, "failed": 0, "skipped": 0}
compiled = {}  # of each release its version, and what was compiled with which compilers


def fetch(package, version, folder):
    """Unpacks the wheel into `folder` once; the reason if it cannot be had, else None."""
    done = folder / f".{package}"
    if done.exists():
        return None
    with tempfile.TemporaryDirectory() as download:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
                   "--retries", "1", "--dest", download, package + (f"=={version}" if version else "")]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            return (run.stderr.strip().splitlines() or ["pip failed"])[-1]
        folder.mkdir(parents=True, exist_ok=True)
        for wheel in pathlib.Path(download).glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                keep = [name for name in archive.namelist() if not re.search(r"\.(so[.\d]*|a)$", name)]
                archive.extractall(folder, keep)
    done.touch()
    return None


def prepare(release):
    """The toolkit's directories of headers, those of its libraries, and why not."""
    folder, suffix = cache / release, SUFFIX.get(release, "")
    version = {NEWEST: ""}.get(release, f"{release}.*")
    why = fetch("nvidia-cuda-runtime" + suffix, version, folder)
    if why is None and not suffix:  # <crt/host_defines.h>
        why = fetch("nvidia-cuda-crt", version, folder)
    if why is None and with_libraries and release in (RELEASES[0], NEWEST):
        for name in OLDEST_LIBRARIES:
            of_release = OLDEST_LIBRARIES[name] if release == RELEASES[0] else ""
            if without := fetch(f"nvidia-{name}{suffix}", of_release, folder):
                counts["skipped"] += 1
                print(f"skipped: headers of {name} for CUDA {release}: {without}")
    return sorted({path.parent for path in folder.glob("nvidia/*/include/cu*.h")}), why


def includes(folders):
    return [f"-I{root / 'include'}", f"-I{root}", *(f"-isystem{folder}" for folder in folders), *absl_includes(build)]


def headers(folders):
    """As #include lines; without those for libraries that the toolkit was not given."""
    names = sorted((root / "include").rglob("*.h"))
    texts = {name: name.read_text() for name in names}
    needs = {name for name in names for library in LIBRARY_HEADER.findall(texts[name])
             if not any((folder / library).exists() for folder in folders)}
    while True:  # who includes one of them needs them, too
        more = {name for name in names if name not in needs and any(
            f'#include "{other.relative_to(root / "include")}"' in texts[name] for other in needs)}
        if not more:
            break
        needs |= more
    return "".join(f'#include "{name.relative_to(root / "include")}"\n'
                   for name in names if name not in needs)


VERSIONS = """
#include <cudaTypedefs.h>
#include <type_traits>
#include "cuguest/driver_table.h"
namespace cuguest {
%s
}
"""


def versions(folders):
    """Each row of the driver table is the toolkit's own typedef for its name and version, unless the
    toolkit is older than the version."""
    typedefs = next(folder / "cudaTypedefs.h" for folder in folders if (folder / "cudaTypedefs.h").exists())
    cuda = re.search(r"#define CUDA_VERSION (\d+)", (typedefs.parent / "cuda.h").read_text())
    rows = re.findall(r"^  X\((\w+), (\d+),", (root / "include" / "cuguest" / "driver_table.h").read_text(), re.M)
    held = [(name, version) for name, version in rows if int(version) <= int(cuda[1])]
    asserts = "".join(f'static_assert(std::is_same_v<decltype(DriverTable::{name}), PFN_cu{name}_v{version}>);\n'
                      for name, version in held)
    return VERSIONS % asserts, len(held)


def library_sources():
    lists = [*(root / "lib" / f"{name}.list" for name in ("core", "heart", "objects", "libraries")),
             root / "subprojects" / "cudaimage" / "src" / "sources.list"]
    return [each.parent / name for each in lists for name in each.read_text().split()]


def compile_text(job):
    command, text = job
    run = subprocess.run(command, input=text, capture_output=True, text=True, cwd=build)
    return "" if run.returncode == 0 else run.stderr or f"exit status {run.returncode}"


def report(release, compiler, what, errors):
    wrong = [error for error in errors if error]
    counts["failed" if wrong else "passed"] += 1
    print(f"{'NOT OK' if wrong else 'ok':7} {release:7} {compiler:8} {what}", flush=True)
    for error in wrong[:3]:
        print(error[:4000])


def version_of(folders):
    """That of the headers."""
    cuda = next(folder / "cuda.h" for folder in folders if (folder / "cuda.h").exists())
    number = int(re.search(r"#define CUDA_VERSION (\d+)", cuda.read_text())[1])
    return f"{number // 1000}.{number % 1000 // 10}"


def table():
    lines = ["| headers of CUDA | public headers | sources | compilers |", "|---|---|---|---|"]
    for version, how in compiled.values():
        with_sources = [name for name, has_sources in how.items() if has_sources]
        lines.append(f"| {version} | C++17 and C++20 | {'C++17' if with_sources else ''} | {', '.join(how)} |")
    return "\n".join(lines)


def check_table():
    """Where all releases could be had and were compiled without an error."""
    page = root / "docs" / "install.md"
    text = page.read_text()
    begin, end = "<!-- by test/headers/toolkits_test.py -->\n", "\n<!-- until here -->"
    before, rest = text.split(begin)
    old, after = rest.split(end)
    if fix:
        page.write_text(before + begin + table() + end + after)
    report("all", "-", "the table in docs/install.md", [] if fix or old == table() else [f"it is now:\n{table()}"])


def check(release, folders, compiler, pool):
    how = compiled.setdefault(release, (version_of(folders), {}))[1]
    how[pathlib.Path(compiler).name] = release in (RELEASES[0], RELEASES[-1])
    flags = ["-DCUGUEST_STATIC", *STRICT, *includes(folders)]
    base = [compiler, "-x", "c++"]
    name = pathlib.Path(compiler).name
    text = headers(folders)
    report(release, name, f"{text.count('#include')} headers, C++17 and C++20",
           pool.map(compile_text, [([*base, f"-std={s}", *flags, "-"], text) for s in ("c++17", "c++20")]))
    text, count = versions(folders)
    report(release, name, f"{count} versions of the driver table",
           [compile_text(([*base, "-std=c++17", *flags, "-"], text))])
    report(release, name, "two files", [compile_text(([*base, "-std=c++17", *STRICT, *(f"-isystem{folder}" for folder in folders),
                                                       str(two_files / "cuguest_core.cc")], None))])
    if release in (RELEASES[0], RELEASES[-1]):
        sources = library_sources()
        report(release, name, f"{len(sources)} sources",
               pool.map(compile_text, [([*base, "-std=c++17", *flags, *IMAGE_ARGS, str(source)], None)
                                       for source in sources]))


def check_nvcc(folders):
    """By the newest nvcc, with its own headers."""
    folder = cache / NEWEST
    for package in ("nvidia-cuda-nvcc", "nvidia-nvvm"):
        why = fetch(package, "", folder)
        if why is not None:
            counts["skipped"] += 1
            print(f"skipped: nvcc of the newest toolkit: {why}")
            return
    nvcc = next(folder.glob("nvidia/*/bin/nvcc"))
    for program in [*nvcc.parent.iterdir(), *folder.glob("nvidia/*/nvvm/bin/*")]:
        if program.is_file():
            program.chmod(0o755)
    report(NEWEST, "nvcc", "headers, C++17 and C++20",
           [compile_by_nvcc(str(nvcc), standard, includes(folders), headers(folders))
            for standard in ("c++17", "c++20")])


def check_configure(release, folder, expected):
    """What Meson says of headers as in `folder`, which may be in the source tree: Meson takes none there."""
    with tempfile.TemporaryDirectory() as scratch:
        include = shutil.copytree(folder, pathlib.Path(scratch) / "include")
        run = subprocess.run(["meson", "setup", f"{scratch}/build", str(root), f"-Dtoolkit_include={include}"],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = re.sub(r"\s+", " ", run.stdout)
    report(release, "meson", "configure", [f"it does not say: {words}\n{run.stdout[-2000:]}"
                                           for words in expected if words not in said])


def check_too_old():
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "cuda.h").write_text("#define CUDA_VERSION 11080\n")
        check_configure("11.8", folder, ["the headers are of CUDA 11.8; 12.0 or newer is needed"])
        include = f'#include "{root / "include" / "cuguest" / "driver_table.h"}"\n'
        said = compile_text((["g++", "-x", "c++", "-fsyntax-only", "-isystem", folder, *includes([]), "-"], include))
        report("11.8", "g++", "is refused", [] if "cuguest needs the headers of CUDA 12.0" in said else [said or "accepted"])


two_files = cache / "two_files"
subprocess.run([sys.executable, root / "packaging" / "two_files", two_files], check=True)
compilers = [found for found in map(shutil.which, ("g++", "clang++")) if found]
if shutil.which("meson"):
    check_too_old()
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for release in wanted:
        folders, why = prepare(release)
        if why is not None:
            counts["skipped"] += 1
            print(f"skipped: headers of CUDA {release}: {why}")
            continue
        for compiler in compilers:
            check(release, folders, compiler, pool)
        if release == RELEASES[0] and shutil.which("meson"):
            cuda = next(folder for folder in folders if (folder / "cuda.h").exists())
            check_configure(release, cuda, [
                "CUDA 12.0 has no cudaKernel_t: runtime/function.h leaves out KernelOf",
                "Without tests and examples: the simulated driver and the tests need"])
        if release == NEWEST:
            check_nvcc(folders)
if set(compiled) == set(RELEASES) and len(compilers) == 2 and not counts["failed"]:
    check_table()
print("cases: " + ", ".join(f"{count} {word}" for word, count in counts.items()))
sys.exit(1 if counts["failed"] else 0 if counts["passed"] else 77)

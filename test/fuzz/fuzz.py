#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fuzz.py BUILD TARGET [--seconds N | --runs N] [--keep]
fuzz.py BUILD TARGET --add FILE...

Compiles a fuzz target with clang++, libFuzzer and the sanitizers of addresses and of undefined behaviour,
and runs it on its kept corpus, then on N new inputs (--runs, 20,000 if nothing is said) or for N seconds.
What it finds stays in BUILD/fuzz/TARGET: new inputs in corpus/, which --keep adds to the kept corpus, as
far as they cover more, and inputs that fail, which are printed. BUILD has the simulated driver.

The kept corpus is the archive corpus/TARGET.tar.xz beside the target, which is unpacked into
BUILD/fuzz/TARGET/kept. --keep packs it again; --add packs it with FILE... in it, and runs nothing. The
same inputs give the same archive.

Targets: image and ptx, of subprojects/cudaimage/fuzz; log and channel, of subprojects/cuguest-audit/fuzz; params,
notes and guard, of test/fuzz.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "headers"))
from flags import cached, system_includes  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGE = ROOT / "subprojects" / "cudaimage"
AUDIT = ROOT / "subprojects" / "cuguest-audit"
TARGETS = {
    # name: its folder, and what is compiled with it
    "image": (IMAGE / "fuzz", "image"),
    "ptx": (IMAGE / "fuzz", "image"),
    "params": (ROOT / "test" / "fuzz", "params"),
    "notes": (ROOT / "test" / "fuzz", "notes"),
    "guard": (ROOT / "test" / "fuzz", "core"),
    "log": (AUDIT / "fuzz", "audit"),
    "channel": (AUDIT / "fuzz", "audit"),
}
# Of the largest input, in bytes: what a real image of the kept corpus has.
MAX_LENGTH = {"image": 65536, "ptx": 16384, "params": 1024, "notes": 4096, "guard": 96,
              "log": 16384, "channel": 4096}


def listed(path):
    return [path.parent / line for line in path.read_text().split()]


def sources(what):
    if what == "image":
        return [path for path in listed(IMAGE / "src" / "sources.list")]
    if what == "params":
        return [ROOT / "lib" / "objects" / "launch" / "param_buffer.cc"]
    if what == "audit":
        names = ["advice", "function_name", "json", "printable", "report_builder", "report_html", "report_json", "report_sarif",
                 "report_text", "result_name", "session", "stack_changes", "suppressions", "symbols_elf", "text_file", "timeline",
                 "trace", "output_file"]
        return [*(AUDIT / "audit").glob("*.cc"), *(AUDIT / "audit" / "command" / f"{name}.cc" for name in names)]
    core = listed(ROOT / "lib" / "core.list")
    return [path for path in core if what == "core" or path.name != "registry_home_posix.cc"]


def compile_target(build, name, out):
    folder, what = TARGETS[name]
    program = out / f"{name}_fuzz"
    sanitized = ["-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all", "-fno-sanitize=enum"]
    flags = ["-std=c++17", "-g1", "-O1", *sanitized, "-DCUGUEST_STATIC", f"-I{ROOT}", f"-I{ROOT / 'include'}",
             f"-I{IMAGE / 'include'}", f"-I{AUDIT}", *system_includes(build)]
    libraries = ["-ldl", "-pthread"]
    if what == "params":
        packages = ["absl_status", "absl_strings"]
        flags += subprocess.check_output(["pkg-config", "--cflags", *packages], text=True).split()
        libraries += subprocess.check_output(["pkg-config", "--libs", *packages], text=True).split()
    objects = []
    for source in (folder / f"{name}_fuzz.cc", *sources(what)):
        objects.append(out / f"{len(objects)}.o")
        subprocess.check_call([*cached("clang++"), *flags, "-c", source, "-o", objects[-1]])
    subprocess.check_call(["clang++", *sanitized, *objects, *libraries, "-o", program])
    return program


def unpack(archive, folder):
    """The inputs of `archive`, and nothing else, are in `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tarfile.open(archive) as packed:
        for member in packed:
            (folder / pathlib.Path(member.name).name).write_bytes(packed.extractfile(member).read())


def pack(folder, archive):
    """Sorted, and of nobody and no time: the same bytes for the same inputs."""
    with tarfile.open(archive, "w:xz", format=tarfile.USTAR_FORMAT, preset=9) as packed:
        for path in sorted(folder.iterdir(), key=lambda path: path.name):
            member = tarfile.TarInfo(path.name)
            member.size = path.stat().st_size
            with path.open("rb") as file:
                packed.addfile(member, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("target", choices=sorted(TARGETS))
    bound = parser.add_mutually_exclusive_group()
    bound.add_argument("--seconds", type=int)
    bound.add_argument("--runs", type=int, default=20000)
    bound.add_argument("--add", type=pathlib.Path, nargs="+", metavar="FILE")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()

    build = options.build.resolve()
    out = build / "fuzz" / options.target
    found = out / "corpus"
    found.mkdir(parents=True, exist_ok=True)
    archive = TARGETS[options.target][0] / "corpus" / f"{options.target}.tar.xz"
    kept = out / "kept"
    unpack(archive, kept)
    if options.add:
        for file in options.add:
            shutil.copy(file, kept)
        pack(kept, archive)
        return 0
    program = compile_target(build, options.target, out)
    simulation = build / "subprojects" / "cudasim" / "sim"
    environment = dict(os.environ, LD_LIBRARY_PATH=f"{simulation}:{os.environ.get('LD_LIBRARY_PATH', '')}")
    # What the driver keeps to the end of the process is no leak.
    environment.setdefault("ASAN_OPTIONS", "detect_leaks=0")
    common = [program, f"-max_len={MAX_LENGTH[options.target]}", f"-artifact_prefix={out}/", "-print_final_stats=1",
              "-timeout=20"]
    limit = f"-max_total_time={options.seconds}" if options.seconds else f"-runs={options.runs}"
    words = TARGETS[options.target][0] / f"{options.target}.dict"
    if words.exists():
        common.append(f"-dict={words}")
    code = subprocess.call([*common, limit, found, kept], env=environment)
    if code != 0:
        print(f"FAILED: the input is the last file that is named above, in {out}")
        return 1
    if options.keep:
        subprocess.check_call([*common, "-set_cover_merge=1", kept, found], env=environment)
        pack(kept, archive)
    return 0


if __name__ == "__main__":
    sys.exit(main())

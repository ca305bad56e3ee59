#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cross_test.py libc++|aarch64 SOURCE_ROOT BUILD_ROOT TOOLKIT_INCLUDE [--all]

cuguest with another standard library, or for another processor: all public headers compile, and a
library that uses guards compiles and links with the sources that these need, every symbol defined. No
Abseil is linked (the system's is made for its own standard library and processor): what a guard needs
has none of it. With --all every source of the library is compiled, too.

For aarch64 with branch protection: every object says that indirect branches land on `bti` in it, so that the library
is mapped as guarded, and a guard runs so in QEMU.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "headers"))
from common import toolkit_flags
from flags import IMAGE_ARGS, headers_that_can_be_included, system_includes

part, root, build = sys.argv[1], *(pathlib.Path(word).resolve() for word in sys.argv[2:4])
toolkit = toolkit_flags(sys.argv[4])
COMMAND = {"libc++": ["clang++", "-stdlib=libc++"],
           "aarch64": ["aarch64-linux-gnu-g++", "-mbranch-protection=standard"]}[part]
# Without the distribution's start files, of which one name is needed, and libgcc's choice of atomics: they are not
# marked, and called by address.
LINK = {"libc++": [],
        "aarch64": ["-nostartfiles", "-Wl,--defsym=__dso_handle=0", "-mno-outline-atomics", "-Wl,-z,force-bti"]}[part]
EMULATOR = ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"]
GUARDS = """
#include "cuguest/context_guard.h"
#include "cuguest/no_context_guard.h"
extern "C" [[gnu::visibility("default")]] int Run(CUcontext context) {
  const cuguest::ContextGuard guard(context);
  const cuguest::NoContextGuard none;
  return guard.result() + none.result();
}
"""
PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>
int main(int, char** argv) {
  void* const library = dlopen(argv[1], RTLD_NOW);
  if (library == nullptr) return puts(dlerror()), 1;
  void* const run = dlsym(library, "Run");
  if (run == nullptr) return puts(dlerror()), 1;
  return reinterpret_cast<int (*)(void*)>(run)(nullptr) != 0 ? 0 : 1;  // there is no driver
}
"""


def skip(why):
    print(f"skipped: {part}: {why}\ncases: 0 passed, 0 failed, 1 skipped")
    sys.exit(77)


def run(*command, text=None):
    return subprocess.run([str(word) for word in command], input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, cwd=build)


def directory_of(header):
    """Where the build's compiler finds it."""
    found = run("g++", *toolkit, *system_includes(build), "-x", "c++", "-M", "-", text=f"#include <{header}>\n").stdout
    return pathlib.Path(re.search(rf"(\S+)/{re.escape(header)}", found)[1]).resolve()


if not shutil.which(COMMAND[0]):
    skip(f"no {COMMAND[0]}")
if run(*COMMAND, "-x", "c++", "-fsyntax-only", "-", text="#include <vector>\n").returncode:
    skip("no such standard library")

with tempfile.TemporaryDirectory() as name:
    tmp = pathlib.Path(name)
    # Only Abseil's, of the system's directory: the rest there is another library's or processor's.
    (tmp / "system").mkdir()
    (tmp / "system" / "absl").symlink_to(directory_of("absl/base/config.h") / "absl")
    flags = ["-std=c++17", "-O1", "-fPIC", "-Wall", "-Wextra", "-Werror", "-DCUGUEST_STATIC", "-fvisibility=hidden",
             "-ffunction-sections", "-fdata-sections", f"-I{root / 'include'}", f"-I{root}",
             "-isystem", root / "subprojects" / "cudasim" / "include", "-isystem", tmp / "system",
             "-isystem", directory_of("cuda.h")]
    failed, passed = 0, 0

    def check(what, done):
        global failed, passed
        print("ok:" if done.returncode == 0 else "NOT OK:", what)
        if done.returncode:
            print(done.stdout[:3000])
        failed, passed = failed + (done.returncode != 0), passed + (done.returncode == 0)

    headers = headers_that_can_be_included(sorted((root / "include").rglob("*.h")), build, "g++", toolkit)
    lines = "".join(f'#include "{header.relative_to(root / "include")}"\n' for header in headers)
    check(f"{len(headers)} headers", run(*COMMAND, *flags, "-x", "c++", "-fsyntax-only", "-", text=lines))

    commands = json.loads((build / "compile_commands.json").read_text())
    sources = sorted({(build / c["directory"] / c["file"]).resolve() for c in commands
                      if c["output"].startswith(("lib/libcuguest-core.a.p/", "lib/libcuguest_embedded.a.p/"))})
    (tmp / "guards.cc").write_text(GUARDS)

    def compiled(source):
        done = run(*COMMAND, *flags, *IMAGE_ARGS, "-c", source, "-o", tmp / f"{source.parent.name}_{source.stem}.o")
        return source, done

    if "--all" in sys.argv:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for source, done in pool.map(compiled, sources):
                check(source.relative_to(root), done)
    link = [*COMMAND, "-shared", *LINK, "-Wl,-z,defs", "-Wl,--gc-sections", "-o", tmp / "libguards.so", *flags,
            tmp / "guards.cc"]
    # What a guard needs.
    wanted = [root / "lib" / path for path in (
        "core/concurrency_posix.cc", "core/driver_access.cc", "core/library_posix.cc", "guard/nesting.cc", "guard/records.cc",
        "guard/scope.cc", "guard/scope_exact.cc", "stack/incident.cc", "stack/stack_repair.cc", "stack/thread_stack.cc")]
    linked = run(*link, *wanted, "-ldl", "-pthread")
    check("guards compile and link without Abseil", linked)
    unmarked = [line for line in linked.stdout.splitlines()
                if "BTI" in line and not re.search(r"/lib(gcc|c_nonshared)\.a", line)]
    check("every object of ours is marked", run("true" if not unmarked else "false"))
    machine = run("readelf", "-h", tmp / "libguards.so").stdout
    check(f"for the right machine: {re.search(r'Machine: *(.*)', machine)[1]}",
          run("true" if ("AArch64" in machine) == (part == "aarch64") else "false"))
    skipped = 0
    if part == "aarch64" and shutil.which(EMULATOR[0]):
        (tmp / "program.cc").write_text(PROGRAM)
        run(*COMMAND, tmp / "program.cc", "-o", tmp / "program")
        check("a guard runs in pages that are guarded", run(*EMULATOR, tmp / "program", tmp / "libguards.so"))
    elif part == "aarch64":
        print(f"skipped: without {EMULATOR[0]} (qemu-user-static) no guard runs")
        skipped = 1
    print(f"cases: {passed} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed else 0)

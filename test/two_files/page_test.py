#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""page_test.py [TOOLKIT_INCLUDE [SIMDIR]]

Runs the commands of docs/two_files.md, in their order, in an empty directory that has the page's sources, and this
repository as `cuguest`; and compares what each prints with what the page says. The program runs on the driver of the
directory SIMDIR, or on the machine's own where none is given, or CUDASIM_TEST_DRIVER is "real". The command with a
toolkit is skipped where TOOLKIT_INCLUDE has none.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parents[2]
toolkit = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 and (pathlib.Path(sys.argv[1]) / "cuda.h").exists() else None
on_simulation = len(sys.argv) > 2 and os.environ.get("CUDASIM_TEST_DRIVER") != "real"
driver = {"LD_LIBRARY_PATH": str(pathlib.Path(sys.argv[2]).resolve())} if on_simulation else {}
page = (root / "docs" / "two_files.md").read_text()
passed = failed = skipped = 0


def check(what, holds, details=""):
    global passed, failed
    print("ok:" if holds else "not ok:", what)
    if not holds:
        print(details)
    passed, failed = passed + bool(holds), failed + (not holds)


def sources(text):
    """The page's programs, by the names that they begin with."""
    found = re.findall(r"^```(?:c|cpp)\n((?:/\*|//) (\w+\.\w+)(?: \*/)?\n.*?)^```", text, re.M | re.S)
    return {name: body for body, name in found}


def commands(text):
    """What the page types, each with the lines that it says are printed."""
    for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
        for one in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, prints = one.partition("\n")
            yield command, prints.splitlines()


def run(command, folder, **more):
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    return subprocess.run(["bash", "-c", command], cwd=folder, env={**environment, **more}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


programs = sources(page)
check("the page has two libraries and a program", sorted(programs) == ["acme.c", "acme.cc", "try.c"], sorted(programs))
for name in ("acme.c", "acme.cc"):
    lines = programs[name].count("\n")
    check(f"{name} has {lines} lines", lines <= 16, "more than fifteen, and its name")

with tempfile.TemporaryDirectory(prefix="cuguest two files ") as name:
    folder = pathlib.Path(name)
    (folder / "cuguest").symlink_to(root)
    for file, text in programs.items():
        (folder / file).write_text(text)
    tried = dict(commands(page))["./try"]
    for command, prints in commands(page):
        if "/usr/local/cuda/include" in command:
            if not toolkit:
                print(f"skipped: no toolkit: {command}")
                skipped += 1
                continue
            command = command.replace("/usr/local/cuda/include", str(toolkit))
        result = run(command, folder, **driver)
        if prints and not driver and result.stdout.startswith("CUDA_ERROR_SHARED_OBJECT_INIT_FAILED: "):
            print(f"skipped: no driver: {command}")
            skipped += 1
            continue
        check(command, result.returncode == 0 and (not prints or result.stdout.splitlines() == prints), result.stdout)
    check("no header or source but the two was used",
          sorted(path.name for path in folder.glob("*.[hc]*")) == ["acme.c", "acme.cc", "cuguest_core.cc", "cuguest_core.h", "try.c"])
    shown = run("./try", folder).stdout
    check("without a driver the program says so", shown == "\n".join([*tried, ""]) or shown.startswith(
        "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED: a shared object could not be loaded"), shown)
    shown = run("head -n 4 cuguest_core.h", folder).stdout
    check("the head of the page's header names the version", re.search(r"cuguest \d+\.\d+\.\d+", shown), shown)

print(f"cases: {passed} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed or not passed else 0)

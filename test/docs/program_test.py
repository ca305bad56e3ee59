#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""program_test.py SOURCE_ROOT BUILD_ROOT COMPILER TOOLKIT_INCLUDE MESON...

Pastes the program and the meson.build of README.md into a directory, builds and runs them there
against this build of cuguest (by its pkg-config files for use without installation, which say nothing of the toolkit), and
compares what the program prints with what the README says that it prints. docs/quick_start.md has the same program and meson.build.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "embed"))
from common import toolkit_flags

root, build, compiler, toolkit, *meson = sys.argv[1:]
root, build = pathlib.Path(root), pathlib.Path(build)
readme = (root / "README.md").read_text()


def block(language, first_line):
    found = re.search(rf"^```{language}\n({re.escape(first_line)}\n.*?)^```", readme, re.M | re.S)
    if not found:
        sys.exit(f"not ok: README.md has no {language} block that begins with {first_line}")
    return found[1]


FILES = (("hello.cc", "cpp", "//"), ("meson.build", "meson", "#"))
blocks = {file: block(language, f"{comment} {file}") for file, language, comment in FILES}
page = (root / "docs/quick_start.md").read_text()
differ = [file for file, language, _ in FILES if f"```{language}\n{blocks[file]}```" not in page]
for file in differ:
    print(f"not ok: docs/quick_start.md has another {file} than README.md")
if differ:
    sys.exit(1)

packages = build / "meson-uninstalled"
if not (packages / "cuguest-testing-uninstalled.pc").exists():
    print("skipped: this build has no pkg-config files")
    sys.exit(77)
promised = re.search(r"meson test -C build -v\n(.*?)^```", readme, re.M | re.S)[1].splitlines()

with tempfile.TemporaryDirectory(prefix="cuguest-readme-") as name:
    directory = pathlib.Path(name)
    for file, text in blocks.items():
        (directory / file).write_text(text)
    env = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    env.update(CXX=compiler, CXXFLAGS=" ".join(toolkit_flags(toolkit)), PKG_CONFIG_PATH=str(packages))

    def run(*command):
        result = subprocess.run([*meson, *command], cwd=directory, env=env, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)
        if result.returncode:
            sys.exit(f"{result.stdout}\nnot ok: meson {command[0]} failed")
        return result.stdout.splitlines()

    run("setup", "build")
    printed = run("test", "-C", "build", "-v")

missing = [line for line in promised if line not in printed]
print(*printed, sep="\n")
for line in missing:
    print(f"not ok: the program did not print: {line}")
lines = readme.count("\n")
if lines > 100:
    print(f"not ok: README.md has {lines} lines, more than 100")
failed = bool(missing) + (lines > 100)
print(f"cases: {3 - failed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed or not promised else 0)

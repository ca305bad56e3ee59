#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""install_test.py SOURCE_ROOT SECTION TOOLKIT_INCLUDE [PATH_ENTRY...]

Does what a section of docs/install.md says, in an empty directory: writes its files and the program of
README.md, and runs its commands with a repository that has the files of this one. Then runs the program
that they made. The toolkit is in /usr/local/cuda, as the page has it, or where it is the variable and the command say so.
PATH_ENTRY: directories of the tools that the commands are to use.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "embed"))
from common import scratch, toolkit_environment, toolkit_options

root, section, toolkit, *tools = sys.argv[1:]
root = pathlib.Path(root).resolve()
page = (root / "docs" / "install.md").read_text()
readme = (root / "README.md").read_text()


def end(passed, failed, skipped, code):
    print(f"cases: {passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(code)


text = re.search(rf"^## {re.escape(section)}.*?\n(.*?)(?=^## |\Z)", page, re.M | re.S)[1]
commands = [line[2:] for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S) for line in block.splitlines()]
env = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "DESTDIR")}
env.update(toolkit_environment(toolkit), PATH=":".join([*tools, env["PATH"]]))
if toolkit_options(toolkit, ""):
    commands = [command.replace("/usr/local/cuda/include", toolkit) for command in commands]
if shutil.which("ccache"):  # which Meson finds itself
    env["CMAKE_CXX_COMPILER_LAUNCHER"] = "ccache"
missing = {command.split()[0] for command in commands if command.split()[0] != "export"
           and not shutil.which(command.split()[0], path=env["PATH"])}
if missing or not shutil.which("git"):
    print(f"skipped: not installed: {missing or 'git'}")
    end(0, 0, 1, 77)

with scratch() as tmp:
    directory, origin = tmp / "hello", tmp / "origin"
    directory.mkdir()

    def run(command, cwd=directory, **kwargs):
        return subprocess.run(["bash", "-c", command], cwd=cwd, env=env, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, **kwargs)

    # A repository of what is committed here, and of what is not yet.
    listed = run("git ls-files -co --exclude-standard", root)
    if listed.returncode:
        print("skipped: not a repository")
        end(0, 0, 1, 77)
    for file in listed.stdout.splitlines():
        if os.path.lexists(root / file):
            (origin / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / file, origin / file, follow_symlinks=False)
    made = run("git init -q -b main && git add -A && git -c user.name=t -c user.email=t commit -qm t", origin)
    assert made.returncode == 0, made.stdout
    env["CUGUEST"] = f"file://{origin}"
    env["CCACHE_BASEDIR"] = str(tmp)

    for language, comment, source in (("cpp", "//", readme), ("meson", "#", text), ("cmake", "#", text)):
        for file, body in re.findall(rf"^```{language}\n{comment} (\S+)\n(.*?)^```", source, re.M | re.S):
            (directory / file).write_text(body)
    result = run("set -e -x\n" + "\n".join(commands))
    print(result.stdout[-6000:])
    if result.returncode:
        print("not ok: a command failed")
        end(0, 1, 0, 1)
    # With a test, it ran on the simulation; without, it says that there is no driver, if there is none.
    promised = re.search(r"meson test -C build -v\n(.*?)^```", readme, re.M | re.S)[1].splitlines()[-1]
    programs = [path for path in directory.rglob("hello") if path.is_file() and os.access(path, os.X_OK)]
    tested = section != "pkg-config"
    said = result.stdout if tested or not programs else run(str(programs[0])).stdout
    done = len(programs) == 1 and (promised in said or (not tested and "load the CUDA driver" in said))
    print(said if not done else f"ok: {programs[0].relative_to(directory)}")
    end(int(done), int(not done), 0, int(not done))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pack_test.py

pack.py with a build of which `meson introspect` tells three tests: a program, one that could not be built and says what is
missing, and a command of the machine's, which is left out by name. Then run.py with that pack,
without a GPU: its report says why the second one was skipped.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SAY_SKIPPED = 'import sys; print("skipped: without", *sys.argv[1:]); sys.exit(77)'  # as the build's files have it
MESON = """#!/usr/bin/env python3
import pathlib, sys
print(pathlib.Path(sys.argv[0]).with_name(sys.argv[2][2:] + ".json").read_text())
"""


def row(name, suite, *command):
    return {"name": name, "suite": [f"cuguest:{suite}"], "cmd": [str(word) for word in command], "depends": [], "env": {},
            "timeout": 60, "is_parallel": True}


with tempfile.TemporaryDirectory() as name:
    tmp = pathlib.Path(name).resolve()
    build = tmp / "build"
    for folder in ("lib", "test", "cuda"):
        (build / folder).mkdir(parents=True)
    shutil.copy(shutil.which("true"), build / "test" / "passes")
    (build / "lib" / "libcuguest-core.a").write_text("!<arch>\n")
    (build / "cuda" / "cuda.h").touch()
    (build / "compile_commands.json").write_text(json.dumps([{
        "directory": str(build), "file": str(ROOT / "lib" / "core" / "error.cc"), "command": f"c++ -isystem{build}/cuda"}]))
    (tmp / "tests.json").write_text(json.dumps([
        row("passes", "unit", build / "test" / "passes"),
        row("not_built", "examples", sys.executable, "-c", SAY_SKIPPED, "the headers of something"),
        row("of_the_machine", "process", shutil.which("true"))]))
    (tmp / "targets.json").write_text("[]")
    (tmp / "benchmarks.json").write_text("[]")
    (tmp / "meson").write_text(MESON)
    (tmp / "meson").chmod(0o755)
    packed = subprocess.run([sys.executable, HERE / "pack.py", build, tmp / "out"], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, env=dict(os.environ, PATH=f"{tmp}:{os.environ['PATH']}"))
    print(packed.stdout)
    good = packed.returncode == 0 and "left out: of_the_machine, which runs /" in packed.stdout
    if good:
        without_gpu = "import run, sys; run.look_at_driver = lambda: (['GPU'], '13.0', '1', 5 << 30); sys.exit(run.main())"
        run = subprocess.run([sys.executable, "-c", without_gpu, "--only", "passes|not_built"], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, cwd=tmp / "out")
        report = (tmp / "out" / "gpu-1.md").read_text()
        print(run.stdout, report)
        good = run.returncode == 0 and "1 passed, 0 failed, 1 skipped" in run.stdout
        good = good and "\n| examples | not_built | skipped | " in report
        good = good and "\n| not_built | all | without the headers of something |\n" in report
        good = good and "\n| not_built | none |" not in report
    print(f"cases: {int(good)} passed, {int(not good)} failed, 0 skipped")
    sys.exit(0 if good else 1)

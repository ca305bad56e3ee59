# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch, CuPy, Numba and cuda.core on a real driver; those that are not installed are skipped by name."""

import json
import pathlib
import subprocess
import sys

import pytest

from cuguest._audit import COMMAND

HERE = pathlib.Path(__file__).resolve().parent
OF_THE_STACK = {"leaked-push", "extra-pop", "replaced-context", "left-context"}
NAMES = ("torch", "cupy", "numba", "cuda.core")

pytestmark = pytest.mark.gpu


def run(*words):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", timeout=300)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip().splitlines()[-1])
    print(done.stdout)
    return done


@pytest.mark.parametrize("name", NAMES)
def test_guards_and_objects(name):
    done = run(sys.executable, HERE / "frameworks.py", name)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_disturbed(name, tmp_path):
    """As the auditor sees it. What frameworks create for themselves is printed alone."""
    file = tmp_path / "found.json"
    done = run(COMMAND, f"--json={file}", "--", sys.executable, HERE / "frameworks.py", name)
    assert done.returncode == 0, done.stdout
    report = json.loads(file.read_text())
    assert any(process["source"] for process in report["processes"]), report["notes"]
    assert [finding["kind"] for finding in report["findings"] if finding["kind"] in OF_THE_STACK] == []


@pytest.mark.parametrize("which, said", [("before", "no longer current"), ("after", "still current; its work: True")])
def test_probe_in_pytorch(which, said):
    pytest.importorskip("torch", reason="torch is not installed")
    done = run(sys.executable, HERE.parent / "examples" / "host.py", which)
    assert f"Torch: its context is {said}" in done.stdout

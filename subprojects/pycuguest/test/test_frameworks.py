# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch, CuPy, Numba and cuda.core on a real driver; those that are not installed are skipped by name."""

import importlib.util
import json
import pathlib
import subprocess
import sys
import textwrap

import pytest

from cuguest._audit import COMMAND
from test_process import ENDS, PENDING

HERE = pathlib.Path(__file__).resolve().parent
OF_THE_STACK = {"leaked-push", "extra-pop", "replaced-context", "left-context"}
NAMES = ("torch", "cupy", "numba", "cuda.core")
MODULES = {"numba": "numba.cuda"}

pytestmark = pytest.mark.gpu


def skip_without(name):
    try:
        found = importlib.util.find_spec(MODULES.get(name, name))
    except ModuleNotFoundError:
        found = None
    if found is None:
        pytest.skip(f"{name} is not installed")


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


@pytest.mark.parametrize("name", NAMES)
def test_host_functions_that_are_pending(name):
    """The table of test_process.py, in a process in which the framework has the primary context."""
    skip_without(name)
    done = run(sys.executable, "-c", textwrap.dedent(PENDING), json.dumps(list(ENDS.values())), name, HERE)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_pools_of_processes_under_the_audit(name, tmp_path):
    """Complete; what frameworks create for themselves is printed alone."""
    file = tmp_path / "found.json"
    done = run(COMMAND, f"--json={file}", "--", sys.executable, HERE / "frameworks.py", name, "pool")
    assert done.returncode == 0, done.stdout
    report = json.loads(file.read_text())
    assert report["complete"], (report["gaps"], report["notes"])
    assert [finding["kind"] for finding in report["findings"] if finding["kind"] in OF_THE_STACK] == []


UNDISTURBED = """
    import ctypes, sys, unittest
    import pytest
    import cuguest
    sys.path.insert(0, {folder!r})
    import frameworks
    driver = ctypes.CDLL("libcuda.so.1")

    @pytest.fixture(scope="module")
    def host():
        return frameworks.HOSTS[{name!r}]()

    @pytest.mark.usefixtures("undisturbed")
    class TestCase(unittest.TestCase):
        @pytest.fixture(autouse=True)
        def of_all(self, host):
            self.host = host

        def test_works(self):
            assert self.host.work()

        def test_pushes(self):
            made = ctypes.c_void_p()
            assert driver.cuCtxCreate_v2(ctypes.byref(made), 0, 0) == 0

        def test_works_again(self):
            assert self.host.work()
"""


@pytest.mark.parametrize("name", NAMES)
def test_undisturbed_in_unittest(name, pytester):
    skip_without(name)
    pytester.makepyfile(textwrap.dedent(UNDISTURBED.format(folder=str(HERE), name=name)))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*Disturbed: the context stack of the thread was *"])


@pytest.mark.parametrize("which, said", [("before", "no longer current"), ("after", "still current; its work: True")])
def test_probe_in_pytorch(which, said):
    pytest.importorskip("torch", reason="torch is not installed")
    done = run(sys.executable, HERE.parent / "examples" / "host.py", which)
    assert f"Torch: its context is {said}" in done.stdout

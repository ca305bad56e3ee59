# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples do what their page says."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from cuguest._audit import COMMAND

HERE = pathlib.Path(__file__).resolve().parent
HOST = HERE.parent / "examples" / "host.py"
# Of others the auditor does not tell functions, and the interpreter is the library.
IS_READ = sys.version_info[:2] in ((3, 12), (3, 13))


def audited(tmp_path, *words):
    file = tmp_path / "found.json"
    done = subprocess.run([COMMAND, f"--json={file}", "--", sys.executable, *map(str, words)], env=dict(os.environ),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    return done.stdout, [finding["kind"] for finding in json.loads(file.read_text())["findings"]]


@pytest.mark.parametrize("which, said, kinds", [
    ("before", "Calls: its context is no longer current; its work: False\n", ["leaked-push"]),
    ("after", "Calls: its context is still current; its work: True\n", []),
])
def test_probe(driver, tmp_path, which, said, kinds):
    text, found = audited(tmp_path, HOST, which, "--calls")
    assert text == said
    assert found == (kinds if IS_READ else [])


PAGES = [path for path in (HERE.parent / "README.md", HERE.parent / "python.md", HERE.parents[2] / "docs" / "python.md")
         if path.exists()]
# What the snippets use.
WORLD = f"""
import ctypes, sys, types
sys.path.insert(0, {str(HOST.parent)!r})
import cuguest, probe as package
driver = ctypes.CDLL("libcuda.so.1")
made, popped, handle = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
driver.cuInit(0)
driver.cuCtxCreate_v2(ctypes.byref(made), 0, 0)
driver.cuStreamCreate(ctypes.byref(handle), 0)
stream = types.SimpleNamespace(__cuda_stream__=(0, handle.value))
frame = None
def work():
    assert cuguest.current() is not None
def probe():
    package.free_before(0)
def encode(frame):
    pass
decode = encode
"""


def snippets():
    for page in PAGES:
        for number, code in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)):
            yield pytest.param(code, id=f"{page.name}-{number}")


@pytest.mark.parametrize("code", list(snippets()))
def test_snippet_of_a_page(driver, tmp_path, code):
    file = tmp_path / "test_snippet.py"
    file.write_text(WORLD + code + "\ndef test_that_it_ran():\n    pass\n")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    assert done.returncode == 0, done.stdout
    assert ("CuguestWarning" in done.stdout) == ("probe()" in code), done.stdout


def test_probe_of_the_page():
    """Is the example's."""
    text = (HOST.parent / "probe.py").read_text()
    for page in PAGES:
        if page.name == "python.md":
            for mark in ("before", "after"):
                body = text.split(f"# [{mark}]\n")[1].split("\n\n\n")[0].strip()
                assert body in page.read_text()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples do what their page says."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from cuguest._audit import COMMAND

HOST = pathlib.Path(__file__).resolve().parent.parent / "examples" / "host.py"
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

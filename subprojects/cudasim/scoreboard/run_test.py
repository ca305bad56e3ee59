#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""run_test.py

run.py with tests of its own: one of each outcome, a crash in the midst of them, and lists of known failures.
"""

import contextlib
import io
import os
import pathlib
import sys
import tempfile

import run

TESTS = """import os, unittest
class Case(unittest.TestCase):
    def test_a_passes(self): pass
    def test_b_crashes(self): os.abort()
    def test_c_fails(self): self.assertEqual(1, 2)
    def test_d_is_skipped(self): self.skipTest("why")
    def test_e_says_why(self):
        os.write(2, b"cudasim: cuNothing: not simulated\\n")
        os.abort()
"""


def wrong_with(known, results):
    """What compare() finds wrong, given the lines of known/own.txt."""
    (run.HERE / "known/own.txt").write_text(known)
    with contextlib.redirect_stdout(io.StringIO()):
        return run.compare("own", results)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "own").mkdir()
    (folder / "known").mkdir()
    (folder / "venv/bin").mkdir(parents=True)
    (folder / "venv/bin/python").symlink_to(sys.executable)
    (folder / "own/__init__.py").touch()
    (folder / "own/test_case.py").write_text(TESTS)
    os.environ["PYTHONPATH"] = name
    results = run.run_tests(folder, {"tests": ["unittest", "own"]}, folder / "no simulation")
    run.HERE = folder
    found = {test.rpartition(".")[2]: outcome for test, outcome in results.items()}
    lines = {test.rpartition(".")[2]: f"{test} why\n" for test in results}
    fails = ["test_b_crashes", "test_c_fails", "test_e_says_why"]
    known = "".join(f"different {lines[test]}" for test in fails)
    checks = {
        "one of each": {test: outcome for test, (outcome, _) in found.items()} == {
            "test_a_passes": "passed", "test_d_is_skipped": "skipped", **dict.fromkeys(fails, "failed")},
        "reasons": found["test_e_says_why"][1] == "cudasim: cuNothing: not simulated" and
                   found["test_b_crashes"][1].startswith("crashed") and "1 != 2" in found["test_c_fails"][1],
        "all known": wrong_with(known, results) == [],
        "an unknown one": len(wrong_with("", results)) == 3,
        "one that passes": len(wrong_with(known + f"different {lines['test_a_passes']}", results)) == 1,
        "one that is gone": len(wrong_with(known + "excluded own.nothing why\n", results)) == 1,
    }
for check, is_right in checks.items():
    if not is_right:
        print(f"{check}: not so: {found}")
bad = sum(not is_right for is_right in checks.values())
print(f"cases: {len(checks) - bad} passed, {bad} failed, 0 skipped")
sys.exit(1 if bad else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""hosts_test.py HOST DIRECTORY: a guest library in a process of HOST.

DIRECTORY has the guest. Prints a transcript and, last, how many cases passed. A machine
without that host says so, and exits with 77.
"""

import importlib
import importlib.util
import re
import sys
import unittest

from host import Missing

# The package that a host is, if it is one.
PACKAGES = {"driver": None, "cupy": "cupy", "jax": "jax", "numba": "numba",
            "torch": "torch", "torch_pool": "torch", "torch_segments": "torch"}
SKIPPED = 77


class Transcript(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.passed = 0

    @staticmethod
    def _say(outcome, test, why=""):
        name = re.sub(r"^\w+\.\w+\.", "", test.id())  # without module and class
        print(f"{outcome}: {name}{why and ': '}{why}", flush=True)

    def addSuccess(self, test):
        self.passed += 1
        self._say("passed", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._say("skipped", test, reason)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self._say("failed", test, self.failures[-1][1])

    def addError(self, test, error):
        super().addError(test, error)
        self._say("failed", test, self.errors[-1][1])

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error:
            self._say("failed", subtest, (self.failures + self.errors)[-1][1])


def cases_of(name, directory):
    package = PACKAGES[name]
    if package and importlib.util.find_spec(package) is None:
        raise Missing(f"{package} is not installed")
    module = importlib.import_module(f"{name}_host")
    found, = (thing for thing in vars(module).values()
              if isinstance(thing, type) and issubclass(thing, unittest.TestCase))
    found.directory = directory
    return found


def main(name, directory):
    try:
        cases = cases_of(name, directory)
    except Missing as missing:
        print(f"skipped: {name}: {missing}\ncases: 0 passed, 0 failed, 1 skipped")
        return SKIPPED
    transcript = Transcript()
    unittest.defaultTestLoader.loadTestsFromTestCase(cases).run(transcript)
    failed = len(transcript.failures) + len(transcript.errors)
    print(f"cases: {transcript.passed} passed, {failed} failed, {len(transcript.skipped)} skipped")
    if failed:
        return 1
    return 0 if transcript.passed else SKIPPED


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""events.py EVENTS (unittest PACKAGE | pytest ARGUMENT...)

Runs tests, and appends to the file EVENTS a line of JSON when one begins and one when it ends, so that it is
known which one a crash was in. Tests that EVENTS has already are not run again.
"""

import importlib
import json
import pathlib
import pkgutil
import sys
import unittest


class Events:
    def __init__(self, path):
        self.path = path
        self.begun = {json.loads(line)["test"] for line in path.read_text().splitlines()} if path.exists() else set()

    def say(self, test, outcome, why=""):
        with self.path.open("a") as file:
            file.write(json.dumps({"test": test, "outcome": outcome, "why": why[-300:]}) + "\n")


def last_line(text):
    return ([line.strip() for line in text.splitlines() if line.strip()] or [""])[-1]


class UnittestResult(unittest.TestResult):
    def __init__(self, events):
        super().__init__()
        self.events = events
        self.outcome = None

    def startTest(self, test):
        super().startTest(test)
        self.outcome = ("passed", "")
        self.events.say(test.id(), "begun")

    def stopTest(self, test):
        super().stopTest(test)
        self.events.say(test.id(), *self.outcome)

    def addSkip(self, test, reason):
        self.outcome = ("skipped", reason)
        if test.id() not in self.events.begun and not hasattr(test, "_testMethodName"):  # a class
            self.events.say(test.id(), *self.outcome)

    def fail(self, error):
        is_skip = error[0].__name__ == "Skipped"  # pytest's, in a test of unittest's
        self.outcome = ("skipped" if is_skip else "failed", last_line(f"{error[0].__name__}: {error[1]}"))

    def addError(self, test, err):
        self.fail(err)
        if not hasattr(test, "_testMethodName"):  # a class's set-up
            self.events.say(test.id(), *self.outcome)

    def addFailure(self, test, err):
        self.fail(err)

    def addSubTest(self, test, subtest, err):
        if err:
            self.fail(err)

    def addUnexpectedSuccess(self, test):
        self.outcome = ("failed", "expected to fail")


def each_test(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each_test(test)
        else:
            yield test


def run_unittest(events, package):
    loader = unittest.TestLoader()
    root = importlib.import_module(package)
    for module in sorted(info.name for info in pkgutil.iter_modules(root.__path__)):
        if module.startswith("test_"):
            tests = each_test(loader.loadTestsFromName(f"{package}.{module}"))
            unittest.TestSuite(test for test in tests if test.id() not in events.begun).run(UnittestResult(events))


class PytestPlugin:
    def __init__(self, events):
        self.events = events

    @staticmethod
    def name(nodeid):
        return nodeid.rpartition("site-packages/")[2]

    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if self.name(item.nodeid) not in self.events.begun]

    def pytest_runtest_logstart(self, nodeid):
        self.events.say(self.name(nodeid), "begun")

    def pytest_runtest_logreport(self, report):
        name = self.name(report.nodeid)
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self.events.say(name, "failed", last_line(crash.message if crash else str(report.longrepr)))
        elif report.skipped and hasattr(report, "wasxfail"):
            self.events.say(name, "passed", "expected to fail")
        elif report.skipped:
            self.events.say(name, "skipped", str(report.longrepr))
        elif report.when == "call":
            self.events.say(name, "passed")


if __name__ == "__main__":
    to = Events(pathlib.Path(sys.argv[1]))
    if sys.argv[2] == "unittest":
        run_unittest(to, sys.argv[3])
    else:
        import pytest
        pytest.main(["-q", "--capture=no", "-p", "no:cacheprovider", "--color=no", *sys.argv[3:]], plugins=[PytestPlugin(to)])

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""For pytest: the fixture `undisturbed`, and --cuguest-audit.

With that each test runs in a process of its own under cuguest-audit, so that what is found is the test's: a child
pytest, which writes its reports into a file. A test with findings fails, and its report has them.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
from typing import Any, Generator, Iterator

import pytest

from . import testing
from ._audit import COMMAND

_REPORTS = "CUGUEST_PYTEST_REPORTS"  # where a child writes


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("cuguest").addoption(
        "--cuguest-audit", action="store_true",
        help="run each test in a process of its own under cuguest-audit, and fail those with findings")


_CHECK: pytest.StashKey[contextlib.AbstractContextManager[None] | None] = pytest.StashKey()  # of a test that has the fixture
_IS_CALLED: pytest.StashKey[bool] = pytest.StashKey()


def _begin_check(item: pytest.Item) -> None:
    item.stash[_CHECK] = check = testing.undisturbed()
    check.__enter__()


@pytest.fixture
def undisturbed(request: pytest.FixtureRequest) -> None:
    """Fails the test if it leaves anything behind that cuguest.testing.undisturbed() sees: from the test's begin on, or
    from where it asks for the fixture itself (`request.getfixturevalue`)."""
    if _IS_CALLED in request.node.stash:
        _begin_check(request.node)
    else:
        request.node.stash[_CHECK] = None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Around the call, of a function or of a unittest.TestCase: what fixtures begin and end is no part of the test."""
    item.stash[_IS_CALLED] = True
    if _CHECK in item.stash:
        _begin_check(item)
    outcome = yield
    check = item.stash.get(_CHECK, None)
    if check is None:
        return
    try:
        check.__exit__(*(outcome.excinfo or (None, None, None)))
    except testing.Disturbed as disturbed:
        # What is between here and the test is of no use to its reader.
        outcome.force_exception(pytest.fail.Exception(f"cuguest.testing.Disturbed: {disturbed}", pytrace=False))


def _plain(value: Any) -> Any:
    """As it is, of what Python has itself; else its text."""
    if isinstance(value, (list, tuple)):
        items = [_plain(item) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    return value if value is None or type(value) in (bool, int, float, str, bytes) else str(value)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    file = os.environ.get(_REPORTS)
    if file is not None and _config is not None:
        data = _config.hook.pytest_report_to_serializable(config=_config, report=report)
        with open(file, "ab") as out:
            pickle.dump(_plain(data), out)


def _reports(file: pathlib.Path) -> Iterator[Any]:
    """What a child has written, as far as it came. Pytest tells tuples from lists."""
    if not file.exists():
        return
    with file.open("rb") as written:
        while True:
            try:
                yield pickle.load(written)
            except (EOFError, pickle.UnpicklingError):
                return


_config: pytest.Config | None = None


def pytest_configure(config: pytest.Config) -> None:
    global _config
    _config = config


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    if not item.config.getoption("--cuguest-audit") or _REPORTS in os.environ:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _audited(item):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _argument(item: pytest.Item) -> str:
    """What names the test to another pytest. An id is text, and no path: it may have `//` or `/./` in it."""
    _, found, name = item.nodeid.partition("::")
    return f"{item.path}{found}{name}"


def _audited(item: pytest.Item) -> list[pytest.TestReport]:
    """The reports of the test, as another process made them under the audit."""
    config = item.config
    options = [f"--rootdir={config.rootpath}", *(["-c", str(config.inipath)] if config.inipath else [])]
    for plugin in config.option.plugins:
        options += ["-p", plugin]
    if config.pluginmanager.hasplugin("xdist"):
        options.append("-n0")  # the configuration file may say another number
    with tempfile.TemporaryDirectory(prefix="cuguest-audit-") as name:
        folder = pathlib.Path(name)
        found, text, reports = folder / "found.json", folder / "found.txt", folder / "reports"
        done = subprocess.run(
            [str(COMMAND), f"--json={found}", f"--output={text}", "--color=never", "--", sys.executable, "-m", "pytest",
             *options, _argument(item)],
            cwd=config.invocation_params.dir, env=dict(os.environ, **{_REPORTS: str(reports)}), text=True,
            errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        made = [config.hook.pytest_report_from_serializable(config=config, data=data) for data in _reports(reports)]
        # As the auditor writes them, whatever the locale is; a path in the text need not be UTF-8.
        said = text.read_text("utf-8", "replace") if text.exists() else done.stdout
        audit: dict[str, Any] = json.loads(found.read_bytes()) if found.exists() else {"findings": [], "complete": False}
    if not any(report.when == "teardown" for report in made):
        made.append(pytest.TestReport(item.nodeid, item.location, {}, "failed",
                                      f"the test's process ended with {done.returncode}\n{done.stdout}", "call"))
    count = len(audit["findings"])
    if count or not audit.get("complete", True):
        for report in (report for report in made if report.when == "call"):
            report.sections.append(("cuguest-audit", said))
            if report.outcome == "passed":
                report.outcome = "failed"
                report.longrepr = "cuguest-audit: " + (f"{count} findings" if count else "the audit is incomplete")
    return made

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""For pytest: the fixture `undisturbed`, and --cuguest-audit.

With that each test runs in a process of its own under cuguest-audit, so that what is found is the test's: a child
pytest, which writes its reports into a file. A test with findings fails, and its report has them.
"""

from __future__ import annotations

import json
import os
import pathlib
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


@pytest.fixture
def undisturbed() -> Iterator[None]:
    """Fails the test if it leaves anything behind that cuguest.testing.undisturbed() sees."""
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, None]:
    """Inside the call, as a fixture's end is no part of the test."""
    if "undisturbed" not in pyfuncitem.fixturenames:
        yield
        return
    check = testing.undisturbed()
    check.__enter__()
    outcome = yield
    if outcome.excinfo is None:
        try:
            check.__exit__(None, None, None)
        except testing.Disturbed as disturbed:
            outcome.force_exception(disturbed)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    file = os.environ.get(_REPORTS)
    if file is not None and _config is not None:
        data = _config.hook.pytest_report_to_serializable(config=_config, report=report)
        with open(file, "a") as out:
            print(json.dumps(data), file=out)


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


def _audited(item: pytest.Item) -> list[pytest.TestReport]:
    """The reports of the test, as another process made them under the audit."""
    config = item.config
    options = [f"--rootdir={config.rootpath}", *(["-c", str(config.inipath)] if config.inipath else [])]
    for plugin in config.option.plugins:
        options += ["-p", plugin]
    with tempfile.TemporaryDirectory(prefix="cuguest-audit-") as name:
        folder = pathlib.Path(name)
        found, text, reports = folder / "found.json", folder / "found.txt", folder / "reports"
        done = subprocess.run(
            [str(COMMAND), f"--json={found}", f"--output={text}", "--color=never", "--", sys.executable, "-m", "pytest",
             *options, str(config.rootpath / item.nodeid)],
            cwd=config.invocation_params.dir, env=dict(os.environ, **{_REPORTS: str(reports)}), text=True,
            errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        made: list[pytest.TestReport] = []
        if reports.exists():
            made = [config.hook.pytest_report_from_serializable(config=config, data=json.loads(line))
                    for line in reports.read_text().splitlines()]
        said = text.read_text() if text.exists() else done.stdout
        audit: dict[str, Any] = json.loads(found.read_text()) if found.exists() else {"findings": [], "complete": False}
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

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""truth_test.py COMMAND HOST HOSTILE SCRIPT SIMDIR SOURCE_ROOT [NAME...]

The rows of truth_table.py, or those of these names: what cuguest-audit reports of each program on the simulation. Of each
report the schema is checked, of each trace the format, and a log is replayed to the same findings.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import traceback

import schema
import truth_table

command, host, hostile, script, simdir, root = map(os.path.abspath, sys.argv[1:7])
names = sys.argv[7:]
report_schema = json.loads((pathlib.Path(root) / "audit" / "command" / "report.schema.json").read_text())
folder = tempfile.TemporaryDirectory()
base = pathlib.Path(folder.name)
base.chmod(0o755)  # for other users
libraries = base / "libraries"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("CUDASIM_", "CUGUEST_"))}
ENVIRONMENT.update(LD_LIBRARY_PATH=f"{libraries}:{pathlib.Path(hostile).parent}:{simdir}", PYTHON=sys.executable,
                   COMMAND=command, PROGRAM=host)
EVENTS = ("call", "entered", "check", "context", "used", "process_end", "initialized", "unloaded", "made", "stale")
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def escaped(text):
    """As reports show control characters."""
    known = {"\n": r"\n", "\t": r"\t"}
    return CONTROL.sub(lambda found: known.get(found[0]) or "".join(rf"\x{byte:02x}" for byte in found[0].encode()),
                       text.replace("\n", r"\n"))


def name_of(place):
    if not place:
        return "-"
    name = pathlib.Path(place.get("object", "?")).name
    return "host" if name == pathlib.Path(host).name else escaped(name)


def text_of(finding):
    text = f"{finding['kind']} {name_of(finding['culprit'])}>{name_of(finding['victim'])}"
    if finding["count"] > 1:
        text += f" x{finding['count']}"
    if finding["processes"] > 1:
        text += f" in {finding['processes']} processes"
    return text + (f" after {finding['consequence_of']}" if "consequence_of" in finding else "")


def findings_of(report):
    return "; ".join(map(text_of, report["findings"]))


def copy_libraries():
    words = " ".join(row.words for row in truth_table.ROWS if row.words)
    for name in set(re.findall(r"[^\s:,\[/]*(?:again/)?lib[^\s:,/]*\.so", words)):
        path = libraries / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(script, path)


class Case:
    """A row that is run, and `wrong`: how it differs from what the row says."""

    def __init__(self, row):
        self.row = row
        self.wrong = []
        self.here = base / f"row{truth_table.ROWS.index(row)}"
        self.here.mkdir()
        for name, content in row.files.items():
            (self.here / name).write_text(content)

    def filled(self, text):
        return text.replace("{here}", str(self.here)).replace("{libraries}", str(libraries))

    def program(self):
        row = self.row
        if row.program == "audit_host":
            return host
        if "/" not in row.program:
            shutil.copy(host, self.here / row.program)
        return str(self.here / row.program)

    def command(self, *options):
        row = self.row
        words = [command, "--error-exitcode=9", f"--json={self.here / 'report.json'}", *options,
                 *shlex.split(self.filled(row.options))]
        if row.words is not None:
            inside = ["sh", "-c", row.inside, "sh"] if row.inside else []
            words += ["--", *inside, self.program(), *self.filled(row.words).split(" ")]
        return self.shell(f'{row.outside}; exec "$@"', *[word for word in words if word])

    def shell(self, *words):
        return subprocess.run(["sh", "-c", words[0], "sh", *words[1:]], env={**ENVIRONMENT, **self.row.env}, cwd=self.here,
                              capture_output=True, text=True, errors="surrogateescape", stdin=subprocess.DEVNULL, timeout=60)

    def expect(self, what, seen, expected):
        if seen != expected:
            self.wrong.append(f"{what}: {seen!r}, not {expected!r}")

    def run(self):
        try:
            return self.run_row()
        except Exception:  # the other rows are run all the same
            self.wrong.append(traceback.format_exc())
            return self

    def run_row(self):
        row = self.row
        if self.shell(row.possible).returncode != 0:
            return None
        keeps = row.words is not None and "--log" not in row.options and not row.refused
        done = self.command(*[f"--{name}={self.here / name}" for name in ("log", "trace") if keeps])
        failed = bool(row.finds is None or row.finds or row.unaudited or row.incomplete)
        self.expect("exit status", done.returncode, 9 * failed if row.status is None else row.status)
        if row.says not in done.stderr:
            self.wrong.append(f"the report does not say {row.says!r}")
        self.expect("control characters", CONTROL.findall(done.stderr), [])
        for name, content in row.files.items():
            self.expect(name, (self.here / name).read_text() == content, True)
        file = self.here / "report.json"
        self.expect("there is a report", file.exists(), not row.refused)
        if file.exists() and not row.refused:
            self.check_report(json.loads(file.read_text()), done)
            if keeps:
                self.check_files()
        if self.wrong:
            self.wrong.append(f"{done.stdout}{done.stderr[:4000]}")
        return self

    def check_report(self, report, done):
        row = self.row
        first = {**report, "findings": report["findings"][:100]}  # a schema is checked slowly
        self.expect("schema", schema.errors(first, report_schema), [])
        if row.finds is not None:
            self.expect("findings", findings_of(report), row.finds)
        self.findings = findings_of(report)
        reasons = [process["unaudited"] for process in report["processes"] if "unaudited" in process]
        self.expect("not audited", [any(map(reason.startswith, row.unaudited)) for reason in reasons],
                    [True] * len(row.unaudited))
        self.expect("complete", report.get("complete"), not row.unaudited and not row.incomplete)
        self.expect("nothing was seen", truth_table.UNSEEN in done.stderr, row.says == truth_table.UNSEEN)

    def check_events(self):
        text = (self.here / "log").read_text()
        last = max(map(int, re.findall(r"^process (\d+) \d", text, re.M)), default=0)
        process, seen = 0, []
        for words in map(str.split, text.splitlines()):
            process = int(words[1]) if words[0] == "process" else process
            if process == last and words[0] in EVENTS:
                seen.append(" ".join([words[0], *words[3:4]]).removesuffix(" -"))
        left = iter(seen)
        self.expect("events", [event for event in self.row.events if event not in left], [])

    def check_files(self):
        self.check_events()
        self.expect("trace", list(schema.trace_errors(json.loads((self.here / "trace").read_text()))), [])
        again = self.here / "again.json"
        self.shell('exec "$@"', command, f"--json={again}", *[word for word in shlex.split(self.filled(self.row.options))
                                                             if not word.startswith("--source")],
                   f"--replay={self.here / 'log'}")
        self.expect("the same from the log", findings_of(json.loads(again.read_text())), self.findings)


copy_libraries()
kinds = report_schema["$defs"]["finding"]["properties"]["kind"]["enum"]
page = pathlib.Path(root) / "audit" / "collect" / "collector.h"
told = re.search(r"^// Note \[What each finding needs\]\n.*?(?=^//\n// Note|^// Threads)", page.read_text(), re.M | re.S)[0]
if list(truth_table.NEEDS) != kinds or [kind for kind in kinds if not re.search(rf"(?<![\w-]){kind}(?![\w-])", told)]:
    sys.exit("each kind of finding has a place in NEEDS, and in the Note of collector.h")
manual = pathlib.Path(root).parent.parent / "docs" / "audit.md"
if manual.exists():
    table = manual.read_text().split("### Streams, pools and execution contexts\n")[1].split("\n#")[0]
    promised = {cells[1].strip(): re.findall(r"`([a-z-]+)`", cells[2]) for cells in
                (line.split("|") for line in table.splitlines() if line.startswith("| "))}
    scope = {row.name: [part.split()[0] for part in row.finds.split("; ") if part] for row in truth_table.SCOPE}
    if {name: kinds for name, kinds in promised.items() if name != "situation"} != scope:
        sys.exit(f"the manual's table of what is in scope: {set(promised) ^ set(scope)}")
missing = [kind for kind in kinds if not any(re.search(rf"\b{kind} ", row.finds or "") for row in truth_table.ROWS)]
if missing:
    sys.exit(f"no row finds {missing}")
rows = [row for row in truth_table.ROWS if not names or row.name in names]
passed = failed = skipped = 0
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    for row, case in zip(rows, pool.map(lambda row: Case(row).run(), rows)):
        if case is None:
            skipped += 1
            print(f"skipped: {row.name}: {row.possible} is not possible here")
        elif case.wrong:
            failed += 1
            print(f"NOT OK: {row.name}", *case.wrong, sep="\n  ")
        else:
            passed += 1
            print(f"ok: {row.name}")
print(f"rows: {passed} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""advice_test.py ROWS COMMAND HOST HOSTILE SCRIPT SIMDIR SOURCE_ROOT [KIND...]

The cases of advice_table.py on the simulation: each finding has the advice, and who does what it says has no finding and a
program that works. Each row of the advice has a case, what it names is called by the programs of its cases, and docs/audit.md
says what the rows say.
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

import advice_page
import advice_table

rows_program, command, host, hostile, script, simdir, root = map(os.path.abspath, sys.argv[1:8])
kinds = sys.argv[8:]
folder = tempfile.TemporaryDirectory()
base = pathlib.Path(folder.name)
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("CUDASIM_", "CUGUEST_"))}
ENVIRONMENT["LD_LIBRARY_PATH"] = f"{base}:{pathlib.Path(hostile).parent}:{simdir}"
rows = json.loads(subprocess.run([rows_program], capture_output=True, text=True, check=True, env=ENVIRONMENT).stdout)
advice = {(row["kind"], row["of"]): row for row in rows}


FUNCTION = re.compile(r"\b(?:cuda|cu)[A-Z]\w+")


def calls_of_actions():
    """Of each action of fixtures/script.cc the functions of CUDA that it calls, by itself or through others of the file."""
    text = (pathlib.Path(__file__).parent / "fixtures" / "script.cc").read_text()
    parts = re.split(r"^\w[\w:*<> ]*[ *](\w+)\(", text, flags=re.M)  # a function begins its line
    bodies = dict(zip(parts[1::2], parts[2::2]))

    def calls(name, seen=()):
        inner = {other for other in bodies if other not in (name, *seen) and re.search(rf"\b{other}\(", bodies[name])}
        return set(FUNCTION.findall(bodies[name])).union(*[calls(other, (name, *seen)) for other in inner])

    return {action: calls(name) for action, name in re.findall(r'\{"([\w-]+)", (\w+)\}', text) if name in bodies}


class Run:
    def __init__(self, number, which, case):
        file = base / f"{number}.{which}.json"
        words = getattr(case, which)
        self.text = f"{which}: {words}"
        done = subprocess.run([command, "--error-exitcode=9", f"--json={file}", *shlex.split(case.options), "--", host,
                               *words.split(" ")], env={**ENVIRONMENT, **case.env}, cwd=base, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=60)
        self.status = done.returncode
        self.report = re.sub(r"\s+", " ", done.stderr)
        self.output = done.stdout + done.stderr
        self.findings = json.loads(file.read_text())["findings"] if file.exists() else []


def faults(number, case):
    """What is not as the case says."""
    row = advice.get((case.kind, case.of))
    if row is None:
        return ["advice.cc has no such row"]
    wrong = Run(number, "wrong", case)
    found = [finding for finding in wrong.findings
             if finding["kind"] == case.kind and finding["call"].startswith(case.call)]
    said = [(finding["fix"], finding.get("fix_with_cuguest", "")) for finding in found]
    if (row["plain"], row["cuguest"]) not in said or wrong.status != 9:
        return [f"{wrong.text}: status {wrong.status}, {said}", wrong.output]
    if row["plain"] not in wrong.report:
        return ["the text of the report has not that advice", wrong.output]
    right = Run(number, "right", case)
    if right.findings or right.status != 0:
        return [f"{right.text}: status {right.status}", right.output]
    return []


for name in set(re.findall(r"lib\w+\.so", " ".join(case.wrong + case.right for case in advice_table.CASES))):
    shutil.copy(script, base / name)
failed = 0
without = [key for key in advice if key not in {(case.kind, case.of) for case in advice_table.CASES}]
if without and not kinds:
    failed += 1
    print("NOT OK: these rows have no case:", *without, sep="\n  ")
actions = calls_of_actions()
for key, row in advice.items() if not kinds else []:
    words = [word for case in advice_table.CASES if (case.kind, case.of) == key for word in re.findall(r"[\w-]+", case.right)]
    unheard = set(FUNCTION.findall(row["plain"])).difference(*[actions.get(word, ()) for word in words])
    if unheard:
        failed += 1
        print(f"NOT OK: {key}: no repaired program calls {sorted(unheard)}")
page = pathlib.Path(root).parent.parent / "docs" / "audit.md"
for fault in advice_page.faults(page.read_text(), rows) if page.exists() and not kinds else []:
    failed += 1
    print(f"NOT OK: {page}: {fault}")
headers = pathlib.Path(root).parent.parent / "include" / "cuguest"
declared = set(re.findall(r"\w+", " ".join(file.read_text() for file in headers.rglob("*.h")))) if headers.exists() else set()
for row in rows if declared and not kinds else []:
    unknown = [name for name in re.findall(r"[A-Z]\w*[a-z][A-Z]\w*", row["cuguest"]) if name not in declared]
    if unknown:
        failed += 1
        print(f"NOT OK: {row['kind']}, {row['of']}: cuguest has no {unknown}")
cases = [case for case in advice_table.CASES if not kinds or case.kind in kinds]
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    for case, wrong in zip(cases, pool.map(faults, range(len(cases)), cases)):
        failed += bool(wrong)
        print(f"{'NOT OK' if wrong else 'ok'}: {case.kind}, {case.of or 'otherwise'}", *wrong, sep="\n  ")
print(f"cases: {len(cases)}, {failed} failed")
sys.exit(1 if failed else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""audit_example_test.py COMMAND SIMDIR SOURCE_ROOT [HOSTILE_CALLEE]

cuguest-audit on the simulation, with the example hostile_callee: what is found and named. docs/audit.md has all kinds of
findings.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

command, simdir, root, *examples = map(os.path.abspath, sys.argv[1:])
root = pathlib.Path(root)
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("CUDASIM_", "CUGUEST_"))}
ENVIRONMENT.update(LD_LIBRARY_PATH=simdir)
passed = failed = 0


def check(what, holds, details=""):
    global passed, failed
    print("ok:" if holds else "NOT OK:", what)
    if holds:
        passed += 1
    else:
        failed += 1
        print(details)


# The example names each fault as a function of its callee.
callee = (root / "examples" / "guest" / "hostile_callee" / "callee.cc").read_text().splitlines()
EXAMPLE = {
    ("replaced-context", "ReplaceTop"): "CtxSetCurrent(contexts.p)",
    ("leaked-push", "LeakPush"): "CtxPushCurrent(contexts.c)",
    ("leaked-push", "LeakLibrarysPush"): "CtxPushCurrent(contexts.library)",
    ("extra-pop", "PopOnce"): "return driver.CtxPopCurrent",
    ("extra-pop", "PopTwice"): "CtxPopCurrent",
    ("destroyed-context", "DestroyContext"): "CtxDestroy",
}
for example in examples:
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "report.json"
        done = subprocess.run([command, f"--json={file}", "--", example], env={**ENVIRONMENT, "TMPDIR": folder},
                              capture_output=True, text=True, timeout=60)
        findings = json.loads(file.read_text())["findings"]
    details = f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    for (kind, function), call in EXAMPLE.items():
        places = {finding["culprit"].get("line") for finding in findings
                  if finding["kind"] == kind and finding["culprit"]["function"].split("::")[-1] == function}
        check(f"hostile_callee: {function}", places and all(line is None or call in callee[line - 1] for line in places), details)
    check("hostile_callee: nobody else", {pathlib.Path(finding["culprit"]["object"]).name for finding in findings}
          == {"hostile_callee_library.so"} and done.returncode == 0, details)

schema = json.loads((root / "subprojects" / "cuguest-audit" / "audit" / "command" / "report.schema.json").read_text())
kinds = schema["$defs"]["finding"]["properties"]["kind"]["enum"]
page = (root / "docs" / "audit.md").read_text()
check("docs/audit.md has all kinds of findings", kinds and all(f"(`{kind}`)" in page for kind in kinds), kinds)

print(f"cases: {passed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed else 0)

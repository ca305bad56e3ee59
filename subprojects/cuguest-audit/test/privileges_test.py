#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""privileges_test.py PROGRAM LIBRARY COLLECTOR SIMDIR

A program with more privileges than its caller (set-user-ID, or with capabilities of its file) takes nothing of what the
caller's environment says: the simulated driver loads no library and writes no file that a variable names, the collector loads
no source, and a test that audits itself no collector. The same program, without the privileges, does.

Skipped where this cannot make a program that is set-user-ID.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from checks import check, done, skip

program, library, collector, simdir = (pathlib.Path(word).resolve() for word in sys.argv[1:])
DRIVER, NOBODY = ("driver", simdir / "libcuda.so.1"), 65534


def run(path, *words, **variables):
    privileged = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if path.stat().st_mode & 0o4000 else {}
    return subprocess.run([path, *words], env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **privileged)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    folder.chmod(0o755)
    plain, privileged = (shutil.copy(program, folder / word) for word in ("plain", "privileged"))
    privileged.chmod(0o4755)
    if os.geteuid() != 0:
        skip("a program that is set-user-ID", "only root can make one for another user")
        done()
    tried = run(privileged, *DRIVER)
    if "privileged" not in tried.stdout:
        skip("a program that is set-user-ID", f"this system, or this file system, has none: {tried.stdout}")
        done()
    report, log = folder / "report", folder / "log"
    for path, words, variables, seen in (
            ("CUDA_INJECTION64_PATH", DRIVER, {"CUDA_INJECTION64_PATH": library}, None),
            ("CUDASIM_REPORT", DRIVER, {"CUDASIM_REPORT": report}, report),
            ("CUDA_LOG_FILE", DRIVER, {"CUDA_LOG_FILE": log, "CUDASIM_FAIL": "cuInit:1:999"}, log),
            ("CUGUEST_AUDIT_CUPTI", ("collector", collector),
             {"CUGUEST_AUDIT_SOURCE": "cupti", "CUGUEST_AUDIT_CUPTI": library}, None),
            ("CUGUEST_AUDIT_SANITIZER", ("collector", collector),
             {"CUGUEST_AUDIT_SOURCE": "sanitizer", "CUGUEST_AUDIT_SANITIZER": library}, None),
            ("CUGUEST_AUDIT_LIBRARY", ("own",), {"CUGUEST_AUDIT_LIBRARY": library}, None)):
        for who, is_obeyed in ((privileged, False), (plain, True)):
            report.mkdir(exist_ok=True)
            ran = run(who, *words, **{key: str(value) for key, value in variables.items()})
            obeyed = "loaded" in ran.stdout.splitlines() if seen is None else any(report.iterdir()) or log.exists()
            said = f"{ran.returncode}\n{ran.stdout}"
            check(f"{path}: the {who.name} program ends as it should", ran.returncode in (0, 999 % 256), said)
            check(f"{path}: the {who.name} program {'takes' if is_obeyed else 'does not take'} it", obeyed == is_obeyed, said)
            shutil.rmtree(report)
            log.unlink(missing_ok=True)
    done()

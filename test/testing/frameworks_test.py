#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""frameworks_test.py COMMAND DIRECTORY

cuguest-audit with programs that nobody built for it. A framework in the process of a program that has a context of its
own current: what the program itself sees changed is found, with the object that did it, and nothing is found where
nothing is. And a guest that is built on cuguest (DIRECTORY has it), in every framework: no finding has to do with it.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

command, directory = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:])
HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
OF_THE_STACK = {"leaked-push", "extra-pop", "replaced-context", "left-context"}
# Whose code it is that acts on contexts; numba's calls go through ctypes: they are the program's own.
OBJECTS = {"cublas": ("libcublas",), "cupy": ("cupy",), "jax": ("jax", "xla"), "numba": (), "torch": ("libtorch", "libc10")}
# With several, a framework may go through all of them before it comes to rest in one.
DEVICE = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
GUEST_HOSTS = ("driver", "cupy", "jax", "numba", "torch")
counts = {"passed": 0, "failed": 0, "skipped": 0}


def say(outcome, name, why=""):
    counts[outcome] += 1
    print(f"{outcome}: {name}{why and ': '}{why}", flush=True)


class Audited:
    """A run of `words` under the command."""

    def __init__(self, *words, options=()):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "report.json"
            done = subprocess.run([command, f"--json={file}", *options, "--", sys.executable, *words],
                                  env=dict(os.environ, CUDA_VISIBLE_DEVICES=DEVICE), capture_output=True, text=True,
                                  errors="replace", timeout=170)
            self.report = json.loads(file.read_text()) if file.exists() else {}
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.findings = self.report.get("findings", [])
        self.sources = {process["source"] for process in self.report.get("processes", [])}


def in_a_users_context(name):
    run = Audited(HERE / "user_context.py", name)
    if run.code == SKIPPED:
        say("skipped", name, "it is not installed")
        return
    if run.code != 0:
        say("failed", name, f"exit status {run.code}\n{run.out}\n{run.err}")
        return
    seen = json.loads(run.out.splitlines()[-1])
    found = [finding for finding in run.findings if finding["kind"] in OF_THE_STACK]
    changed = seen["before"] != seen["after"]
    right = [finding for finding in found
             if any(word in finding["culprit"].get("object", "").rsplit("site-packages")[-1] for word in OBJECTS[name])
             and (finding["after"] or {"id": 0})["id"] == seen["after"]]
    print(run.err)
    if not run.sources - {None}:
        say("failed", name, "nothing was audited")
    elif changed and OBJECTS[name] and not right:
        say("failed", name, f"{seen['before']} was replaced by {seen['after']}, and no finding says by what")
    elif not changed and found:
        say("failed", name, "a finding, and nothing was changed")
    else:
        say("passed", f"{name}, which {'changed what was current' if changed else 'changed nothing'}")


def a_guest_in(host):
    run = Audited(HERE.parent / "hosts" / "hosts_test.py", host, directory,
                  options=("--object=*hosts_guest*",))
    name = f"a guest in {host}"
    if run.code == SKIPPED:
        say("skipped", name, run.out.splitlines()[0] if run.out else "")
    elif run.code != 0:
        say("failed", name, f"exit status {run.code}\n{run.out[-3000:]}\n{run.err[-3000:]}")
    elif run.findings:
        say("failed", name, run.err[-5000:])
    elif not run.sources - {None}:
        say("failed", name, f"nothing was audited\n{run.err[-3000:]}")
    else:
        say("passed", name, f"{sum(process['events'] for process in run.report['processes'])} events, no finding")


def main():
    os.environ.pop("CUGUEST_AUDIT_SOURCE", None)
    for name in OBJECTS:
        in_a_users_context(name)
    for host in GUEST_HOSTS:
        a_guest_in(host)
    print(f"cases: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""frameworks_test.py COMMAND DIRECTORY

cuguest-audit with programs that nobody built for it. A framework in the process of a program that has a context of its
own current: what the program itself sees changed is found, with the package that did it, and nothing is found where
nothing is. A package that calls the driver by ctypes, beside each framework. And a guest that is built on cuguest
(DIRECTORY has it), in every framework: no finding has to do with it.
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
# Whose code it is that works in contexts: packages of Python, or a library.
PACKAGES = {"cublas": ("libcublas",), "cupy": ("cupy", "cupy_backends"), "jax": ("jax", "jaxlib", "jax_plugins"),
            "numba": ("numba", "numba_cuda"), "torch": ("torch",)}
# With several, a framework may go through all of them before it comes to rest in one.
DEVICE = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
FRAMEWORKS = ("cupy", "jax", "numba", "torch")
PLAIN_HOSTS = (*FRAMEWORKS, "cuda_core")
GUEST_HOSTS = ("driver", *FRAMEWORKS)
# Who goes on in whatever is current. JAX makes its own context current again; Numba looks, and refuses.
GOES_ON = ("cupy", "torch")
counts = {"passed": 0, "failed": 0, "skipped": 0}


def say(outcome, name, why=""):
    counts[outcome] += 1
    print(f"{outcome}: {name}{why and ': '}{why}", flush=True)


class Audited:
    """A run of `words` under the command."""

    def __init__(self, *words, options=(), environment=None):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "report.json"
            done = subprocess.run([command, f"--json={file}", *options, "--", sys.executable, *words],
                                  env=dict(os.environ, CUDA_VISIBLE_DEVICES=DEVICE, **(environment or {})),
                                  capture_output=True, text=True, errors="replace", timeout=170)
            self.report = json.loads(file.read_text()) if file.exists() else {}
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.findings = self.report.get("findings", [])
        self.sources = {process["source"] for process in self.report.get("processes", [])}


def package_of(function):
    """The package of Python that it is in, or the beginning of its library's name."""
    path = pathlib.Path(function.get("object", "-"))
    parts = path.parts[path.parts.index("site-packages") + 1:] if "site-packages" in path.parts else ()
    return path.name.partition(".")[0] if not parts or parts[0] == "nvidia" else parts[0]


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
    right = [finding for finding in found if package_of(finding["culprit"]) in PACKAGES[name]
             and (finding["after"] or {"id": 0})["id"] == seen["after"]]
    print(run.err)
    if not run.sources - {None}:
        say("failed", name, "nothing was audited")
    elif changed and not right:
        say("failed", name, f"{seen['before']} was replaced by {seen['after']}, and no finding says by what")
    elif not changed and found:
        say("failed", name, "a finding, and nothing was changed")
    else:
        say("passed", f"{name}, which {'changed what was current' if changed else 'changed nothing'}")


def stray_primary_of_torch():
    """What c10's question creates, with the reason why that is bad, and what to do."""
    name = "the stray primary context of c10"
    run = Audited(HERE / "user_context.py", "torch_stream")
    if run.code == SKIPPED:
        say("skipped", name, "PyTorch is not installed")
        return
    print(run.err)
    strays = [finding for finding in run.findings if finding["kind"] == "query-created-primary"
              and package_of(finding["culprit"]) == "torch" and finding["call"] == "cudaDeviceGetStreamPriorityRange"]
    told = all(finding.get(text) for finding in strays for text in ("why", "fix", "fix_with_cuguest", "section"))
    say("passed" if run.code == 0 and len(strays) == 1 and told else "failed", name)


GUEST = """
import ctypes

driver = ctypes.CDLL("libcuda.so.1")
mine = ctypes.c_void_p()


def encode():  # leaves its own context pushed
    assert driver.cuCtxCreate_v2(ctypes.byref(mine), 0, 0) == 0
"""
HOST = """
import importlib.util, os, sys
import ctypes_guest, user_context

if importlib.util.find_spec(sys.argv[1]) is None:
    sys.exit(77)
use = getattr(user_context, "use_" + sys.argv[1])
use()
ctypes_guest.encode()
try:
    use()
except Exception as error:
    print(f"{type(error).__name__}: {error}")
sys.stdout.flush()
os._exit(0)  # whatever the framework does in a context that is not its own
"""


def ctypes_guest_beside(framework):
    """A package that leaves its context pushed over the one that the framework works in, which may go on in that."""
    name = f"a package with ctypes beside {framework}"
    with tempfile.TemporaryDirectory() as folder:
        guest = pathlib.Path(folder) / "lib" / "site-packages" / "ctypes_guest" / "__init__.py"
        host = pathlib.Path(folder) / "app" / "host.py"
        for file, text in ((guest, GUEST), (host, HOST)):
            file.parent.mkdir(parents=True)
            file.write_text(text)
        paths = os.pathsep.join(map(str, [guest.parent.parent, HERE]))
        run = Audited(host, framework, environment={"PYTHONPATH": paths})
    if run.code == SKIPPED:
        say("skipped", name, "it is not installed")
        return
    print(run.out, run.err)
    if run.code != 0:
        say("failed", name, f"exit status {run.code}")
        return
    of_guest = [finding for finding in run.findings if package_of(finding["culprit"]) == "ctypes_guest"]
    if framework in GOES_ON:
        right = ([finding["kind"] for finding in of_guest] == ["leaked-push"]
                 and of_guest[0]["culprit"]["function"] == "encode"
                 and package_of(of_guest[0]["victim"]) in PACKAGES[framework])
    else:
        right = of_guest == []
    say("passed" if right else "failed", name)


PLAIN = """
import importlib.util, sys
import user_context

name = sys.argv[1]
if importlib.util.find_spec(name.partition("_")[0]) is None:
    sys.exit(77)
getattr(user_context, "use_" + name)()
"""


def a_plain_program_of(name):
    """Which leaves all contexts to it, and what it has made to the end of the process."""
    run = Audited("-c", PLAIN, name, environment={"PYTHONPATH": str(HERE)})
    if run.code == SKIPPED:
        say("skipped", f"a plain program of {name}", "it is not installed")
        return
    if run.code != 0 or run.findings or not run.sources - {None}:
        print(run.out[-3000:], run.err[-5000:])
    right = run.code == 0 and not run.findings and run.sources - {None}
    say("passed" if right else "failed", f"a plain program of {name}")


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
    for name in PACKAGES:
        in_a_users_context(name)
    stray_primary_of_torch()
    for framework in FRAMEWORKS:
        ctypes_guest_beside(framework)
    for name in PLAIN_HOSTS:
        a_plain_program_of(name)
    for host in GUEST_HOSTS:
        a_guest_in(host)
    print(f"cases: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""run.py SIMDIR [SUITE...]

Runs tests that others wrote for CUDA's Python packages on the simulated driver in the folder SIMDIR, and prints how
many passed. Packages and tests come from the Python package registry, into a folder that is kept
(CUDASIM_SCOREBOARD, or ~/.cache/cudasim-scoreboard). Kernels do nothing on the simulation.

known/SUITE.txt lists, each with its reason, the tests that fail: "different" where the simulation should do better,
"excluded" where what they need is not simulated. It may only shrink: a test that fails and is not there, or passes
and is "different" there, is an error.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import urllib.request
import venv

HERE = pathlib.Path(__file__).resolve().parent
KEPT = pathlib.Path(os.environ.get("CUDASIM_SCOREBOARD", pathlib.Path.home() / ".cache" / "cudasim-scoreboard"))
SECONDS = 120  # without an event, a test hangs
SUITES = {
    "numba-cuda": {
        "install": ["numba-cuda[cu13]==0.30.4", "cuda-toolkit==13.0.*", "cuda-bindings==13.0.*", "filecheck", "psutil", "pytest",
                    "cffi", "ml_dtypes"],
        "tests": ["unittest", "numba.cuda.tests.cudadrv"],
    },
    "cuda-python": {  # the last release whose package has its tests
        "install": ["cuda-python==12.3.0", "nvidia-cuda-nvrtc-cu12==12.3.*", "numpy<2", "pytest"],
        "libraries": "venv/lib/python*/site-packages/nvidia/cuda_nvrtc/lib",
        "tests": ["pytest", "--pyargs", "cuda.tests"],
    },
    "pycuda": {
        "install": ["pycuda==2026.1", "numpy", "pytest"],
        "source": "pycuda-2026.1",
        "tests": ["pytest", "pycuda-2026.1/test/test_driver.py"],
    },
}


def fetch_source(name, to):
    """Of the registry's files of a package the archive of its sources, unpacked."""
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")
    project = name.rpartition("-")[0]
    request = urllib.request.Request(f"{index}/{project}/", headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    files = json.load(urllib.request.urlopen(request, timeout=60))["files"]
    url = next(file["url"] for file in files if file["filename"] == f"{name}.tar.gz")
    with urllib.request.urlopen(url, timeout=60) as stream, tarfile.open(fileobj=stream, mode="r|gz") as archive:
        archive.extractall(to)


def prepare(name, suite):
    """The suite's folder, with its packages and its tests."""
    folder = KEPT / name
    done = folder / "installed"
    if not done.exists() or done.read_text() != json.dumps(suite):
        venv.create(folder / "venv", with_pip=True)
        subprocess.run([folder / "venv/bin/pip", "install", "-q", *suite["install"]], check=True)
        if "source" in suite:
            fetch_source(suite["source"], folder)
        done.write_text(json.dumps(suite))
    return folder


def run_tests(folder, suite, simdir):
    """{test: (outcome, why)}. What crashes is gone on from."""
    events = folder / "events"
    events.unlink(missing_ok=True)
    toolkit = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    libraries = [simdir, *folder.glob(suite.get("libraries", "no libraries"))]
    env = dict(os.environ, LD_LIBRARY_PATH=":".join(map(str, libraries)), CUDASIM_UNKNOWN_KERNELS="skip",
               CUDASIM_NVJITLINK=str(toolkit / "lib64/libnvJitLink.so"), PATH=f"{toolkit}/bin:{os.environ['PATH']}")
    results = {}
    while True:
        before = len(results)
        with open(folder / "log", "a+b") as log:
            start = log.seek(0, os.SEEK_END)
            child = subprocess.Popen([folder / "venv/bin/python", HERE / "events.py", events, *suite["tests"]],
                                     cwd=folder, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
            hangs = wait(child, events)
            log.seek(start)
            said = log.read().decode(errors="replace")
        for line in events.read_text().splitlines() if events.exists() else []:
            event = json.loads(line)
            results[event["test"]] = (event["outcome"], event["why"])
        open_ones = [test for test, (outcome, _) in results.items() if outcome == "begun"]
        for test in open_ones:
            panic = re.findall(r"cudasim: .*", said)
            why = "hangs" if hangs else panic[-1] if panic else f"crashed, {child.returncode}"
            results[test] = ("failed", why)
            with events.open("a") as file:
                file.write(json.dumps({"test": test, "outcome": "failed", "why": why}) + "\n")
        if not open_ones or len(results) == before:
            return results


def wait(child, events):
    """Whether it had to be killed, since nothing happened for so long."""
    size = -1
    while child.poll() is None:
        try:
            child.wait(SECONDS)
        except subprocess.TimeoutExpired:
            now = events.stat().st_size if events.exists() else 0
            if now == size:
                child.kill()
                child.wait()
                return True
            size = now
    return False


def read_known(name):
    """{test: (kind, reason)}; a line is "kind  test  reason"."""
    path = HERE / "known" / f"{name}.txt"
    rows = (line.split(None, 2) for line in path.read_text().splitlines()) if path.exists() else ()
    return {row[1]: (row[0], row[2]) for row in rows if row and row[0] != "#"}


def compare(name, results):
    known = read_known(name)
    count = dict.fromkeys(("passed", "failed", "skipped", "excluded"), 0)
    wrong = []
    for test, (outcome, why) in sorted(results.items()):
        kind, reason = known.get(test, ("", ""))
        count["excluded" if outcome == "failed" and kind == "excluded" else outcome] += 1
        if outcome == "failed" and not kind:
            wrong.append(f"  fails, and is not known: {test}  {why}")
        if outcome == "passed" and kind == "different":
            wrong.append(f"  passes, strike it off the list: {test}")
    wrong += [f"  listed, and not run: {test}" for test in known if test not in results]
    counted = count["passed"] + count["failed"]
    print(f"| {name} | {count['passed']} | {count['failed']} | {count['excluded']} | {count['skipped']} "
          f"| {100 * count['passed'] / max(1, counted):.1f} % |")
    return wrong


def main():
    simdir = pathlib.Path(sys.argv[1]).resolve()
    wrong = []
    print("| suite | passed | failed | excluded | skipped | passed of what is not excluded |\n|---|---|---|---|---|---|")
    for name in sys.argv[2:] or SUITES:
        wrong += compare(name, run_tests(prepare(name, SUITES[name]), SUITES[name], simdir))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

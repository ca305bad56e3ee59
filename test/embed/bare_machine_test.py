#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bare_machine_test.py BUILD_ROOT

test/support/bootstrap.sh, in a copy of the sources and where /usr/local/cuda is hidden. Without a package index it
says what to do and leaves nothing behind. With one it fetches a toolkit; a kernel, an example and a test program are
built with that and run on the simulation. The other kernels are those of BUILD_ROOT.

Skipped where nobody may hide a folder (unshare), where a toolkit is elsewhere, and where packages cannot be had.
"""

import os
import shutil
import subprocess
import sys

from common import ROOT, check, done, environment, hiding, scratch, skip, without_builds, without_fetched

build_root, = sys.argv[1:]
BOOTSTRAP = """
set -euo pipefail
. test/support/bootstrap.sh
apt_get() { return 1; }
"""
VISIBLE = BOOTSTRAP + """
! found=$(sh lib/toolkit/find_toolkit 13000 g++) || echo "a toolkit outside of /usr/local/cuda: ${found%%$'\n'*}"
needs | missing_packages
"""
BUILD = BOOTSTRAP + """
bootstrap
build_in build examples/my_kernel.cubin -- -Dtests=enabled -Dexamples=enabled -Dkernels=enabled -Dbenchmarks=disabled \\
  -Doptimization=0 -Dcompiled_kernels="$1"
meson test -C build run_kernel_from_a_file stack_incident
"""


hidden = hiding()
with scratch() as tmp:
    copy = tmp / "cuguest"
    shutil.copytree(ROOT, copy, symlinks=True,
                    ignore=lambda folder, names: [*without_builds(folder, names), *({".git"} & set(names))])
    path = without_fetched(os.environ["PATH"])

    def bash(script, *arguments, env):
        return subprocess.run([*hidden, "bash", "-c", script, "bash", *arguments], cwd=copy, env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    seen = bash(VISIBLE, env=environment(PATH=path)).stdout
    if seen:
        skip(f"the machine has, or lacks: {', '.join(seen.splitlines())}")

    offline = {name: value for name, value in environment(PATH=path).items() if not name.startswith("PIP_")}
    offline.update(PIP_CONFIG_FILE=os.devnull, PIP_INDEX_URL="https://127.0.0.1:9/simple")
    said = bash(BUILD, build_root, env=offline)
    check("without a package index the bootstrap ends", said.returncode == 1, said.stdout)
    check("one sentence says what to do",
          said.stdout.count("the CUDA Toolkit was not found, and pip could not fetch it") == 1
          and said.stdout.rstrip().endswith("or run this again where the Python package index can be reached"),
          said.stdout)
    left = [str(name) for name in copy.iterdir() if name.name.startswith("build")]
    check("nothing is left behind", not left, left)

    # What a run left that was ended while it fetched.
    half = copy / "build-tools" / "cuda-13.0.new" / "nvidia" / "cu13" / "bin"
    half.mkdir(parents=True)
    (half / "nvcc").write_text("half of a file")
    said = bash(BUILD, build_root, env=environment(PATH=path))
    if "pip could not fetch it" in said.stdout:
        print(said.stdout)
        done(skipped=1)
    check("a kernel, an example and a test are built and pass", said.returncode == 0
          and [line.split() for line in said.stdout.splitlines() if line.startswith("Ok:")] == [["Ok:", "2"]], said.stdout)
    nvcc = copy / "build-tools" / "cuda-13.0" / "nvidia" / "cu13" / "bin" / "nvcc"
    check("nvcc is the one that was fetched", f"{nvcc} -cubin" in (copy / "build" / "build.ninja").read_text())
    left = sorted(os.listdir(copy / "build-tools"))
    check("no half of a toolkit is there", left == ["cuda-13.0"], left)
    left_out = (copy / "build" / "examples" / "left_out.txt").read_text()
    check("an example that needs a large library is skipped by name",
          "cublas_in_a_capture: without cublas\n" in left_out, left_out)
    done()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""meson_versions_test.py TOOLKIT_INCLUDE VERSION...

Configures cuguest with each of these versions of Meson (`newest`: of the package index), from a virtual environment of
its own: by itself, with all features and with those alone that cannot be left out, and as a subproject; and in each way
the toolkit is found (toolkit_ways.py). A version that cannot be had is skipped.
"""

import subprocess
import sys

from common import ROOT, check, done, environment, run, scratch, toolkit_options
from toolkit_ways import Ways, check_meson

toolkit, *versions = sys.argv[1:]
OPTIONS = {
    "all features": [f"-D{feature}=enabled" for feature in (
        "abseil", "tests", "examples", "kernels", "benchmarks", "audit", "install")],
    "no feature": ["-Dauto_features=disabled", "-Dinstall=enabled"],
}


def install(version, where):
    """The Meson in a new virtual environment, or None."""
    package = "meson" if version == "newest" else f"meson=={version}"
    for command in ([sys.executable, "-m", "venv", where], [where / "bin" / "pip", "install", "--quiet", package]):
        if subprocess.run(command, env=environment(), check=False).returncode:
            return None
    return where / "bin" / "meson"


skipped = 0
with scratch() as tmp:
    ways = Ways(tmp, toolkit)
    for version in versions:
        meson = install(version, tmp / f"meson-{version}")
        if meson is None:
            print(f"skipped: Meson {version}: cannot be had")
            skipped += 1
            continue
        number = run(meson, "--version").strip()
        for what, options in OPTIONS.items():
            run(meson, "setup", tmp / f"{version}, {what}", ROOT, *options, *toolkit_options(toolkit, "toolkit_include"))
            check(f"Meson {number} configures cuguest with {what}", True)
        check_meson(ways, [meson], number)
done(skipped)

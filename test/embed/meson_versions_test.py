#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""meson_versions_test.py TOOLKIT_INCLUDE VERSION...

Configures cuguest with each of these versions of Meson (`newest`: of the package index), from a virtual environment of
its own: by itself, with all features and with those alone that cannot be left out, and as a subproject. A version that
cannot be had is skipped.
"""

import shutil
import subprocess
import sys

from common import HERE, ROOT, check, done, environment, run, scratch, toolkit_options

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
    shutil.copytree(HERE / "parent", tmp / "parent")
    (tmp / "parent" / "subprojects").mkdir()
    (tmp / "parent" / "subprojects" / "cuguest").symlink_to(ROOT)
    for version in versions:
        meson = install(version, tmp / f"meson-{version}")
        if meson is None:
            print(f"skipped: Meson {version}: cannot be had")
            skipped += 1
            continue
        number = run(meson, "--version").strip()
        for what, options in OPTIONS.items():
            run(meson, "setup", tmp / f"{version}, {what}", ROOT, *options)
            check(f"Meson {number} configures cuguest with {what}", True)
        run(meson, "setup", tmp / f"{version}-parent", tmp / "parent", "--force-fallback-for=cuguest",
            *toolkit_options(toolkit, "cuguest:toolkit_include"))
        check(f"Meson {number} configures a parent of cuguest", True)
done(skipped)

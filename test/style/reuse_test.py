#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""reuse_test.py SOURCE_ROOT

`reuse lint` finds a licence and a copyright for every file, those of the subprojects, too. Of reuse's releases those
that know REUSE.toml: 4.0 and newer, also in the folder CUGUEST_TEST_PACKAGES.
"""

import os
import re
import subprocess
import sys

from tool import skip

places = [os.environ.get("CUGUEST_TEST_PACKAGES"), os.environ.get("PYTHONPATH")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, places))


def reuse(*arguments):
    return subprocess.run([sys.executable, "-m", "reuse", *arguments], cwd=sys.argv[1], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


version = re.search(r"version (\d+)", reuse("--version").stdout)
if not version or int(version[1]) < 4:
    skip("no package reuse of pip, 4.0 or newer")
linted = reuse("--include-meson-subprojects", "lint")
files = re.search(r"Files with license information: (\d+) / (\d+)", linted.stdout)
print(linted.stdout)
failed = linted.returncode or not files or int(files[2]) < 1000
print(f"cases: {0 if failed else files[2]} passed, {1 if failed else 0} failed, 0 skipped")
sys.exit(1 if failed else 0)

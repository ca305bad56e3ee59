# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The version of LLVM's tools that decides: what they say differs from one to the next."""

import re
import shutil
import subprocess
import sys

VERSION = "14"


def skip(why):
    print(f"skipped: {why}\ncases: 0 passed, 0 failed, 1 skipped")
    sys.exit(77)


def find(name):
    """Its path; skips the test where there is no such tool of this version."""
    for candidate in (f"{name}-{VERSION}", name):
        path = shutil.which(candidate)
        if path and re.search(rf"version {VERSION}\.", subprocess.check_output([path, "--version"], text=True)):
            return path
    skip(f"no {name} {VERSION}")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""toolkit_ways_test.py COMPILER TOOLKIT_INCLUDE MESON...

Each way of building cuguest finds the toolkit; so with the system's Meson and CMake, and meson_versions_test.py has other
Mesons.
"""

import shutil
import sys

from common import done, run, scratch
from toolkit_ways import Ways, check_cmake, check_meson

compiler, toolkit, *meson = sys.argv[1:]
with scratch() as tmp:
    ways = Ways(tmp, toolkit)
    check_meson(ways, meson, run(*meson, "--version").strip())
    if cmake := shutil.which("cmake"):
        check_cmake(ways, cmake, compiler)
done()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""readme_test.py COMPILER TOOLKIT_INCLUDE MESON...

The program and the meson.build of README.md, pasted into a project that has this repository in its subprojects, built
from nothing with options of the project's own, and run.
"""

import re
import sys

from common import ROOT, check, done, meson_environment, run, scratch, toolkit_options

compiler, toolkit, *meson = sys.argv[1:]
readme = (ROOT / "README.md").read_text()
promised = re.search(r"meson test -C build -v\n(.*?)^```", readme, re.M | re.S)[1].splitlines()

with scratch() as project:
    for file, language, comment in (("hello.cc", "cpp", "//"), ("meson.build", "meson", "#")):
        text = re.search(rf"^```{language}\n({comment} {re.escape(file)}\n.*?)^```", readme, re.M | re.S)[1]
        (project / file).write_text(text)
    (project / "subprojects").mkdir()
    (project / "subprojects" / "cuguest").symlink_to(ROOT)
    env = meson_environment(compiler)
    options = ["-Ddefault_library=both", "-Dunity=on", "-Db_lto=true"]
    run(*meson, "setup", "build", *options, *toolkit_options(toolkit, "cuguest:toolkit_include"), env=env, cwd=project)
    printed = run(*meson, "test", "-C", "build", "-v", "--num-processes=1", env=env, cwd=project).splitlines()
    check(f"runs with {' '.join(options)}", promised and all(line in printed for line in promised), "\n".join(printed))
    done()

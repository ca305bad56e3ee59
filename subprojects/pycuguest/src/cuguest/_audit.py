# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command cuguest-audit, which is in the wheel."""

from __future__ import annotations

import importlib.metadata
import os
import pathlib
import subprocess
import sys

COMMAND = pathlib.Path(__file__).with_name("_auditor") / "command" / "cuguest-audit"


def main() -> None:
    """Becomes the command. Its version is of its own project, and is told with the package's."""
    if sys.argv[1:] == ["--version"]:
        own = subprocess.run([COMMAND, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        print(f"{own} (of cuguest {importlib.metadata.version('cuguest')})")
        return
    os.execv(COMMAND, ["cuguest-audit", *sys.argv[1:]])

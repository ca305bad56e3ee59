# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command cuguest-audit, which is in the wheel."""

from __future__ import annotations

import os
import pathlib
import sys

COMMAND = pathlib.Path(__file__).with_name("_auditor") / "command" / "cuguest-audit"


def main() -> None:
    """Becomes the command."""
    os.execv(COMMAND, ["cuguest-audit", *sys.argv[1:]])

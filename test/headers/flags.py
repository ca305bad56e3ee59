# SPDX-License-Identifier: Apache-2.0
"""Where the build found CUDA and Abseil; they are not ours to be strict with."""

import json
import shlex


def system_includes(build):
    commands = json.loads((build / "compile_commands.json").read_text())
    command = next(c["command"] for c in commands if c["file"].endswith("lib/core/error.cc"))
    return [word for word in shlex.split(command) if word.startswith("-isystem")]

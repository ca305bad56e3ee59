# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests of the command share: their arguments, COMMAND HOST HOSTILE PLUGIN NVML SIMDIR SOURCE_ROOT, and runs of
cuguest-audit on the simulation."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from checks import skip

command, host, hostile, plugin, nvml, simdir, root = map(os.path.abspath, sys.argv[1:])
root = pathlib.Path(root)
fixtures = root / "test" / "fixtures"
report_schema = json.loads((root / "audit" / "command" / "report.schema.json").read_text())
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("CUDASIM_", "CUGUEST_"))}
folder = tempfile.TemporaryDirectory()
temporary = pathlib.Path(folder.name) / "tmp"
temporary.mkdir()
ENVIRONMENT.update(LD_LIBRARY_PATH=simdir, HOST_PLUGIN=plugin, TMPDIR=str(temporary))
NOTHING = "no process initialised CUDA"
# Words of the program, each a fault, and the function that has it; and of those after work on device 1.
FAULTS = {
    "leaked-push": "hostile::LeakPush",
    "extra-pop": "hostile::PopTooOften",
    "replaced-context": "hostile::ReplaceContext",
    "left-context": "hostile::LeaveContext",
    "created-primary": "hostile::CreatePrimary",
    "query-created-primary": "hostile::QueryCreatesPrimary",
    "reset-primary": "hostile::ResetPrimary",
    "over-released-primary": "hostile::ReleaseTooOften",
    "destroyed-context": "hostile::DestroyContext",
    "destroyed-work": "hostile::LendContext",
    "destroyed-in-use": "hostile::DestroyContextInUse",
    "changed-setting": "hostile::ChangeLimit",
    "left-error": "hostile::LeaveError",
    "broke-capture": "hostile::BreakCapture",
    "forked-child": "hostile::WorkInForkedChild",
    "used-destroyed-context": "hostile::UseDestroyedContext",
    "after-shutdown": "hostile::Memory::~Memory",
}
# Where nobody has used device 0, as `well` does.
ON_DEVICE_ONE = {"touched-device-zero": "hostile::VisitDeviceZero"}


class Run:
    """Of the command with --json and the program `words`."""

    def __init__(self, *words, json_file=True, cwd=None, preexec=None, **environment):
        self.words = words
        self.file = pathlib.Path(folder.name) / "report.json"
        self.file.unlink(missing_ok=True)
        options = [f"--json={self.file}"] if json_file else []
        done = subprocess.run([command, *options, *words], env={**ENVIRONMENT, **environment}, capture_output=True,
                              text=True, errors="surrogateescape", stdin=subprocess.DEVNULL, timeout=60, cwd=cwd, preexec_fn=preexec)
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.report = json.loads(self.file.read_text()) if self.file.exists() and self.file.stat().st_size else None
        self.findings = self.report["findings"] if self.report else []

    def kinds(self):
        return [finding["kind"] for finding in self.findings]

    def __str__(self):
        return f"cuguest-audit {' '.join(map(str, self.words))}\n  exit status {self.code}\n  {self.out}\n{self.err}"


def line_of(source, kind):
    """The first line with the comment of that fault."""
    for number, line in enumerate((fixtures / source).read_text().splitlines(), 1):
        if line.endswith(f"// {kind}"):
            return number
    raise KeyError(kind)


def found(run, kind):
    return next((finding for finding in run.findings if finding["kind"] == kind), None)


knows_lines = "built without elfutils" not in Run("--", host, "leaked-push").err
if not knows_lines:
    skip("the lines of code", "built without elfutils (libdw-dev)")


def is_at(place, source, kind):
    """Whether a frame names that line, or none where the command knows none."""
    if not knows_lines:
        return "line" not in place
    return pathlib.Path(place.get("file", source)).name == source and place.get("line") == line_of(source, kind)

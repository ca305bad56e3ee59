# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What of the calling thread and the process a guest must leave as it was."""

import contextlib
import ctypes
import os
import pathlib
import re
import threading

import driver

# 0, and the special streams 1 and 2, name no object that can be asked.
FIRST_OBJECT = 3


class Disturbed(AssertionError):
    """`what`: the names of what has changed."""

    def __init__(self, before, after):
        self.what = {name for name in before if before[name] != after[name]}
        super().__init__("; ".join(f"{name}: {before[name]} became {after[name]}" for name in sorted(self.what)))


def loaded_runtimes():
    """Every CUDA runtime that is a shared library of its own in the process, by its path."""
    maps = pathlib.Path("/proc/self/maps").read_text()
    paths = sorted(set(re.findall(r"(/\S+/libcudart\.so\S*)", maps)))
    return {path: ctypes.CDLL(path, mode=os.RTLD_NOLOAD) for path in paths}


class Watch:
    def __init__(self):
        self._devices = range(driver.device_count())
        self._lock = threading.Lock()
        self.times = 0

    def _look(self, stream):
        return {
            "current": driver.current(),
            "stack": [(context, driver.context_id(context)) for context in driver.stack()],
            "primaries": [driver.primary_state(device) for device in self._devices],
            "capture": driver.capture_status(stream) if stream >= FIRST_OBJECT else None,
            "capture mode": driver.capture_mode(),
            "last errors": {path: runtime.cudaPeekAtLastError() for path, runtime in loaded_runtimes().items()},
        }

    @contextlib.contextmanager
    def undisturbed(self, stream=0):
        """Raises Disturbed unless the block leaves everything as it was."""
        before = self._look(stream)
        try:
            yield
        finally:
            after = self._look(stream)
            with self._lock:
                self.times += 1
            if after != before:
                raise Disturbed(before, after)

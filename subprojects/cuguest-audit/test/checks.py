# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The checks of a test, and their count."""

import sys

passed = failed = skipped = 0


def check(what, holds, run=""):
    """Prints `run` if it does not hold."""
    global passed, failed
    print("ok:" if holds else "NOT OK:", what)
    if holds:
        passed += 1
    else:
        failed += 1
        print(run)


def skip(what, why):
    global skipped
    skipped += 1
    print(f"skipped: {what}: {why}")


def done():
    print(f"cases: {passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 77 if skipped and not passed else 0)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the common cases ask of a host."""

import unittest


class Missing(unittest.SkipTest):
    """Why this machine has no such host."""


class Host:
    """A framework in whose process a guest works. Its arrays are of floats, on device 0."""

    name = ""
    # Whether its own work may be done while a context is current that it does not know, and that
    # ends before it does.
    works_in_any_context = False

    def versions(self):
        raise NotImplementedError

    def array(self, count, value):
        """A new one, ready for use on any stream."""
        raise NotImplementedError

    def values(self, array):
        """What is there once everything that was submitted is done."""
        raise NotImplementedError

    def stream(self):
        """A new one of the host's, other than its default one."""
        raise NotImplementedError

    def handle(self, stream):
        """The driver's handle of a stream of the host's, as an int."""
        raise NotImplementedError

    def work(self, stream):
        """Work of the host's own on its stream, of several kinds. The same numbers every time."""
        raise NotImplementedError

    def refill(self, array, value, stream):
        """Gives an array another value, in the stream's order; may be captured."""
        raise NotImplementedError

    def capture(self, stream, body):
        """A captured graph of what body() does on the stream, with replay() and close()."""
        raise NotImplementedError

    def close(self):
        """Nothing of the host is used any more."""

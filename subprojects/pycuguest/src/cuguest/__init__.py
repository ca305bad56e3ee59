# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Guards for CUDA contexts, for libraries that use CUDA in somebody else's process.

    with cuguest.guard(stream):      # or a context, a tensor, an array
        work()                       # with the stream's context current
    # the caller's context stack is as it was, whatever work() did
"""

from ._core import Acquired, ContextRef, SharedContext, current, guard, home, host_scope, is_initialized
from ._python import (CuguestWarning, Error, Incident, Memory, Primary, acquire, free_memory, on_incident, release_kept,
                      retain_primary, shared)

__all__ = ["Acquired", "ContextRef", "CuguestWarning", "Error", "Incident", "Memory", "Primary", "SharedContext",
           "acquire", "current", "free_memory", "guard", "home", "host_scope", "is_initialized",
           "on_incident", "release_kept", "retain_primary", "shared"]

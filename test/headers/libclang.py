# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libclang and its index, for a test that ends here, skipped, where they or their bindings for Python are missing."""

import sys

__all__ = ["Kind", "cindex", "index"]

try:
    from clang import cindex
    from clang.cindex import CursorKind as Kind
    index = cindex.Index.create()
except (ImportError, OSError) as error:
    print(f"skipped: no libclang ({error}): python3-clang\ncases: 0 passed, 0 failed, 1 skipped")
    sys.exit(77)

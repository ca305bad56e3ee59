#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""declarations_test.py SOURCE_ROOT BUILD_ROOT

Each declaration of lib/no_toolkit/cuda.h is the toolkit's: of a type its tag, kind, size and members; of an enumerator
its value; of a function type what it takes; of a macro its tokens. What is only declared may be defined in the toolkit.

Without libclang and its bindings for Python it is skipped.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "headers"))
from flags import system_includes  # noqa: E402
from libclang import Kind, cindex, index  # noqa: E402

root, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
OURS = root / "lib/no_toolkit/cuda.h"
NOT_THEIRS = {"CUDA_VERSION"}  # of the toolkit in hand
RECORDS = (Kind.STRUCT_DECL, Kind.UNION_DECL)
TYPES = (*RECORDS, Kind.ENUM_DECL)


def parsed(*flags):
    """What <cuda.h> declares, by name."""
    unit = index.parse("all.cc", ["-std=c++17", *flags, *system_includes(build)], [("all.cc", "#include <cuda.h>\n")],
                       cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
    errors = [str(d) for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
    if errors:
        sys.exit("\n".join(errors))
    found = {}
    for child in unit.cursor.walk_preorder():
        if child.spelling and child.kind in (*TYPES, Kind.ENUM_CONSTANT_DECL, Kind.TYPEDEF_DECL, Kind.MACRO_DEFINITION):
            if not (child.spelling in found and child.kind in TYPES and not child.is_definition()):
                found[child.spelling] = child
    return found


def is_ours(cursor):
    return cursor.location.file is not None and pathlib.Path(cursor.location.file.name).resolve() == OURS


def members(record):
    """Each member's name, offset, and kind and size of its type, with the members that it has itself."""
    types = [(field, field.type.get_canonical()) for field in record.get_fields()]
    return [(field.spelling, field.get_field_offsetof(), kind.kind.name, kind.get_size(), members(kind)) for field, kind in types]


def facts(cursor):
    """What must be equal."""
    if cursor.kind == Kind.MACRO_DEFINITION:
        return [token.spelling for token in cursor.get_tokens()]
    if cursor.kind == Kind.ENUM_CONSTANT_DECL:
        return cursor.enum_value
    if cursor.kind == Kind.ENUM_DECL:
        return cursor.type.get_size(), cursor.enum_type.get_canonical().spelling
    if cursor.kind in RECORDS:
        return (cursor.kind.name, cursor.type.get_size(), members(cursor.type))
    return cursor.underlying_typedef_type.get_canonical().spelling


ours, theirs = parsed(f"-I{OURS.parent}"), parsed()
if not is_ours(ours["CUresult"]) or is_ours(theirs["CUresult"]):
    sys.exit("there are no two headers to compare")
mine = {name: cursor for name, cursor in ours.items()
        if is_ours(cursor) and name not in NOT_THEIRS and not name.startswith("CUGUEST_")}

passed, failed = 0, 0
for name, cursor in sorted(mine.items()):
    other = theirs.get(name)
    if other is None:
        problem = "the toolkit has no such name"
    elif cursor.kind in RECORDS and not cursor.is_definition():
        problem = "" if cursor.kind == other.kind else f"{cursor.kind.name}, the toolkit's {other.kind.name}"
    else:
        here, there = facts(cursor), facts(other)
        problem = "" if here == there else f"{here}, the toolkit's {there}"
    passed, failed = passed + (not problem), failed + bool(problem)
    if problem:
        print(f"{name}: {problem}")
print(f"cases: {passed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed or passed < 100 else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""abi_test.py SOURCE_ROOT BUILD_ROOT LIBRARY [--fix]

What programs that were compiled with the headers depend on is what abi.txt says:

- the functions and objects that LIBRARY, the shared libcuguest, exports;
- the size of each class and the offset of each member, and the values of each enumeration, of the
  headers whose types the library and a program share (libclang reads them; "skipped" where Python has
  no bindings for it, and on machines other than those that abi.txt is of).

Within a minor version abi.txt does not change. In the first change after a release that it does, raise
the minor version; then, and whenever the interface of a version that is not released yet changes, write it
anew with --fix. The name of the inline namespace is left out, so that a difference is a change.
"""

import difflib
import pathlib
import platform
import re
import subprocess
import sys

from flags import system_includes

try:
    from clang import cindex
    from clang.cindex import CursorKind as Kind
    index = cindex.Index.create()
except (ImportError, OSError) as error:  # LibclangError, before the library is loaded
    cindex, why = None, f"no libclang ({error}): python3-clang"

root, build, library = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
fix = "--fix" in sys.argv
INCLUDE = root / "include"
LIST = root / "test" / "headers" / "abi.txt"
MACHINE = "x86_64"
# Headers only: the library knows none of their types.
APART = ("cuguest/runtime/", "cuguest/libraries/", "cuguest/testing/")
if cindex and platform.machine() != MACHINE:
    cindex, why = None, f"abi.txt is of {MACHINE}"


def bare(name):
    """Without inline namespaces, ours and Abseil's."""
    return re.sub(r"\b(cuguest::v\d|absl::(?:debian|lts_))\w*::", lambda found: found[1].split(":")[0] + "::", name)


def symbols():
    """Strong ones: the compiler emits weak ones where it likes."""
    lines = subprocess.run(["nm", "-DC", "--defined-only", "--without-symbol-versions", library], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    rows = (line.split(" ", 2) for line in lines)
    return sorted({f"symbol {bare(name)}" for _, kind, name in rows if kind in "TDBRG"})


def qualified(cursor):
    parent = cursor.semantic_parent
    if parent is None or parent.kind == Kind.TRANSLATION_UNIT:
        return cursor.spelling
    return f"{qualified(parent)}::{cursor.spelling}"


def of_class(cursor):
    fields = [child for child in cursor.get_children() if child.kind == Kind.FIELD_DECL]
    bases = [bare(child.type.get_canonical().spelling) for child in cursor.get_children()
             if child.kind == Kind.CXX_BASE_SPECIFIER]
    members = [f"{field.spelling} {field.get_field_offsetof() // 8}" for field in fields]
    return (f"{bare(qualified(cursor))}" + "".join(f" : {base}" for base in bases)
            + f", {cursor.type.get_size()} bytes, aligned to {cursor.type.get_align()}: {', '.join(members)}").rstrip(": ")


def of_enumeration(cursor):
    values = [f"{child.spelling} {child.enum_value}" for child in cursor.get_children()
              if child.kind == Kind.ENUM_CONSTANT_DECL]
    return f"{bare(qualified(cursor))}, {cursor.enum_type.spelling}: {', '.join(values)}"


def types(cursor):
    for child in cursor.get_children():
        file = child.location.file
        if cursor.kind == Kind.TRANSLATION_UNIT and (
                file is None or not pathlib.Path(file.name).is_relative_to(INCLUDE)):
            continue
        if child.kind in (Kind.NAMESPACE, Kind.CLASS_DECL, Kind.STRUCT_DECL):
            if child.kind != Kind.NAMESPACE and child.is_definition() and child.type.get_size() >= 0:
                yield f"type {of_class(child)}"
            yield from types(child)
        elif child.kind == Kind.ENUM_DECL and child.is_definition():
            yield f"type {of_enumeration(child)}"


def layouts():
    headers = [name for name in sorted(str(header.relative_to(INCLUDE)) for header in INCLUDE.rglob("*.h"))
               if not name.startswith(APART) or "/internal/" in name]
    unit = index.parse("headers.cc", args=["-std=c++17", f"-I{INCLUDE}", *system_includes(build)],
                       unsaved_files=[("headers.cc", "".join(f'#include "{name}"\n' for name in headers))])
    errors = [str(d) for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
    if errors:
        sys.exit("\n".join(errors))
    return sorted(set(types(unit.cursor)))


found = {"symbol": symbols(), "type": layouts() if cindex else None}
if fix:
    if not cindex:
        sys.exit(why)
    LIST.write_text("# The ABI of libcuguest.so: see abi_test.py, which writes it.\n"
                    + "".join(f"{line}\n" for lines in found.values() for line in lines))
listed = [line for line in LIST.read_text().splitlines() if not line.startswith("#")]
passed = failed = skipped = 0
for part, lines in found.items():
    if lines is None:
        print(f"skipped: {part}: {why}")
        skipped += 1
        continue
    expected = [line for line in listed if line.startswith(f"{part} ")]
    changes = [line for line in difflib.unified_diff(expected, lines, lineterm="", n=0) if line[0] in "+-"][2:]
    for line in changes:
        print("not ok:", "gone or changed:" if line[0] == "-" else "new or changed:", line[1:])
    if changes:
        print(f"not ok: {part}: the ABI is another one. Read docs/abi.md; if the version may change it: {' '.join(sys.argv)} --fix")
    passed, failed = passed + (not changes and bool(lines)), failed + (bool(changes) or not lines)
    print(f"{part}: {len(lines)}")
print(f"cases: {passed} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed else 0)

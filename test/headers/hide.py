#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""hide.py SOURCE_ROOT BUILD_ROOT [--fix]

Finds each inline function and static data member of the headers that is declared without
CUGUEST_HIDE, or CUGUEST_HIDE_TEMPLATE where that is needed (export.h, Note [What two embedders
share]), outside namespace runtime, which is hidden as a whole; with --fix, inserts it, and the
headers are then to be formatted with clang-format. Reads the headers with libclang: "skipped" where
Python has no bindings for it. hidden_test.py asks the compilers the same.
"""

import pathlib
import re
import sys

from flags import headers_that_can_be_included, system_includes

try:
    from clang import cindex
    from clang.cindex import CursorKind as Kind
    index = cindex.Index.create()
except (ImportError, OSError) as error:  # LibclangError, before the library is loaded
    print(f"skipped: hide: no libclang ({error}): python3-clang")
    print("cases: 0 passed, 0 failed, 1 skipped")
    sys.exit(77)

root, build, fix = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]), "--fix" in sys.argv
INCLUDE = root / "include"
MACRO = "CUGUEST_HIDE"
SCOPES = {Kind.NAMESPACE, Kind.CLASS_DECL, Kind.STRUCT_DECL, Kind.CLASS_TEMPLATE, Kind.FRIEND_DECL,
          Kind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION, Kind.LINKAGE_SPEC, Kind.UNEXPOSED_DECL}
TEMPLATES = {Kind.CLASS_TEMPLATE, Kind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION}
FUNCTIONS = {Kind.FUNCTION_DECL, Kind.CXX_METHOD, Kind.CONSTRUCTOR, Kind.DESTRUCTOR,
             Kind.CONVERSION_FUNCTION, Kind.FUNCTION_TEMPLATE}
texts = {}


def text_of(cursor):
    """As bytes, for the offsets of libclang are of bytes."""
    return texts.setdefault(cursor.extent.start.file.name, pathlib.Path(cursor.extent.start.file.name).read_bytes())


def is_ours(cursor):
    file = cursor.extent.start.file
    return file is not None and pathlib.Path(file.name).is_relative_to(INCLUDE)


def is_deleted(cursor):
    text = text_of(cursor)
    return re.match(rb"\s*=\s*delete\b", text[cursor.extent.end.offset:]) or re.search(
        rb"=\s*delete\s*$", text[cursor.extent.start.offset:cursor.extent.end.offset])


def is_emitted(cursor):
    """Whether a file that includes the header may contain it."""
    if cursor.kind in FUNCTIONS:
        return (cursor.is_definition() or cursor.is_default_method()) and not is_deleted(cursor)
    if cursor.kind == Kind.VAR_DECL and cursor.linkage == cindex.LinkageKind.EXTERNAL:
        return cursor.is_definition()
    return False


def walk(cursor, friend=None):
    """The declarations that are emitted, each as (first declaration, where it begins)."""
    for child in cursor.get_children():
        if cursor.kind == Kind.TRANSLATION_UNIT and not is_ours(child):
            continue
        if child.kind == Kind.NAMESPACE and child.spelling == "runtime":
            continue
        if child.kind in SCOPES:
            yield from walk(child, child if child.kind == Kind.FRIEND_DECL else None)
        elif (child.kind in FUNCTIONS or child.kind == Kind.VAR_DECL) and is_emitted(child):
            first = child.canonical
            yield first, (friend if friend is not None and first == child else first)


def template_header_end(text, at):
    """After `template <...>` and the blanks behind it, if there is one."""
    match = re.compile(rb"template\s*<").match(text, at)
    if not match:
        return at
    at, angles, parens = match.end(), 1, 0
    while angles:
        parens += (text[at] == ord("(")) - (text[at] == ord(")"))
        if not parens:
            angles += (text[at] == ord("<")) - (text[at] == ord(">"))
        at += 1
    return template_header_end(text, re.compile(rb"\s*").match(text, at).end())


def places(first, begin):
    """Of each macro that belongs to it: whether it is there, at which offset, and its text."""
    text = text_of(begin)
    start, name = begin.extent.start.offset, first.location.offset
    before = re.search(rb"(?:\[\[[^\]]*\]\]|\bCUGUEST_\w+|\s)*$", text[:start]).group()
    at = template_header_end(text, start)
    at = re.compile(rb"(?:\[\[[^\]]*\]\]\s*)*").match(text, at).end()
    yield MACRO.encode() in re.findall(rb"\w+", before + text[start:name]), at, MACRO.encode() + b" "
    if first.kind == Kind.FUNCTION_TEMPLATE and first.semantic_parent.kind in TEMPLATES:
        last = text.rindex(b">", 0, at)  # of the template parameters
        before = text[start:last]
        yield b"CUGUEST_HIDE_TEMPLATE" in before, last, b", CUGUEST_HIDE_TEMPLATE"


unit = index.parse(
    "headers.cc", args=["-std=c++17", "-DCUGUEST_STATIC", f"-I{INCLUDE}", *system_includes(build)],
    unsaved_files=[("headers.cc", "".join(
        f'#include "{header.relative_to(INCLUDE)}"\n'
        for header in headers_that_can_be_included(sorted(INCLUDE.rglob("*.h")), build, "clang++")))])
errors = [d for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
for error in errors:
    print("not ok:", error)

bare = {}
seen = set()
for first, begin in walk(unit.cursor):
    for hidden, at, macro in places(first, begin):
        where = begin.extent.start.file.name, at
        seen.add(where)
        if not hidden:
            bare[where] = macro, f"{first.location.file}:{first.location.line}: {first.spelling}"
for macro, what in bare.values():
    print("inserted" if fix else "not ok: without", macro.decode().strip(" ,"), "at", what)
if fix:
    for name in {name for name, _ in bare}:
        text = texts[name]
        for at in sorted((at for file, at in bare if file == name), reverse=True):
            text = text[:at] + bare[name, at][0] + text[at:]
        pathlib.Path(name).write_bytes(text)
failed = len(errors) + (0 if fix else len(bare))
print(f"cases: {len(seen) - len(bare)} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed or not seen else 0)

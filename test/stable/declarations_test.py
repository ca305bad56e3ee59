#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""declarations_test.py SOURCE_ROOT BUILD_ROOT [--fix]

The names of the core's headers, which are those of the two files, and of the C interface: what a release declared is
declared still. A row is a function with its types, a class, an enumerator with its value, a field of a struct with its
place, a macro. Behind it is what a use may also depend on: default arguments, noexcept, that a constructor is implicit
or a result may be discarded. What is in a namespace `internal` has no row. --fix writes the rows of this version.

Without libclang and its bindings for Python it is skipped.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "headers"))
from flags import system_includes  # noqa: E402
from kept import check_rows, done  # noqa: E402
from libclang import Kind, cindex, index  # noqa: E402

root, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
INCLUDE = root / "include"
CLASSES = (Kind.CLASS_DECL, Kind.STRUCT_DECL, Kind.UNION_DECL, Kind.CLASS_TEMPLATE)
FUNCTIONS = (Kind.FUNCTION_DECL, Kind.FUNCTION_TEMPLATE, Kind.CXX_METHOD, Kind.CONSTRUCTOR, Kind.DESTRUCTOR, Kind.CONVERSION_FUNCTION)
ALIASES = (Kind.TYPEDEF_DECL, Kind.TYPE_ALIAS_DECL)
CAN_BE_IMPLICIT = (Kind.CONSTRUCTOR, Kind.CONVERSION_FUNCTION)
# No initializer names its fields by their places: each new entry of the driver moves some.
WITHOUT_PLACES = "cuguest::DriverTable"
PARAMETERS = (Kind.TEMPLATE_TYPE_PARAMETER, Kind.TEMPLATE_NON_TYPE_PARAMETER, Kind.TEMPLATE_TEMPLATE_PARAMETER)


def bare(name):
    """Without the inline namespace, and without the name that only newer libclangs have for a parameter that is a template."""
    return re.sub(r"\bcuguest::v\d+_\d+\w*::", "cuguest::", re.sub(r"template-parameter-\d-\d(?=<)", "", name))


def kind_of(kind):
    return bare(kind.get_canonical().spelling)


def words(cursor):
    return [token.spelling for token in cursor.get_tokens()]


def default(cursor):
    """The expression, or nothing."""
    found = words(cursor)
    return " ".join(found[found.index("=") + 1:]) if "=" in found else ""


def template(cursor):
    """Of a default argument, which mostly says where the template takes part, only that there is one."""
    parameters = [child for child in cursor.get_children() if child.kind in PARAMETERS]
    found = [(kind_of(child.type) if child.kind == Kind.TEMPLATE_NON_TYPE_PARAMETER else "class") + (" = ..." if default(child) else "")
             for child in parameters]
    return f"template <{', '.join(found)}> " if found else ""


def is_deprecated(cursor):
    return "[[deprecated]] " if cursor.availability == cindex.AvailabilityKind.DEPRECATED else ""


def is_deleted(cursor):
    """Of a template libclang does not say it."""
    behind = pathlib.Path(cursor.location.file.name).read_text()[cursor.extent.end.offset:]
    return cursor.availability == cindex.AvailabilityKind.NOT_AVAILABLE or re.match(r"\s*= delete", behind)


def may_be_discarded(cursor):
    return all(child.kind != Kind.WARN_UNUSED_RESULT_ATTR for child in cursor.get_children())


def row(head, facts):
    return "; ".join([head, *(fact for fact in facts if fact)])


def of_function(cursor, name):
    if is_deleted(cursor):
        return
    tokens = words(cursor)
    before = tokens[:tokens.index("(")] if "(" in tokens else []  # a macro's, or implicit
    kind = kind_of(cursor.type)
    plain = re.sub(r" noexcept(\(.*\))?$", "", kind)
    parameters = [child for child in cursor.get_children() if child.kind == Kind.PARM_DECL]
    yield row(f"{is_deprecated(cursor)}{template(cursor)}{'static ' if 'static' in before else ''}{name}: {plain}", [
        "noexcept" if plain != kind else "",
        "constexpr" if "constexpr" in before else "",
        "implicit" if cursor.kind in CAN_BE_IMPLICIT and "explicit" not in before else "",
        "may be discarded" if may_be_discarded(cursor) and (cursor.kind == Kind.CONSTRUCTOR or not plain.startswith("void ")) else "",
        *(f"parameter {number} = {default(child)}" for number, child in enumerate(parameters, 1) if default(child)),
    ])


def of_class(cursor, name):
    bases = [f": {kind_of(child.type)}" for child in cursor.get_children()
             if child.kind == Kind.CXX_BASE_SPECIFIER and child.access_specifier == cindex.AccessSpecifier.PUBLIC]
    what = "union" if cursor.kind == Kind.UNION_DECL else "class"
    facts = [*bases, "may be discarded" if may_be_discarded(cursor) else ""]
    yield row(f"{is_deprecated(cursor)}{template(cursor)}{what} {name}", facts)
    fields = [child for child in cursor.get_children() if child.kind == Kind.FIELD_DECL]
    for place, field in enumerate(fields, 1):
        if is_public(field):
            yield f"field {name}::{field.spelling}: {kind_of(field.type)}" + (f", number {place}" if name != WITHOUT_PLACES else "")
    yield from declared(cursor, f"{name}::")


def of_enumeration(cursor, scope):
    name = f"{scope}{cursor.spelling}" if cursor.spelling and "(" not in cursor.spelling else ""
    if name:
        yield f"enum {'class ' if cursor.is_scoped_enum() else ''}{name}: {kind_of(cursor.enum_type)}"
    inside = f"{name}::" if cursor.is_scoped_enum() else scope
    for child in cursor.get_children():
        if child.kind == Kind.ENUM_CONSTANT_DECL:
            yield f"enumerator {inside}{child.spelling} = {child.enum_value}"


def is_public(cursor):
    return cursor.access_specifier not in (cindex.AccessSpecifier.PRIVATE, cindex.AccessSpecifier.PROTECTED)


def is_ours(cursor):
    file = cursor.location.file and pathlib.Path(cursor.location.file.name)
    return file is not None and file.is_relative_to(INCLUDE) and "internal" not in file.parts


def declared(cursor, scope=""):
    for child in cursor.get_children():
        if child.kind == Kind.FRIEND_DECL:
            yield from declared(child, scope)
            continue
        if not is_ours(child) or not is_public(child):
            continue
        name = bare(f"{scope}{child.spelling}")
        if child.kind in (Kind.NAMESPACE, Kind.LINKAGE_SPEC, Kind.UNEXPOSED_DECL):
            if child.spelling != "internal":
                is_inline = re.fullmatch(r"v\d+_\d+\w*|", child.spelling)
                yield from declared(child, scope if is_inline else f"{name}::")
        elif child.kind in FUNCTIONS:
            yield from of_function(child, name)
        elif child.kind in CLASSES:
            if child.is_definition() and cursor.kind != Kind.FRIEND_DECL:
                yield from of_class(child, name)
        elif child.kind == Kind.ENUM_DECL:
            yield from of_enumeration(child, scope)
        elif child.kind in ALIASES:
            yield f"type {name} = {kind_of(child.underlying_typedef_type)}"
        elif child.kind == Kind.TYPE_ALIAS_TEMPLATE_DECL:
            yield f"{template(child)}type {name}"
        elif child.kind == Kind.VAR_DECL:
            facts = ["constexpr" if "constexpr" in words(child) else ""]
            yield row(f"{is_deprecated(child)}constant {name}: {kind_of(child.type)}", facts)


def macros(cursor):
    for child in cursor.get_children():
        if child.kind != Kind.MACRO_DEFINITION or not is_ours(child) or re.match("CUGUEST_(INTERNAL|C)_|.*_H_$", child.spelling):
            continue
        header = pathlib.Path(child.location.file.name)
        if header.name == "export.h" or f"#undef {child.spelling}\n" in header.read_text():
            continue  # our headers' own
        first, *more = child.get_tokens()
        has_parameters = more and more[0].spelling == "(" and more[0].extent.start.offset == first.extent.end.offset
        parameters = words(child)[1:words(child).index(")") + 1] if has_parameters else []
        yield f"macro {child.spelling}{''.join(parameters)}"


def headers():
    listed = re.search(r"^core_headers = files\((.*?)^\)", (INCLUDE / "meson.build").read_text(), re.M | re.S)[1]
    yield from re.findall(r"'(\S+)'", listed)
    yield from (str(path.relative_to(INCLUDE)) for path in sorted(INCLUDE.glob("cuguest/objects/c_*.h")))


names = list(headers())
unit = index.parse("core.cc", ["-std=c++17", f"-I{INCLUDE}", *system_includes(build)],
                   [("core.cc", "".join(f'#include "{name}"\n' for name in names))],
                   cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
errors = [str(d) for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
if errors:
    sys.exit("\n".join(errors))
check_rows("declarations.txt", [*(f"header {name}" for name in names), *declared(unit.cursor), *macros(unit.cursor)])
done()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""site_test.py SOURCE_ROOT BUILD_ROOT COMPILER DOXYGEN

Makes the site and the reference: Doxygen warns of nothing, every page is there, and so is every
public name that libclang finds in the headers (where Python has bindings for it), whose comment is
one that Doxygen reads.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

root, build, compiler, doxygen = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]), *sys.argv[3:]
sys.path.insert(0, str(root / "test" / "headers"))
from flags import headers_that_can_be_included, system_includes

INCLUDE = root / "include"
failures = []


def public_names():
    """The qualified names that the headers declare for embedders."""
    from clang import cindex
    from clang.cindex import AccessSpecifier, CursorKind as Kind

    scopes = {Kind.NAMESPACE, Kind.CLASS_DECL, Kind.STRUCT_DECL, Kind.CLASS_TEMPLATE, Kind.ENUM_DECL}
    named = scopes - {Kind.NAMESPACE} | {
        Kind.FUNCTION_DECL, Kind.FUNCTION_TEMPLATE, Kind.CXX_METHOD, Kind.FIELD_DECL, Kind.ENUM_CONSTANT_DECL,
        Kind.TYPE_ALIAS_DECL, Kind.VAR_DECL}
    names, texts = set(), {}

    def walk(parent, prefix):
        for cursor in parent.get_children():
            file = cursor.extent.start.file
            if file is None or not file.name.startswith(str(INCLUDE)) or "/internal/" in file.name:
                continue
            name = cursor.spelling
            if cursor.access_specifier == AccessSpecifier.PRIVATE or name in ("internal", "impl", "") or "<" in name:
                continue
            is_inline = cursor.kind == Kind.NAMESPACE and re.fullmatch(r"v\d\w*|(legacy|per_thread)_stream", name)
            if cursor.kind in named and cursor.semantic_parent == parent:
                names.add(prefix + name)
                lines = texts.setdefault(file.name, pathlib.Path(file.name).read_text().split("\n"))
                if re.match(r" *//(?!/)", lines[cursor.extent.start.line - 2]):
                    failures.append(f"{file.name}:{cursor.extent.start.line}: the comment of {name} does not begin with ///")
            if cursor.kind in scopes:
                outer = cursor.semantic_parent  # a class whose definition this has, outside of it
                of = f"{outer.spelling}::" if outer != parent and outer.kind in named else ""
                walk(cursor, prefix if is_inline else f"{prefix}{of}{name}::")

    headers = [header for header in sorted(INCLUDE.rglob("*.h")) if "internal" not in header.parts]
    text = "".join(f'#include "{header.relative_to(INCLUDE)}"\n'
                   for header in headers_that_can_be_included(headers, build, compiler))
    unit = cindex.Index.create().parse(
        "all.cc", args=["-x", "c++", "-std=c++17", f"-I{INCLUDE}", *system_includes(build)], unsaved_files=[("all.cc", text)])
    errors = [str(message) for message in unit.diagnostics if message.severity >= 3]
    if errors:
        sys.exit("\n".join(errors))
    walk(unit.cursor, "")
    return {name for name in names if name.startswith("cuguest::")}


def documented_names(directory):
    names = set()
    for path in directory.glob("*.xml"):
        for compound in xml.etree.ElementTree.parse(path).getroot().iter("compounddef"):
            names.add(compound.findtext("compoundname"))
            for member in compound.iter("memberdef"):
                name = member.findtext("qualifiedname") or member.findtext("name")
                names.add(name)
                scope = name.rpartition("::")[0] if member.get("strong") != "yes" else name
                names.update(f"{scope}::{value.findtext('name')}" for value in member.iter("enumvalue"))
    return names


with tempfile.TemporaryDirectory(prefix="cuguest-site-") as name:
    output = pathlib.Path(name)
    text = (root / "docs" / "Doxyfile.in").read_text()
    for key, value in {"HTML": "YES", "OUTPUT": name, "SOURCE": root, "VERSION": "test", "XML": "YES"}.items():
        text = text.replace(f"@{key}@", str(value))
    (output / "Doxyfile").write_text(text)
    run = subprocess.run([doxygen, str(output / "Doxyfile")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if run.returncode:
        failures.append(f"doxygen: exit status {run.returncode}\n{run.stdout}")
    pages = sorted((root / "docs").rglob("*.md"))
    titles = {page.name: page.read_text().splitlines()[0].lstrip("# ").split(" {#")[0] for page in pages}
    made = "".join(page.read_text() for page in (output / "html").glob("*.html"))
    for page, title in titles.items():
        if f"<div class=\"title\">{title}" not in made.replace("&#39;", "'"):
            failures.append(f"docs/{page} is not in the site under its title, {title}")
    names, skipped = set(), 0
    try:
        names = public_names()
        failures.extend(f"the reference does not have {name}" for name in sorted(names - documented_names(output / "xml")))
        if len(names) < 500:
            failures.append(f"libclang finds only {len(names)} public names")
    except (ImportError, OSError) as error:
        skipped = 1
        print(f"skipped: public names: no libclang ({error}): python3-clang")

for failure in failures:
    print("not ok:", failure)
total = len(titles) + len(names) + 1
print(f"cases: {max(0, total - len(failures))} passed, {len(failures)} failed, {skipped} skipped")
sys.exit(1 if failures or len(titles) < 10 else 0)

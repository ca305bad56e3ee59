#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""names_test.py SOURCE_ROOT BUILD_ROOT [--fix]

docs/names.md lists every name that an embedder can use: those of namespaces `cuguest` and `cuguest::runtime`, and
the macros, of the public headers, with a line each from the header's own words. --fix writes it. No name stands for
two things: a type and a function of one name fail. So does a label in the middle of a line of a comment.

Without libclang and its bindings for Python it is skipped.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "headers"))
from flags import system_includes  # noqa: E402
from libclang import Kind, cindex, index  # noqa: E402

root, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
INCLUDE = root / "include"
PAGE = root / "docs" / "names.md"
KINDS = {Kind.CLASS_DECL: "type", Kind.STRUCT_DECL: "type", Kind.ENUM_DECL: "type", Kind.CLASS_TEMPLATE: "type",
         Kind.TYPEDEF_DECL: "type", Kind.TYPE_ALIAS_DECL: "type", Kind.TYPE_ALIAS_TEMPLATE_DECL: "type",
         Kind.FUNCTION_DECL: "function", Kind.FUNCTION_TEMPLATE: "function", Kind.VAR_DECL: "constant"}
HIDDEN = ("internal", "impl")
LABEL = re.compile(r"(Requires|Stack|Count|Threads|Errors|Cost|Needs|Source|Captures)\b[^.]*?:( |$)")
HEAD = """# Names

Every name of the public headers, which [Headers](headers.md) describes; those of [C](c.md) are in `c.h`. Members are
in the headers. `test/docs/names_test.py --fix` writes this page from the headers' comments.

"""


def words(comment):
    """The paragraphs of a comment, a line each."""
    text = ""
    for line in comment.splitlines():
        line = re.sub(r"^\s*(///<?|//|\*)\s?", "", line).rstrip()
        text += f"\n\n{line}" if LABEL.match(line) else f"\n{line}"
    return [" ".join(part.split()) for part in text.split("\n\n")]


def sentence(text):
    """The first one, of a long one what it begins with."""
    first = re.split(r"(?<=[.!?])\s+(?=[A-Z`])", text)[0]
    return re.split(r"(?<=.{30})[:;]\s" if len(first) > 140 else r"\.$", first)[0].rstrip(".:, ")


def about(name, comment, header):
    """One line: what the header's first comment says of it, or its own comment's first sentence."""
    said = re.search(r"(/// \\file(?:\n///)?( [^\n]*\n(?:///[^\n]*\n)*))", header)
    for part in words(f"///{said[2]}") if said else []:
        for one in re.split(r"(?<=[.!?])\s+(?=[A-Z`])", part):
            if re.match(rf"`{name}(<\w+>)?` ", one):
                return sentence(one)
    for part in words(comment or ""):
        # Not a heading, nor a label.
        if re.search(r"[.:!?\")]$", part) and not LABEL.match(part) and not re.fullmatch(r"(, |\w+\(\))+", part):
            return sentence(part)
    return sentence(words(f"///{said[2]}")[0]) if said and "`" not in said[2].split("\n")[0] else ""


def public(cursor, scope=""):
    for child in cursor.get_children():
        file = child.location.file and pathlib.Path(child.location.file.name)
        if file is None or not file.is_relative_to(INCLUDE) or set(HIDDEN) & set(file.relative_to(INCLUDE).parts):
            continue
        if child.kind == Kind.NAMESPACE:
            if child.spelling not in HIDDEN:
                inner = "runtime::" if child.spelling == "runtime" else "testing::" if child.spelling == "testing" else scope
                yield from public(child, inner)
        elif child.semantic_parent and KINDS.get(child.semantic_parent.kind) == "type":
            continue  # a member that is defined outside of its class
        elif child.kind in KINDS and re.fullmatch(r"(?!operator\b)\w+", child.spelling):
            is_type = KINDS[child.kind] == "type"
            if not is_type or child.kind in (Kind.TYPEDEF_DECL, Kind.TYPE_ALIAS_DECL, Kind.TYPE_ALIAS_TEMPLATE_DECL) \
                    or child.is_definition():
                yield scope + child.spelling, KINDS[child.kind], file.relative_to(INCLUDE / "cuguest"), child.raw_comment


def macros():
    for header in sorted(INCLUDE.rglob("*.h")):
        if not set(HIDDEN) & set(header.relative_to(INCLUDE).parts) and header.name not in ("c.h", "export.h"):
            text = header.read_text()
            for match in re.finditer(r"((?:^///[^\n]*\n)+)^# *define (CUGUEST_\w+)\b", text, re.M):
                if f"#undef {match[2]}" not in text:
                    yield match[2], "macro", header.relative_to(INCLUDE / "cuguest"), match[1]


headers = sorted(str(header.relative_to(INCLUDE)) for header in INCLUDE.rglob("*.h") if header.name != "c.h")
# What an older toolkit's headers lack, so that the page does not depend on the toolkit.
LACKING = f"""#include "{root / 'subprojects' / 'cudasim' / 'runtime' / 'execution.h'}"
#define CUGUEST_RUNTIME_DECLARES_EXECUTION_CONTEXTS
"""
unit = index.parse("names.cc", args=["-std=c++17", f"-I{INCLUDE}", *system_includes(build)],
                   unsaved_files=[("names.cc", LACKING + "".join(f'#include "{name}"\n' for name in headers))])
errors = [str(d) for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
if any("file not found" in error for error in errors):
    print(f"skipped: {errors[0]}\ncases: 0 passed, 0 failed, 1 skipped")
    sys.exit(77)
if errors:
    sys.exit("\n".join(errors))

names = {}
failures = []
shared = {}  # of each header the last name with a comment, and the comment, which others may share
for name, kind, header, comment in [*public(unit.cursor), *macros()]:
    of, last = shared.get(header, ("", ""))
    if comment:
        shared[header] = name, comment
    elif name == f"{of}Async" or re.search(rf"\b{name.split('::')[-1]}\b", last):
        comment = last
    text = about(name.split("::")[-1], comment, (INCLUDE / "cuguest" / header).read_text())
    if name not in names:
        names[name] = [kind, header, text]
        continue
    first = names[name]
    if first[0] != kind:
        failures.append(f"{name} is a {first[0]} of {first[1]} and a {kind} of {header}")
    first[2] = first[2] or text
rows = [f"| `{name}` | {text} | `{header}` |" for name, (_, header, text) in sorted(names.items())]
page = HEAD + "| name | what | header |\n|---|---|---|\n" + "".join(f"{row}\n" for row in rows)
if "--fix" in sys.argv:
    PAGE.write_text(page)
if not PAGE.exists() or PAGE.read_text() != page:
    failures.append("docs/names.md is not what the headers say: test/docs/names_test.py . BUILD --fix")
for header in INCLUDE.rglob("*.h"):  # where a formatter has run two lines together
    for line in re.findall(r"///.*\S (?:(?:Requires|Errors|Source|Needs): |(?:Stack|Count|Threads|Cost):  ).*", header.read_text()):
        if not re.search(r"\. Needs: .*\.$", line):
            failures.append(f"{header.name}: a label begins a line: {line}")
failures += [f"{name} of {header} has no line" for name, (_, header, text) in sorted(names.items()) if not text]
for failure in failures:
    print(f"not ok: {failure}")
print(f"cases: {len(names) + 1 - len(failures)} passed, {len(failures)} failed, 0 skipped")
sys.exit(1 if failures else 0)

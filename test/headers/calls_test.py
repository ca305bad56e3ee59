#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""calls_test.py SOURCE_ROOT

Every public function of the bridge, of the libraries and of the objects is named in a *_calls.cc of test/runtime or
test/libraries, so that the tests of what no call may do (undisturbed_test.cc, reentry_test.cc, and the walk over faults,
test/faults) cannot forget one; and every one of the headers below it that may call the driver or somebody's code, in
test/process/reentry_test.cc and, if it calls the driver, in test/faults/core_calls.cc; and every one of c.h that may, in
test/faults/c_calls.cc. Each but those of toolkit libraries has a row in the walk of borders, test/faults/*_borders.cc.
"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
include = root / "include" / "cuguest"
# NCCL keeps a reference to the primary context, and answers failures of the driver itself: the walks take that for ours.
# test/libraries/nccl_test.cc has the scope's own calls fail.
WITHOUT_ROWS = {include / "libraries" / "nccl.h"}
HEADERS = sorted({*include.glob("runtime/*.h"), *include.glob("libraries/*.h")} - WITHOUT_ROWS) + [
    include / "objects" / name
    for name in ("array.h", "copy.h", "device_buffer.h", "device_view.h", "imported_buffer.h", "kernel.h", "launch.h",
                 "linker.h", "memory.h", "module.h", "occupancy.h", "peer_access.h", "pinned_buffer.h", "pinned_pages.h", "pitched_view.h",
                 "scratch_buffer.h", "stream.h", "stream_protocol.h", "surface_object.h", "texture_object.h")]

# Of the other headers the test of tiers 1 and 2 names every function that is no accessor, but for
# these: they call nobody, and load nothing.
PURE_HEADERS = {
    "device_ptr.h", "device_view.h", "error.h", "error_or.h", "host_span.h", "location.h", "param_buffer.h",
    "status.h", "typed_kernel.h",
}
PURE = {"CheckCompatibility", "Explain", "Device::ToString", "Name", "Pin", "Acquired::Leak", "ContextRef::AbslHashValue",
        "ContextRef::Of", "PrimaryKeeper::Keeps"}


def plain(text):
    """Without comments, literals, directives, attributes and our own macros."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r'"(\\.|[^"\\])*"', '""', text)
    text = re.sub(r"^[ \t]*#(\\\n|[^\n])*", "", text, flags=re.M)
    text = re.sub(r"\[\[.*?\]\]|\balignas\([^)]*\)", "", text)
    text = re.sub(r"CUGUEST_(BEGIN|END)_\w+|CUGUEST_\w+_ENTRIES\(\w+\)|CUGUEST_INTERNAL_\w+\(\w+\);", "", text)
    return re.sub(r"CUGUEST_API", "", text)


def close(text, start):
    """The place after the bracket that closes the one at `start`."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] in "({") - (text[i] in ")}")
        if depth == 0:
            return i + 1
    raise ValueError("unbalanced")


def declarations(text):
    """(head, body or None) of each declaration at the top level of `text`."""
    start = i = 0
    while i < len(text):
        if text[i] == "(":
            i = close(text, i)
        elif text[i] == "{":
            end = close(text, i)
            yield text[start:i].strip(), text[i + 1:end - 1]
            start = i = end
        elif text[i] == ";":
            yield text[start:i].strip(), None
            start = i = i + 1
        else:
            i += 1


def public_part(body, kind):
    """The public sections of a class."""
    sections = [""]
    for part in re.split(r"\b(public|private|protected)\s*:(?!:)", body):
        before = "".join(sections)
        if part in ("public", "private", "protected") and before.count("{") == before.count("}"):
            sections += [part, ""]
        else:  # a nested class's
            sections[-1] += part + ":" * (part in ("public", "private", "protected"))
    shown = sections[0] if kind == "struct" else ""
    for access, section in zip(sections[1::2], sections[2::2]):
        shown += section if access == "public" else ""
    return shown


def function_name(head):
    """What `head` declares, if it is a function that somebody calls by name."""
    if match := re.match(r"using (\w+)::(\w+)$", head):
        return match[2] if match[1] != match[2] else None  # what a base class has, made public
    if re.match(r"(static_assert|using|friend|enum|extern)\b", head) or "operator" in head:
        return None
    if re.search(r"=\s*(default|delete)$", head) or "(" not in head:
        return None
    before = head[:head.index("(")]
    if "=" in re.sub(r"<.*>", "", before):
        return None  # an initialiser
    name = re.search(r"(~?[\w:]+)\s*$", before)
    return name.group(1) if name and not name.group(1).startswith("~") else None


def untemplated(head):
    """`head` without template<...> before it."""
    if not head.startswith("template"):
        return head
    depth = 0
    for i, letter in enumerate(head):
        depth += (letter == "<") - (letter == ">")
        if letter == ">" and depth == 0:
            return untemplated(head[i + 1:].strip())
    return head


def functions(text, scope=""):
    """Of each class that is no struct its name, too: that of its constructors."""
    for head, body in declarations(text):
        if not scope and (match := re.match(r"using (\w+) = \w+<", head)):
            yield match.group(1)  # an instance of a class template, by its name
        head = untemplated(head)
        if match := re.match(r"(inline\s+)?namespace\b\s*(\w*)", head):
            if body is not None and match.group(2) not in ("internal", "impl"):
                yield from functions(body, scope)
        elif match := re.match(r"(class|struct)\s+(\w+)", head):
            if body is not None:
                if match.group(1) == "class":
                    yield match.group(2)
                yield from functions(public_part(body, match.group(1)), f"{match.group(2)}::")
        elif (name := function_name(head)) and f"{name}::" != scope:
            yield scope + name


declared = {}
for header in HEADERS:
    for name in functions(plain(header.read_text())):
        declared.setdefault(name, header.relative_to(include))

# They call somebody's code, or nobody at first: no driver call of theirs could fail.
WITHOUT_CALLS = {
    "CodeImage", "CodeImage::Borrow", "CodeImage::Copy", "CodeImage::FromFile", "CodeImage::FromPtx",
    "CodeImage::Validate", "Driver::Adopt", "ExecutableGraph::Leak", "GreenContext::Leak", "IncidentCount",
    "IncidentListener", "PrimaryContext::Leak", "ProblemOf", "SharedContext::Leak",
}
C_WITHOUT_CALLS = re.compile(r"cuguest_(error_|incident_|driver_adopt|repair_name|\w+_cleanup$)")


def named_in(paths):
    """The functions that the rows of tables name: `Class::Function`, up to a colon."""
    found = set()
    text = "".join((root / path).read_text() for path in paths)
    for literals in re.findall(r'\{\s*((?:"[^"]*"\s*)+),', text):
        names = "".join(re.findall(r'"([^"]*)"', literals))
        found.update(re.split(r":(?!:)(?<!::)", names)[0].split())
    return found


named = named_in(str(path.relative_to(root)) for folder in ("runtime", "libraries")
                 for path in sorted(root.glob(f"test/{folder}/*_calls.cc")))
faulted = named_in(("test/faults/core_calls.cc", "test/faults/c_calls.cc", "test/runtime/code_calls.cc"))

missing = sorted(set(declared) - named)
lower = {}
for header in sorted([*include.glob("*.h"), *include.glob("objects/*.h")]):
    if header in HEADERS or header.name in PURE_HEADERS or header.name == "cxx.h":  # that calls what c.h has
        continue
    for name in functions(plain(header.read_text())):
        if name.split("::")[-1][0].isupper() and name not in PURE:
            lower[name] = header.name
unknown = sorted(named - set(declared) - set(lower))
for name in missing:
    print(f"not ok: {name} of {declared[name]} is in no *_calls.cc of test/runtime and test/libraries")
for name in unknown:
    print(f"not ok: a *_calls.cc names {name}, which no header declares")

walked = set(re.findall(r"\w+", (root / "test" / "process" / "reentry_test.cc").read_text()))
for name, header in sorted(lower.items()):
    if name.split("::")[-1] not in walked:
        missing.append(name)
        print(f"not ok: {name} of {header} is not in test/process/reentry_test.cc")
    if name not in faulted | WITHOUT_CALLS:
        missing.append(name)
        print(f"not ok: {name} of {header} is in no table of test/faults")
c_functions = set(re.findall(r"\b(cuguest_\w+)\(", plain((include / "c.h").read_text())))
for name in sorted(c_functions):
    if name not in faulted and not C_WITHOUT_CALLS.match(name):
        missing.append(name)
        print(f"not ok: {name} of c.h is in no table of test/faults")
# Of what works with handles of toolkit libraries no row says what each border value means; of the others not where
# there is nothing to give: neither a parameter nor an object that may be empty.
NOTHING_TO_GIVE = re.compile(
    r"\w+::(Leak|ToString)|Part|ContextRef::Current|CountDevices|CurrentDevice|Device::Borrow|(?:Object)?Driver::\w+|DriverLog(::\w+)?|HostScope|IncidentCount|"
    r"IncidentListener|ProblemOf|QueryVersions|CheckSharing")
bordered = set()
for path in ("bridge_borders.cc", "code_borders.cc", "core_borders.cc", "library_borders.cc", "memory_borders.cc"):
    for literals in re.findall(r'MakeRow\(\s*((?:"[^"]*"\s*)+)', (root / "test" / "faults" / path).read_text()):
        names = "".join(re.findall(r'"([^"]*)"', literals))
        bordered.update(re.split(r":(?!:)(?<!::)", names)[0].split())
with_borders = dict(lower)
with_borders.update((name, str(path)) for name, path in declared.items())
for name, header in sorted(with_borders.items()):
    is_function = name.split("::")[-1][0].isupper() and name not in PURE
    if is_function and name not in bordered and not NOTHING_TO_GIVE.fullmatch(name):
        missing.append(name)
        print(f"not ok: {name} of {header} has no row in test/faults/*_borders.cc")
for name in sorted(bordered - set(lower) - set(declared)):
    unknown.append(name)
    print(f"not ok: test/faults/*_borders.cc names {name}, which no header declares")
declared.update(lower)
declared.update(dict.fromkeys(c_functions, "c.h"))
print(f"cases: {len(declared) - len(missing)} passed, {len(missing) + len(unknown)} failed, 0 skipped")
sys.exit(1 if missing or unknown or not declared else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""hidden_test.py SOURCE_ROOT BUILD_ROOT COMPILER

What the headers leave in an object file of an embedder that is compiled with default visibility
and without optimisation: none of it may be a visible symbol of ours (export.h, Note [What two
embedders share]). g++ is told to keep every inline function, used or not; the templates and what
the compiler declares by itself (constructors, destructors, assignments of each type) are used here.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

from flags import headers_that_can_be_included, system_includes

root, build, compiler = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]), sys.argv[3]
INCLUDE = root / "include"
# Of each class template, and nested types that an embedder names.
INSTANCES = [
    "DeviceBuffer<float>", "DeviceView<float>", "DeviceView<const float>", "DevicePtr<float>", "HostSpan<float>",
    "PerContext<int>", "PerContext<int>::Pin", "TypedKernel<void(int, DevicePtr<float>)>",
]
USE = """
#include <new>
#include <type_traits>
template <typename T>
void Use(void* at, T* other) {
  if constexpr (std::is_default_constructible_v<T>) new (at) T();
  if constexpr (std::is_copy_constructible_v<T>) new (at) T(static_cast<const T&>(*other));
  if constexpr (std::is_move_constructible_v<T>) new (at) T(static_cast<T&&>(*other));
  if constexpr (std::is_copy_assignable_v<T>) *static_cast<T*>(at) = static_cast<const T&>(*other);
  if constexpr (std::is_move_assignable_v<T>) *static_cast<T*>(at) = static_cast<T&&>(*other);
  if constexpr (std::is_destructible_v<T>) other->~T();
}
"""
CLASS = re.compile(r"( *)(class|struct)\s+(?:\[\[[^\]]*\]\]\s*|CUGUEST_\w+\s+|alignas\([^)]*\)\s*)*(\w+)[^;]*\{")
OURS = re.compile(r"_Z(?:GV|GR|T[VITS]|Z)*N[KVrRO]*7cuguest")


def types(header):
    """The classes of a header that an embedder can name, but templates, as qualified names."""
    scope, before = ["cuguest"], ""
    text = "".join(header.read_text().partition("\nCUGUEST_BEGIN")[1:])
    text = re.sub(r"^#if \w+ <.*?^#endif", "", text, flags=re.M | re.S)  # replacements of types that an older toolkit lacks
    outer = []  # the classes around a line: [indentation, name, not in a template, access]
    for line in text.splitlines():
        if begun := re.match(r"CUGUEST_BEGIN_(\w*)NAMESPACE", line):
            scope = ["cuguest", *begun[1].lower().split("_")[:-1]]
        if opened := re.match(r"namespace (\w+) \{$", line):
            scope.append(opened[1])
        if re.match(r"\}  // namespace \w", line):
            scope.pop()
        if outer and line.startswith(" " * outer[-1][0] + "};"):
            outer.pop()
        if outer and (access := re.match(rf" {{{outer[-1][0] + 1}}}(\w+):$", line)):
            outer[-1][3] = access[1]
        if defined := CLASS.match(line):
            indentation, key, name = defined.groups()
            is_plain = not before.lstrip().startswith("template")
            if is_plain and all(plain and access == "public" for _, _, plain, access in outer):
                yield "::".join([*scope, *(name for _, name, _, _ in outer), name])
            if "};" not in line:
                outer.append([len(indentation), name, is_plain, "public" if key == "struct" else "private"])
        if before.lstrip().startswith("template") and before.count("<") > before.count(">"):
            before += line  # the rest of a template's parameters
        else:
            before = line or before


def symbols(flags, text):
    """Name of each visible symbol that the object file of `text` defines: demangled."""
    with tempfile.TemporaryDirectory() as tmp:
        made = pathlib.Path(tmp) / "o.o"
        run = subprocess.run(
            [compiler, "-x", "c++", "-std=c++17", "-O0", "-fPIC", "-w", *flags, f"-I{INCLUDE}", *system_includes(build),
             "-c", "-o", made, "-"], input=text, capture_output=True, text=True, cwd=build)
        if run.returncode:
            sys.exit(run.stderr[:4000])
        rows = (line.split() for line in subprocess.run(["readelf", "-sW", made], check=True, capture_output=True,
                                                        text=True).stdout.splitlines())
        mangled = sorted({row[7] for row in rows if len(row) > 7 and row[4] in ("GLOBAL", "WEAK", "UNIQUE")
                          and row[5] == "DEFAULT" and row[6] != "UND"})
    names = subprocess.run(["c++filt"], input="\n".join(mangled), check=True, capture_output=True, text=True).stdout
    return dict(zip(mangled, names.splitlines()))


headers = headers_that_can_be_included(sorted(INCLUDE.rglob("*.h")), build, compiler)
names = sorted({name for header in headers for name in types(header)})
text = "".join(f'#include "{header.relative_to(INCLUDE)}"\n' for header in headers) + USE
text += "using namespace cuguest;\n"
for name in names + INSTANCES:
    text += f"template void Use(void*, {name}*);\n"
for name in INSTANCES:
    if name.endswith(">"):
        text += f"template class cuguest::{name};\n"

kept = ["-fkeep-inline-functions"] if "g++" in pathlib.Path(compiler).name and "clang" not in compiler else []
failed = 0
for flags in (["-DCUGUEST_STATIC"], []):
    found = symbols(kept + flags, text)
    bad = sorted({name for mangled, name in found.items() if OURS.match(mangled)})
    for name in bad:
        print(f"not ok: {' '.join(flags) or 'shared'}: visible: {name}")
    print(f"{compiler} {' '.join(flags) or 'shared'}: {len(names)} classes, {len(bad)} visible symbols")
    failed += bool(bad)
print(f"cases: {2 - failed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed or len(names) < 50 else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""versions_test.py SOURCE_ROOT

The version of meson.build is that of the headers' macros, of the Python package and of the newest section of both
changelogs; other build files and recipes have none of their own; and what documents name by it has it. The simulation and
the auditor have numbers of their own, which are newer than the newest section of their changelogs while that has a section
of what is not released.
"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
failed = []
passed = 0


def check(what, holds, found):
    global passed
    passed += bool(holds)
    if not holds:
        failed.append(f"{what}: {found}")


def read(name):
    return (root / name).read_text()


def of_project(name):
    return re.search(r"^  version: '(\d+\.\d+\.\d+)',$", read(name), re.M)[1]


def sections(changelog):
    return re.findall(r"^## (\d+\.\d+\.\d+) \(", read(changelog), re.M)


version = of_project("meson.build")
major, minor, patch = version.split(".")
abi = f"{major}.{minor}" if major == "0" else major

macros = dict(re.findall(r"^#define CUGUEST_VERSION(\w*) (.*)$", read("include/cuguest/version.h"), re.M))
check("include/cuguest/version.h", macros == {"_MAJOR": major, "_MINOR": minor, "_PATCH": patch, "": f'"{version}"'}, macros)
package = of_project("subprojects/pycuguest/meson.build")
check("subprojects/pycuguest/meson.build", package == version, package)
for changelog in ("CHANGELOG.md", "subprojects/pycuguest/CHANGELOG.md"):
    check(f"{changelog} begins with another version", sections(changelog)[:1] == [version], sections(changelog)[:1])

# These read meson.build.
for name in ("CMakeLists.txt", "conanfile.py", "packaging/deb", "packaging/debian/control", "subprojects/pycuguest/pyproject.toml"):
    check(f"{name} has a version of its own", version not in read(name), version)

# What a reader copies: `libcuguest0.3`, `libcuguest.so.0.3`, `find_package(cuguest 0.3`, `cuguest::v0_3`. What migration.md
# and the changelog say of former versions is not of this one.
NAMED = re.compile(r"(?:libcuguest(?:\.so\.)?|find_package\(cuguest |cuguest::v)(\d+[._]\d+|\d+(?=[^\d.]))")
pages = [page for page in (root / "docs").rglob("*.md") if page.name != "migration.md"]
named = [(page.name, match[0], match[1].replace("_", ".")) for page in pages for match in NAMED.finditer(page.read_text())]
check("docs name the library by its version", len(named) >= 5, named)
for page, text, number in named:
    check(f"docs/{page} names another version", number == abi, text)

for name in ("cudasim", "cuguest-audit"):
    changelog = f"subprojects/{name}/CHANGELOG.md"
    own, released = of_project(f"subprojects/{name}/meson.build"), sections(changelog)
    if "\n## Unreleased\n" in read(changelog):
        check(f"{changelog} has changes after the version of its meson.build", own not in released, own)
    else:
        check(f"{changelog} begins with another version than its meson.build", released[:1] == [own], (own, released[:1]))

print(*failed, sep="\n")
print(f"cases: {passed} passed, {len(failed)} failed, 0 skipped")
sys.exit(bool(failed))

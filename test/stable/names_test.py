#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""names_test.py SOURCE_ROOT [--fix]

The names by which a build of somebody else asks for cuguest: dependencies, targets, packages, options, parts, the files
and macros of the two files, the wheel's modules; and the layout of the registry, as the library asserts it. What a
release had is there still, as the files have it that define it; the tests of test/embed, test/two_files and test/process
use it. --fix writes what this version has.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

from kept import check_rows, done

root = pathlib.Path(sys.argv[1]).resolve()
# What they are, where they are, and how it is written there.
PLACES = [
    ("Meson dependency", "lib/meson.build", r"meson\.override_dependency\(\s*'([\w-]+)'"),
    ("Meson variable of cuguest-testing", "lib/meson.build", r"variables: audit_variables \+ \{'(\w+)'"),
    ("Meson option", "meson_options.txt", r"^option\('(\w+)', type: '(\w+)'"),
    ("part of an installation", "include/meson.build", r"install_tag: '(\w+)'"),
    ("part of an installation", "include/meson.build", r"^    '(\w+)': \["),
    ("pkg-config", "lib/packaging/meson.build", r"filebase: '([\w-]+)'"),
    ("pkg-config variable", "lib/packaging/meson.build", r" variables: audit_installed_variables \+ \{'(\w+)'"),
    ("CMake target of a build", "CMakeLists.txt", r"^ *add_library\((cuguest::\w+) ALIAS"),
    ("CMake option", "CMakeLists.txt", r"^option\((CUGUEST_\w+)"),
    ("CMake option", "CMakeLists.txt", r"^ *set\((\w+) .* CACHE "),
    ("CMake option", "CMakeLists.txt", r"OR (cuguest_TOOLKIT_INCLUDE)\)"),
    ("CMake component of an installation", "CMakeLists.txt", r"\bCOMPONENT (\w+)"),
    ("CMake target of a package", "lib/packaging/cuguestConfig.cmake.in", r"^ *add_library\((cuguest::\w+) "),
    ("CMake target of a package", "lib/packaging/cuguestConfig.cmake.in", r"^cuguest_add_product\((\w+)"),
    ("CMake component of a package", "lib/packaging/cuguestConfig.cmake.in", r'"\$\{cuguest_FIND_COMPONENTS\}" STREQUAL "(\w+)"'),
    ("CMake variable of a package", "lib/packaging/cuguestConfig.cmake.in", r"set\((cuguest_SIMDIR) "),
    ("Debian package", "packaging/debian/control", r"^Package: (\S+)"),
    ("Conan package", "conanfile.py", r'^    name = "(\S+)"'),
    ("wheel", "subprojects/pycuguest/pyproject.toml", r'^name = "(\w+)"'),
    ("command of the wheel", "subprojects/pycuguest/pyproject.toml", r'^([\w-]+) = "cuguest\.\w+:main"'),
    ("plugin of the wheel", "subprojects/pycuguest/pyproject.toml", r'^(\w+) = "cuguest\._pytest_plugin"'),
    ("option of pytest", "subprojects/pycuguest/src/cuguest/_pytest_plugin.py", r'addoption\(\s*"(--[\w-]+)"'),
    ("fixture of pytest", "subprojects/pycuguest/src/cuguest/_pytest_plugin.py", r"^@pytest\.fixture.*\ndef (\w+)"),
    ("module of the wheel", "subprojects/pycuguest/meson.build", r"'src/(cuguest/(?:__init__|[a-z]\w*)\.py)'"),
    # Its size may grow.
    ("registry", "lib/share/registry_home_posix.cc",
     r"((?:offsetof\(\w+, \w+\)|[\w:]*\bk\w+|sizeof\((?!Registry\b)\w+\)) == [^&;]*?)\s*(?:&&|\);)"),
    ("registry", "lib/share/registry.h", r"^#define CUGUEST_REGISTRY_(MINIMAL_READER \d+)"),
    ("registry", "lib/share/registry.h", r"\b(kMagic = \w+)"),
]


def of_two_files():
    """Their names, and the macros that they ask for and do not define."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, root / "packaging" / "two_files", folder], check=True)
        for path in sorted(pathlib.Path(folder).iterdir()):
            yield f"file of the two: {path.name}"
            text = path.read_text()
            asked = set(re.findall(r"\bdefined\((CUGUEST_\w+)\)|^# *ifn?def (CUGUEST_\w+)", text, re.M))
            names = {one or other for one, other in asked}
            ours = {name for name in names if re.search(rf"^# *define {name}\b", text, re.M)} - {"CUGUEST_STATIC"}
            yield from (f"macro for the two files: {name}" for name in names - ours if not re.match("CUGUEST_(INTERNAL|LIB)_", name))


def names():
    for what, place, written in PLACES:
        found = re.findall(written, (root / place).read_text(), re.M)
        if not found:
            sys.exit(f"{place}: no {what}: {written}")
        said = (one if isinstance(one, str) else " ".join(one) for one in found)
        yield from (f"{what}: {' '.join(one.split())}" for one in said)


check_rows("names.txt", [*names(), *of_two_files()])
done()

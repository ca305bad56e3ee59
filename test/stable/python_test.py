#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python_test.py SOURCE_ROOT [--fix]

The public names of the Python package and their signatures: what calls that of a release calls this one. griffe compares
them, which pip fetches; a new name or an optional parameter is an addition. The package's own test holds that the hints
are those of the extension. --fix writes the hints of this version: the modules without what functions do.
"""

import ast
import pathlib
import re
import subprocess
import sys
import tempfile

from kept import FREEZES, ROOT, check, done, skip, stored, unpack, write_bundle

root = pathlib.Path(sys.argv[1]).resolve()
PACKAGE = root / "subprojects" / "pycuguest" / "src" / "cuguest"
MODULES = ("__init__.py", "_core.pyi", "_python.py", "testing.py")  # those of which a user can name something
COMPARE = """
import griffe, sys

def types(what, name):
    "The types of parameters, results and attributes, which griffe does not compare."
    what = what.final_target if what.is_alias else what
    if what.is_function:
        yield f"{name} gives", str(what.returns)
        yield from ((f"{name}, {one.name}", str(one.annotation)) for one in what.parameters)
    elif what.is_attribute:
        yield name, str(what.annotation)
    elif what.is_class:
        for member in what.all_members.values():
            if member.is_public or member.is_special:
                yield from types(member, f"{name}.{member.name}")

old, new = (griffe.load("cuguest", search_paths=[path], allow_inspection=False, resolve_aliases=True) for path in sys.argv[1:])
for one in griffe.find_breaking_changes(old, new):
    print(f"{one.obj.path}: {one.kind.value}: {one.old_value} -> {one.new_value}")
found = [dict(pair for module in (package, package["testing"]) for name in module.exports if name in module.members
              for pair in types(module[name], name)) for package in (old, new)]
for name, kind in found[0].items():
    if found[1].get(name, kind) != kind:
        print(f"{name}: {kind} -> {found[1][name]}")
print(len(found[0]), "types")
"""


class WithoutBodies(ast.NodeTransformer):
    """Declarations alone."""

    def visit_FunctionDef(self, node):
        node.body = [ast.Expr(ast.Constant(...))]
        return node

    def visit_ClassDef(self, node):
        node.body = [self.visit(one) for one in node.body if not is_text(one) and not is_private(one)] or [ast.Expr(ast.Constant(...))]
        return node


def is_text(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def is_private(node):
    return isinstance(node, ast.FunctionDef) and node.name.startswith("_") and not node.name.endswith("__")


def declarations(path):
    module = ast.parse(path.read_text())
    module.body = [WithoutBodies().visit(one) for one in module.body if not is_text(one) and not is_private(one)]
    return ast.unparse(module) + "\n"


def griffe(folder):
    """The Python that has it."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    fetched = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "griffe"])
    return python if fetched.returncode == 0 else None


with tempfile.TemporaryDirectory() as scratch:
    tmp = pathlib.Path(scratch)
    if FREEZES:
        write_bundle("python.txt", {f"cuguest/{name}": declarations(PACKAGE / name) for name in MODULES})
    elif not (python := griffe(tmp / "venv")):
        skip("pip could not get griffe")
    else:
        for bundle in stored("python.txt"):
            old = tmp / bundle.parent.name
            unpack(bundle, old)
            compared = subprocess.run([python, "-c", COMPARE, old, PACKAGE.parent], stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True)
            said = re.fullmatch(r"(\d+) types\n", compared.stdout)
            check(f"the names of {bundle.relative_to(ROOT)} are there, with their parameters and types", said and int(said[1]),
                  compared.stdout)
done()

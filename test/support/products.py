#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""products.py options WORD...
products.py tests BUILD WORD...

Which tests test/run runs: those of the words, or without a word those that the difference to main touches. `options` prints
what the build needs for them, an option a line. `tests` prints a line that says what was chosen, a line that says what was
left out, and each test; none where it is all, which test/run chooses by suites.

The tests are those of a configured build; one belongs to the folder of test/ of its source, and to that folder's product.
"""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What each product stands on. A change in one also touches what stands on it.
STANDS_ON = {"heart": "sim", "objects": "heart", "libraries": "objects", "audit": "sim", "sim": None}
LIBRARY = ["heart", "objects", "libraries"]  # those of `all`
# The folders of lib/ and of test/ of each. What is within one is of the same product. A public header is of the product
# of its tier.
ROOMS = {
    "heart": "acquire cache capi core guard share stack status",
    "objects": "objects code graph image launch memory stream",
    "libraries": "libraries runtime",
}
TIERS = {"0": "heart", "1": "heart", "2": "heart", "3": "objects", "4": "libraries"}
# Other folders of one product, and the projects of Meson.
OTHERS = {
    "audit": "subprojects/cuguest-audit test/testing",
    "sim": "subprojects/cudaimage subprojects/cudasim",
}
# The folders of test/ whose tests are of the whole library: they run with each change of a product of it.
ACROSS = "advice docs faults headers hosts interop process stable style"
# Those that run only by name, or with a change of their own.
APART = "benchmark embed fuzz hardware schedules two_files"
# What touches all. So does each file that nothing here names.
WHOLE = "lib/no_toolkit lib/packaging lib/pch lib/toolkit test/machines test/pch test/support"
# What touches other tests than those of a product. `layout` compares a page with the folders.
PATHS = {
    "CHANGELOG.md": "docs",
    "README.md": "docs",
    "SECURITY.md": "docs",
    "docs": "docs layout",
    "docs/two_files.md": "docs two_files",
    "examples": "examples docs",
    "include/cuguest/testing": "all audit",
    "lib/no_cuda": "headers two_files",
    "lib/testing": "all audit",
    "packaging/no_cuda.py": "two_files",
    "packaging/two_files": "two_files",
}

# The suites that are words besides the folders, and those that are none: other runs have their tests.
SUITES = ["device_memory", "drivers", "examples", "unit"]
NO_WORDS = "abseil audit audited cudasim_whole extra frameworks release static_runtime toolkits"
# What the build needs for a word. Tests of suite `extra` run only for a word that needs it.
NEEDS = {
    "benchmark": "-Dbenchmarks=enabled",
    "drivers": "-Dextra=true",
    "embed": "-Dextra=true",
    "examples": "-Dexamples=enabled",
    "fuzz": "-Dextra=true",
    "schedules": "-Dextra=true",
    "two_files": "-Dextra=true",
}
NEVER = {"cudasim_whole", "frameworks", "release", "static_runtime", "toolkits"}  # as the setup `sim` of test/meson.build

Test = collections.namedtuple("Test", "name folder product suites")


class UnknownWord(Exception):
    pass


def folders(root):
    """The folders of test/ that have tests, below it."""
    found = {path.parent.relative_to(root / "test").as_posix() for path in (root / "test").rglob("*_test.*")}
    named = {folder for folder in (*ACROSS.split(), *APART.split()) if (root / "test" / folder).is_dir()}
    return sorted(found - {"."} | named)


def words(root):
    names = {part for folder in folders(root) for part in (folder, folder.split("/")[-1])}
    return ["all", *STANDS_ON, *sorted((names | set(SUITES)) - set(STANDS_ON))]


def table():
    """Path: the words of which it touches the tests. `all` is for what touches all."""
    paths = dict.fromkeys(WHOLE.split(), ["all"])
    for product, rooms in ROOMS.items():
        paths.update({f"lib/{room}": [product] for room in rooms.split()})
    for product, those in OTHERS.items():
        paths.update(dict.fromkeys(those.split(), [product]))
    paths.update({path: touched.split() for path, touched in PATHS.items()})
    return paths


def within(path, table):
    """What a table of paths has for one, by its innermost folder there; None if it has nothing."""
    for outer in (path, *pathlib.PurePosixPath(path).parents):
        if str(outer) in table:
            return table[str(outer)]
    return None


def is_known(folder):
    """Whether the tables above have a folder of lib/ or of test/."""
    top, name = folder.split("/")[:2]
    rooms = " ".join([*ROOMS.values(), *([ACROSS, APART] if top == "test" else [])]).split()
    return name in rooms or any(folder in those.split() for those in (WHOLE, *OTHERS.values(), " ".join(PATHS)))


def product_of(folder):
    """The product of a folder of test/; None if its tests are of all."""
    for product, rooms in ROOMS.items():
        if folder.split("/")[0] in rooms.split():
            return product
    return next((product for product, those in OTHERS.items() if f"test/{folder}" in those.split()), None)


def standing_on(product):
    """It, and the products that stand on it."""
    found = [product]
    for other, below in STANDS_ON.items():
        found += standing_on(other) if below == product else []
    return found


def touched(path, root):
    """The words of the tests that a change of a file touches."""
    inside = path.split("/")
    if inside[0] == "test":
        inner = [folder for folder in folders(root) if path.startswith(f"test/{folder}/") and is_known(f"test/{folder}")]
        return {max(inner, key=len)} if inner else {"all"}
    known = within(path, table())
    if path.startswith("include/cuguest/") and (root / path).is_file():
        tier = re.search(r"^//.*\btier: (\w+)$", (root / path).read_text(errors="replace"), re.MULTILINE)
        known = [TIERS[tier[1]]] if tier and tier[1] in TIERS else known
    if known is None:
        return {"all"}
    # The source of a test is in no other program.
    if inside[0] == "subprojects" and re.search(r"_test\.\w+$", path):
        return set(known)
    found = set()
    for word in known:
        found.update(standing_on(word) if word in STANDS_ON else [word])
    return found | (set(ACROSS.split()) if found & set(LIBRARY) else set())


def git(root, *arguments):
    """What git prints; None if it fails, or is not there."""
    # A hook of git has variables that name its own repository.
    env = {name: value for name, value in os.environ.items() if name not in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE")}
    try:
        done = subprocess.run(["git", *arguments], cwd=root, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              check=False)
    except FileNotFoundError:
        return None
    return None if done.returncode else os.fsdecode(done.stdout)


def difference(root):
    """The files that differ from where this branch left main, also those that are not committed or not tracked. None if
    there is nothing to compare with."""
    top = git(root, "rev-parse", "--show-toplevel")
    if top is None or pathlib.Path(top[:-1]).resolve() != root.resolve():
        return None
    bases = (git(root, "merge-base", "HEAD", f"refs/{main}") for main in ("remotes/origin/main", "heads/main"))
    base = next((base.strip() for base in bases if base), None)
    if base is None:
        return None
    changed = git(root, "diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", base, "--")
    untracked = git(root, "ls-files", "--others", "--exclude-standard", "-z")
    if changed is None or untracked is None:
        return None
    return sorted({name for name in (changed + untracked).split("\0") if name})


def choose(root, given):
    """The words to run, and a line that says why."""
    known = words(root)
    for word in given:
        if word not in known:
            raise UnknownWord(f"test/run: no tests are called {word!r}. The words: {' '.join(known)}")
    if given:
        return set(given), f"the tests of {', '.join('all the library' if word == 'all' else word for word in given)}"
    files = difference(root)
    if files is None:
        return {"all"}, "all tests of the library: no branch main to compare with"
    if not files:
        return {"all"}, "all tests of the library: nothing differs from main"
    chosen, whole = set(), set()
    for path in files:
        found = touched(path, root)
        chosen |= found
        whole |= {path} if "all" in found else set()
    shown = f"{files[0]} differs from main" if len(files) == 1 else f"{len(files)} files differ from main"
    if whole:
        more = [word for word in in_order(chosen) if word in ("audit", "sim", *NEEDS)]
        which = ", ".join(["all tests of the library", *more])
        return chosen, f"{which}: {shown}" + ("" if len(files) == 1 else f", among them {min(whole)}")
    return chosen, f"{', '.join(in_order(chosen))}: {shown}"


def in_order(names):
    return [name for name in STANDS_ON if name in names] + sorted(set(names) - set(STANDS_ON))


def read_tests(root, build):
    """The tests of a build, as `meson introspect --tests` prints them."""
    prefixes = {}
    for folder in folders(root):
        prefixes.update(dict.fromkeys((folder.replace("/", "_"), folder.split("/")[-1]), folder))
    found = []
    for row in json.loads((build / "meson-info" / "intro-tests.json").read_text()):
        project = row["suite"][0].split(":")[0]
        suites = {suite.split(":", 1)[-1] for suite in row["suite"]}
        folder = product = None
        if project != "cuguest":
            product = next(product for product, those in OTHERS.items() if f"subprojects/{project}" in those.split())
        else:
            folder = folder_of(root, build, row, prefixes)
            product = product_of(folder) if folder else None
        found.append(Test(f"{project}:{row['name']}", folder, product, frozenset(suites)))
    return found


def folder_of(root, build, row, prefixes):
    """The folder of test/ of a test: that of its script, or of its program, or else the one that its name begins with."""
    for word in row["cmd"]:
        for tests in (root / "test", build / "test"):
            path = pathlib.Path(os.path.normpath(word))
            if tests in path.parents and path.parent != tests and (tests.parent == root or word == row["cmd"][0]):
                return path.parent.relative_to(tests).as_posix()
    fitting = [prefix for prefix in prefixes if row["name"].startswith(f"{prefix}_")]
    return prefixes[max(fitting, key=len)] if fitting else None


def of_word(test, word):
    """Whether a test is one of a word's."""
    if test.suites & NEVER or ("extra" in test.suites and NEEDS.get(word) != "-Dextra=true"):
        return False
    if word in STANDS_ON:
        return test.product == word
    if word == "all":
        return test.product not in ("audit", "sim")
    if test.folder and word in (test.folder, test.folder.split("/")[-1]):
        return True
    return test.product not in ("audit", "sim") and (word in test.suites or test.name == f"cuguest:{word}")


def left_out(tests, chosen):
    """A line that says what does not run."""
    plain = [test for test in tests if any(of_word(test, word) for word in ("all", "audit", "sim"))]
    missing, ran = collections.defaultdict(set), collections.defaultdict(set)
    for test in plain:
        of_all = test.suites & set(ACROSS.split())  # such as `headers`, which also has scripts of the core
        part = test.product if test.product in ("audit", "sim") else min(of_all, default=test.folder)
        (ran if test in chosen else missing)[part].add(test)
    names = set(missing)
    for product in LIBRARY:  # one name for all folders of a product
        its = {test.folder for test in plain if test.product == product}
        if its and its <= names and not any(ran[folder] for folder in its):
            names = names - its | {product}
    named = {name: f"a part of {name}" if ran[name] else name for name in names if name}
    said = []
    if of_library := [named[name] for name in in_order(set(named) - {"audit", "sim"})]:
        said.append(f"{', '.join(of_library)} (test/run all runs them)")
    if others := [named[name] for name in ("audit", "sim") if name in named]:
        said.append(f"{', '.join(others)} (test/run {' '.join(name for name in ('audit', 'sim') if name in named)})")
    return f"left out: {'; '.join([*said, 'what only CI runs (test/run --all)'])}"


def main(arguments):
    command, *rest = arguments
    try:
        if command == "options":
            chosen, _ = choose(ROOT, rest)
            print(*sorted({NEEDS[word] for word in chosen if word in NEEDS}), sep="\n")
            return 0
        build = pathlib.Path(rest[0]).resolve()
        chosen, why = choose(ROOT, rest[1:])
    except UnknownWord as error:
        print(error, file=sys.stderr)
        return 2
    tests = read_tests(ROOT, build)
    selected = {test for test in tests if any(of_word(test, word) for word in chosen)}
    if not selected:
        print(f"test/run: this build has none of {why}", file=sys.stderr)
        return 1
    print(why, left_out(tests, selected), sep="\n")
    if selected != {test for test in tests if of_word(test, "all")}:
        print(*(test.name for test in tests if test in selected), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""products_test.py SOURCE_ROOT BUILD

test/support/products.py: which tests each word of test/run is, in a build, and which a change touches, in a temporary
repository. Each folder of lib/ and of test/ is in its tables, and each suite of the build.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from tool import skip

root, build = (pathlib.Path(word).resolve() for word in sys.argv[1:])
sys.path.insert(0, str(root / "test" / "support"))
import products  # noqa: E402

passed = failed = 0


def check(what, holds, details=""):
    global passed, failed
    print("ok:" if holds else "not ok:", what)
    if not holds and details != "":
        print(f"  {details}")
    passed, failed = passed + bool(holds), failed + (not holds)


def equal(what, found, expected):
    check(what, found == expected, f"{found}, not {expected}")


# The tables.
for top in ("lib", "test"):
    for folder in sorted((root / top).iterdir()):
        if folder.is_dir() and folder.name != "__pycache__" and any(path.is_file() for path in folder.rglob("*")):
            check(f"{top}/{folder.name} is in the tables", products.is_known(f"{top}/{folder.name}"))

setup = re.search(r"^  'sim',\n.*\n  exclude_suites: \[(.*)\]", (root / "test" / "meson.build").read_text(), re.MULTILINE)
equal("what no word runs is what the setup `sim` leaves out", sorted(products.NEVER), sorted(re.findall(r"\w+", setup[1])))

# The tests of a build.
tests = products.read_tests(root, build)
ours = [test for test in tests if test.name.startswith("cuguest:")]
names_no_word = set(products.NO_WORDS.split())
suites = {suite for test in ours for suite in test.suites} - names_no_word
equal("each suite is a word", sorted(suites - set(products.words(root))), [])
equal("each test is of a folder or of a suite that is a word",
      [test.name for test in ours if not test.folder and not test.suites & {*products.SUITES, "benchmark"}], [])


def run_by(*words):
    return {test.name.split(":")[1] for test in tests if any(products.of_word(test, word) for word in words)}


by_suites = {test.name.split(":")[1] for test in ours if not test.suites & {"audit", "extra", *products.NEVER}}
equal("`all` is what test/run chooses by suites", sorted(run_by("all")), sorted(by_suites))
check("a folder's tests are its word", {"guard_context_guard", "guard_guard_cost"} <= run_by("guard"))
check("and no others", all(name.startswith("guard_") for name in run_by("guard")), run_by("guard"))
check("a script is a test of its folder", "tiers" in run_by("headers") and "tiers" not in run_by("style"))
check("a product has the tests of its folders", run_by("guard", "share", "stack") < run_by("heart"))
check("the heart has none of the objects", not run_by("heart") & run_by("objects"))
check("the auditor has its own tests and those with cuguest", {"audit_log", "audit_in_process"} <= run_by("audit"))
check("`process` has none of the auditor", "process_fork" in run_by("process") and "audit_in_process" not in run_by("process"))
check("the simulation has its reader of images", {"image", "sim_stack_facts"} <= run_by("sim"))
check("the documentation has the test of a page elsewhere", run_by("docs") < run_by(*products.PATHS["docs"].split()))
check("no word runs what takes hours", not any(
    test.suites & products.NEVER and products.of_word(test, word) for test in tests for word in products.words(root)))
check("what is `extra` runs by a word that needs it", "fuzz_guard" in run_by("fuzz") or not shutil.which("clang++"))
check("and by no other", "tidy" not in run_by("style", "all", "unit"))

guard = [test for test in tests if products.of_word(test, "guard")]
said = products.left_out(tests, guard)
check("what is left out is named", all(word in said for word in (
    "objects, libraries, ", "share", "(test/run all runs them)", "audit, sim (test/run audit sim)", "test/run --all")), said)
check("what runs is not", "guard" not in said, said)
objects = [test for test in tests if products.of_word(test, "objects") or products.of_word(test, "headers")]
said = products.left_out(tests, objects)
check("a product is named as one, whose scripts run as headers", said.startswith("left out: heart, libraries, advice, docs, "), said)
said = products.left_out(tests, [test for test in tests if products.of_word(test, "core")])
check("of what runs in part it says so", "a part of headers" in said, said)
said = products.left_out(tests, [test for test in tests if products.of_word(test, "all")])
check("of `all` the others are left out",
      said == "left out: audit, sim (test/run audit sim); what only CI runs (test/run --all)", said)

# A repository.
if not shutil.which("git"):
    skip("no git")
environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
environment.update(GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_NOSYSTEM="1", GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@b",
                   GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b", LC_ALL="C")
os.environ.clear()
os.environ.update(environment)
FILES = {
    ".gitignore": "/build*\n", "README.md": "", "meson.build": "", "docs/guide.md": "", "examples/run": "", "kernels/k.cu": "",
    "include/cuguest/context_guard.h": "// x\n// tier: 2\n", "include/cuguest/objects/graph.h": "// x\n// tier: 3\n",
    "include/cuguest/internal/scope.h": "// x\n// tier: 2\n", "include/cuguest/runtime/cublas.h": "// x\n// tier: 4\n",
    "include/cuguest/testing/audit.h": "// x\n// tier: testing\n", "lib/guard/scope.cc": "", "lib/objects/graph/graph.cc": "",
    "lib/libraries/cufft.cc": "", "lib/toolkit/meson.build": "", "lib/meson.build": "", "lib/testing/audit.cc": "",
    "subprojects/cudasim/driver/stack.cc": "", "subprojects/cudasim/test/stack_facts_test.cc": "",
    "subprojects/cuguest-audit/audit/log.cc": "", "test/guard/a_test.cc": "", "test/objects/memory/copy_test.cc": "",
    "test/interop/storm/worker.cc": "", "test/interop/guests_test.cc": "", "test/meson.build": "", "test/run": "",
    "test/new/new_test.cc": "",
    "test/schedules/main.cc": "", "test/support/scenario.cc": "", "test/testing/audit_test.cc": "", "a b/é": "",
}
across = set(products.ACROSS.split())
library = {"heart", "objects", "libraries"}


def git(*words):
    subprocess.run(["git", *words], cwd=here, check=True, stdout=subprocess.DEVNULL)


def write(path, text):
    (here / path).parent.mkdir(parents=True, exist_ok=True)
    with (here / path).open("a") as file:
        file.write(text)


def chosen(*words):
    return products.choose(here, words)[0]


def why(*words):
    return products.choose(here, words)[1]


with tempfile.TemporaryDirectory() as name:
    here = pathlib.Path(name).resolve() / "repository"
    for path, text in FILES.items():
        write(path, text)
    equal("all, where there is no repository", chosen(), {"all"})
    git("init", "--quiet", "--initial-branch=trunk")
    git("add", ".")
    git("commit", "--quiet", "--message=first")
    equal("all, where there is no main", chosen(), {"all"})
    check("and it says so", why().endswith("no branch main to compare with"), why())
    git("branch", "main")
    equal("all, where nothing differs", chosen(), {"all"})
    check("and it says so", why().endswith("nothing differs from main"), why())
    equal("a word is what it says", chosen("guard", "heart"), {"guard", "heart"})
    equal("and `all` is the library", why("all", "sim"), "the tests of all the library, sim")
    equal("the name of an inner folder is a word", chosen("memory"), {"memory"})
    try:
        chosen("guard", "gaurd")
        check("an unknown word is refused", False)
    except products.UnknownWord as error:
        check("an unknown word is refused with the words", "'gaurd'" in str(error) and " guard " in str(error), error)

    (here / "subprojects" / "inner").mkdir()
    equal("all, in a folder of another repository", products.choose(here / "subprojects" / "inner", [])[0], {"all"})
    check("and it says so", products.choose(here / "subprojects" / "inner", [])[1].endswith("no branch main to compare with"))

    for path, expected in {
        "include/cuguest/context_guard.h": library | across,
        "include/cuguest/internal/scope.h": library | across,
        "include/cuguest/objects/graph.h": {"objects", "libraries"} | across,
        "include/cuguest/runtime/cublas.h": {"libraries"} | across,
        "include/cuguest/testing/audit.h": {"all", "audit"},
        "include/cuguest/gone.h": {"all"},
        "include/meson.build": {"all"},
        "lib/guard/scope.cc": library | across,
        "lib/objects/graph/graph.cc": {"objects", "libraries"} | across,
        "lib/objects/graph/inner/other.cc": {"objects", "libraries"} | across,
        "lib/libraries/cufft.cc": {"libraries"} | across,
        "lib/testing/audit.cc": {"all", "audit"},
        "lib/toolkit/meson.build": {"all"},
        "lib/meson.build": {"all"},
        "lib/new/file.cc": {"all"},
        "subprojects/cudasim/driver/stack.cc": {"sim", "audit"} | library | across,
        "subprojects/cudasim/test/stack_facts_test.cc": {"sim"},
        "subprojects/cuguest-audit/audit/log.cc": {"audit"},
        "test/guard/a_test.cc": {"guard"},
        "test/objects/memory/copy_test.cc": {"objects/memory"},
        "test/interop/storm/worker.cc": {"interop"},
        "test/schedules/main.cc": {"schedules"},
        "test/testing/audit_test.cc": {"testing"},
        "test/support/scenario.cc": {"all"},
        "test/meson.build": {"all"},
        "test/run": {"all"},
        "test/new/new_test.cc": {"all"},
        "meson.build": {"all"},
        "kernels/k.cu": {"all"},
        "a b/é": {"all"},
        "docs/guide.md": {"docs", "layout"},
        "README.md": {"docs"},
        "examples/run": {"examples", "docs"},
    }.items():
        equal(f"a change of {path} touches its tests", products.touched(path, here), expected)

    git("checkout", "--quiet", "-b", "change")
    write("test/guard/a_test.cc", "committed\n")
    git("commit", "--quiet", "--all", "--message=a change")
    equal("what is committed differs", chosen(), {"guard"})
    check("one file is named", why() == "guard: test/guard/a_test.cc differs from main", why())
    write("docs/guide.md", "staged\n")
    git("add", "docs/guide.md")
    equal("what is staged differs", chosen(), {"guard", "docs", "layout"})
    write("test/testing/audit_test.cc", "in the folder\n")
    equal("what is not committed differs", chosen(), {"guard", "docs", "layout", "testing"})
    write("test/interop/new name é.cc", "untracked\n")
    equal("what is not tracked differs", chosen(), {"guard", "docs", "layout", "testing", "interop"})
    write("build/test/x.cc", "ignored\n")
    equal("what is ignored does not", chosen(), {"guard", "docs", "layout", "testing", "interop"})
    check("files are counted", "4 files differ from main" in why(), why())

    git("checkout", "--quiet", "main", "--force")
    git("clean", "--quiet", "--force", "-d")
    write("lib/toolkit/meson.build", "later on main\n")
    git("commit", "--quiet", "--all", "--message=main goes on")
    git("checkout", "--quiet", "change")
    equal("what main did since is no difference", chosen(), {"guard"})
    git("mv", "lib/objects/graph/graph.cc", "docs/graph.md")
    equal("a file that moved touches both places", chosen(), {"guard", "objects", "libraries", "docs", "layout"} | across)
    git("reset", "--quiet", "--hard")
    (here / "lib/toolkit/meson.build").unlink()
    equal("a file that is gone differs", chosen(), {"guard", "all"})
    check("what touches all is named",
          why() == "all tests of the library: 2 files differ from main, among them lib/toolkit/meson.build", why())
    write("test/schedules/main.cc", "x\n")
    check("and what is run besides", why().startswith("all tests of the library, schedules: 3 files"), why())
    git("reset", "--quiet", "--hard")

    git("update-ref", "refs/remotes/origin/main", "main")
    git("branch", "--quiet", "--delete", "--force", "main")
    equal("a clone's origin/main is main", chosen(), {"guard"})
    git("checkout", "--quiet", "--orphan", "alone")
    git("commit", "--quiet", "--message=nothing in common")
    equal("all, where main has nothing in common", chosen(), {"all"})
    git("checkout", "--quiet", "change")
    (here / ".git" / "index").write_text("no index")
    check("all, where git fails", why().endswith("no branch main to compare with"), why())

    # As a program.
    def program(*words):
        return subprocess.run([sys.executable, root / "test" / "support" / "products.py", *words], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    done = program("options", "gaurd")
    check("the program refuses an unknown word", done.returncode == 2 and not done.stdout and " guard " in done.stderr, done)
    equal("a word that needs an option has it", program("options", "guard", "fuzz", "embed").stdout, "-Dextra=true\n")
    equal("others need none", program("options", "heart").stdout.strip(), "")
    why_line, left_out, *names = program("tests", build, "stack").stdout.splitlines()
    equal("the program prints why", why_line, "the tests of stack")
    check("then what is left out", left_out.startswith("left out: "), left_out)
    equal("and each test", sorted(names), ["cuguest:stack_incident", "cuguest:stack_incident_listener"])
    equal("and none where it is all", len(program("tests", build, "all").stdout.splitlines()), 2)
    if not run_by("examples"):
        done = program("tests", build, "examples")
        check("a build without such tests is an error", done.returncode == 1 and "this build has none" in done.stderr, done)

print(f"cases: {passed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed else 0)

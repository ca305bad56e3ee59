#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mistakes_test.py TOOLKIT_INCLUDE SIMDIR

What is refused says so in the compiler's first error: headers of CUDA 11.8, where what 12.0 has is enough; <cuda.h> beside
our own declarations; C++14; the source as C. And packaging/two_files: folders that cannot be written to, its arguments,
which version it names, and the lines that --line names.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "embed"))
from common import ROOT, check, done, namespace, run, scratch, toolkit_flags

toolkit, _ = sys.argv[1:]
HEADER = '#include "cuguest_core.h"\n'
NOT_BOTH = "cuguest_core.h declares what it uses of CUDA itself, by CUGUEST_NO_TOOLKIT: leave out that macro, or <cuda.h>."
NO_TOOLKIT = "-DCUGUEST_NO_TOOLKIT"
GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]


def said_of(*command, **options):
    """The exit status, and what a command says."""
    result = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    return result.returncode, result.stdout


def check_compiler(compiler):
    def said(text, *flags):
        return said_of(compiler, f"-I{tmp}", "-fsyntax-only", "-x", "c++", "-std=c++17", *flags, "-", input=text)

    def refuses(what, words, text, *flags):
        code, log = said(text, *flags)
        first = next((line for line in log.splitlines() if "error" in line), log)
        check(f"{compiler} refuses {what}", code != 0 and words in first, log[:2000])

    refuses("CUDA 11.8", "cuguest needs the headers of CUDA 12.0 or newer", HEADER, "-isystem", tmp / "old")
    code, log = said(HEADER, "-isystem", ROOT / "lib/no_toolkit")
    check(f"{compiler} compiles the header with what CUDA 12.0 has", code == 0, log)
    refuses("<cuda.h> before our declarations", NOT_BOTH, "#include <cuda.h>\n" + HEADER, NO_TOOLKIT, *toolkit_flags(toolkit))
    refuses("<cuda.h> after our declarations", NOT_BOTH, HEADER + "#include <cuda.h>\n", NO_TOOLKIT, *toolkit_flags(toolkit))
    refuses("C++14", "cuguest_core.h needs C++17, or C.", HEADER, NO_TOOLKIT, "-std=c++14")
    refuses("the source as C", "cuguest_core.cc is C++17", '#include "cuguest_core.cc"\n', NO_TOOLKIT, "-x", "c", "-std=c99")


def check_folders():
    spaces = tmp / "a folder of mine/third party"
    run(*script, spaces)
    run("g++", "-std=c++17", NO_TOOLKIT, "-fsyntax-only", "cuguest_core.cc", cwd=spaces)
    check("a folder with spaces is made, and compiled in", sorted(path.name for path in spaces.iterdir()) ==
          ["cuguest_core.cc", "cuguest_core.h"])
    before = (spaces / "cuguest_core.cc").stat().st_mtime_ns
    run(*script, spaces)
    check("what says the same is left as it is", (spaces / "cuguest_core.cc").stat().st_mtime_ns == before)

    read_only = tmp / "read_only"
    read_only.mkdir()
    mounted = namespace(f"mount -t tmpfs -o ro none '{read_only}' && exec \"$@\"")
    if os.getuid() != 0:
        read_only.chmod(0o555)
        mounted = []
    if mounted is None:
        print("skipped: a read-only folder: root may write to any, and unshare is not permitted")
    else:
        code, log = said_of(*mounted, *script, read_only)
        check("a read-only folder is told in one line", code == 1 and re.fullmatch(
            rf"two_files: {read_only}\S*: (Read-only file system|Permission denied)\n", log), log)
    (tmp / "file").write_text("")
    code, log = said_of(*script, tmp / "file")
    check("so is a file", code == 1 and log == f"two_files: {tmp}/file: File exists\n", log)
    for words in ([], ["--line"], ["--other"], ["a", "b"]):
        code, log = said_of(*script, *words, cwd=tmp)
        check(f"it says how it is called, not by {words}", code == 1 and log.startswith("two_files [--line] FOLDER\n"), log)


def check_version():
    version = re.search(r"version: '(.*)'", (ROOT / "meson.build").read_text())[1]

    def named(**options):
        run(sys.executable, tree / "packaging/two_files", tmp / "out", **options)
        lines = {(tmp / f"out/cuguest_core.{part}").read_text().splitlines()[2] for part in ("h", "cc")}
        return {re.fullmatch(r"// cuguest (.*): cuguest_core\.(?:h|cc), .*", line)[1] for line in lines}

    outer = tmp / "outer"
    tree = outer / "cuguest"
    for part in ("include", "lib", "packaging"):
        shutil.copytree(ROOT / part, tree / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    if shutil.which("git"):
        for repository in (outer, tree):
            run(*GIT, "init", "--quiet", cwd=repository)
            run(*GIT, "commit", "--quiet", "--allow-empty", "-m", "a", cwd=repository)
        run(*GIT, "add", ".", cwd=tree)
        run(*GIT, "commit", "--quiet", "-m", "b", cwd=tree)
        commit = run(*GIT, "rev-parse", "--short", "HEAD", cwd=tree).strip()
        check("the version names the commit", named() == {f"{version} ({commit})"}, named())
        check("but where git is not installed", named(env={"PATH": str(tmp)}) == {version})
    for path in ("include/cuguest/context_guard.h", "lib/core/error.cc", "lib/share/registry.h"):
        with open(tree / path, "a") as source:
            source.write("#error here\n")
    if shutil.which("git"):
        check("and says that there are local changes", named() == {f"{version} ({commit}, with local changes)"}, named())
        shutil.rmtree(tree / ".git")
    check("a tree within another project's repository has no commit", named() == {version}, named())

    run(sys.executable, tree / "packaging/two_files", "--line", tmp / "out")
    _, log = said_of("g++", "-std=c++17", NO_TOOLKIT, "-fsyntax-only", tmp / "out/cuguest_core.cc")
    places = re.findall(r"^(\S+):(\d+):\d+: error: #error here", log, re.M)
    expected = [(path, str((tree / path).read_text().count("\n")))
                for path in ("include/cuguest/context_guard.h", "lib/core/error.cc", "lib/share/registry.h")]
    check("--line names the sources and their lines", sorted(places) == expected, log[:2000])


with scratch() as tmp:
    script = [sys.executable, ROOT / "packaging/two_files"]
    run(*script, tmp)
    (tmp / "old").mkdir()
    (tmp / "old/cuda.h").write_text("#define CUDA_VERSION 11080\ntypedef struct CUctx_st* CUcontext;\n")
    for name in ("g++", "clang++"):
        if shutil.which(name):
            check_compiler(name)
        else:
            print(f"skipped: no {name}")
    check_folders()
    check_version()
    done()

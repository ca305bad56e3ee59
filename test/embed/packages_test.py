#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""packages_test.py debian|conan|wheels|release COMPILER TOOLKIT_INCLUDE

A package of the tracked files is made and used, and says the version that the build has; and a release is, of a copy. Of
the wheels, which pycuguest_test.py uses, it looks at what they need and show. What is needed for it is looked for, that of
pip also in the folder CUGUEST_TEST_PACKAGES.
"""

import os
import re
import shutil
import subprocess
import sys
import zipfile

from common import (HERE, ROOT, build_viewer, check, check_exports_only_ours, check_links_no_cuda, check_runs_without_driver,
                    cmake_environment, done, environment, exported, meson_environment, needed, run, scratch,
                    toolkit_environment, toolkit_flags, toolkit_options)

what, compiler, toolkit = sys.argv[1:]
PACKAGES = os.environ.get("CUGUEST_TEST_PACKAGES", "")


def version_of(tree):
    return re.search(r"^  version: '(.*)'", (tree / "meson.build").read_text(), re.M)[1]


VERSION = version_of(ROOT)
ABI = VERSION.rsplit(".", 1)[0] if VERSION.startswith("0.") else VERSION.split(".")[0]
NEXT = re.sub(r"\d+$", lambda patch: str(int(patch[0]) + 1), VERSION)  # that of a release in a copy


def succeeds(*command, **kwargs):
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, **kwargs).returncode == 0


def skip_without(names):
    if names:
        print(f"skipped: without {', '.join(names)}\ncases: 0 passed, 0 failed, 1 skipped")
        sys.exit(77)


def copy_of_tracked(to):
    """A repository of its own, with what is not yet committed."""
    files = run("git", "-C", ROOT, "ls-files", "-z").split("\0")
    for file in filter(None, files):
        if (ROOT / file).exists():
            (to / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, to / file, follow_symlinks=False)
    git = ["git", "-C", to, "-c", "user.name=a", "-c", "user.email=a@example.org"]
    run("git", "init", "--quiet", "--initial-branch=main", to)
    for name, value in (("name", "a"), ("email", "a@example.org")):
        run("git", "-C", to, "config", f"user.{name}", value)
    run(*git, "add", "--all")
    run(*git, "commit", "--quiet", "--message", "Copy")
    return git


def debian(tmp):
    skip_without([name for name in ("debhelper", "libabsl-dev", "lintian", "meson", "pkg-config|pkgconf")
                  if not any(succeeds("dpkg", "-s", one) for one in name.split("|"))])
    # Meson's package, whatever else there is; and ccache knows an object again that does not have its folder's name.
    env = meson_environment(compiler, DEB_BUILD_OPTIONS="nocheck noddebs parallel=2 reproducible=-fixfilepath", PATH="/usr/bin:" + os.environ["PATH"],
                            **toolkit_environment(toolkit))
    out = tmp / "out"
    run(ROOT / "packaging" / "deb", out, env=env)
    run("lintian", "--fail-on", "error,warning", out / f"cuguest_{VERSION}_{machine()}.changes")
    check("lintian has no error or warning", True)
    for package in out.glob("*.deb"):
        check(f"{package.name} has the version", run("dpkg-deb", "--field", package, "Version").strip() == VERSION)
        run("dpkg-deb", "--extract", package, tmp / "unpacked")
    check("the library's package has the soname in its name", list(out.glob(f"libcuguest{ABI}_*.deb")))
    unpacked = tmp / "unpacked" / "usr"
    libdir = next((unpacked / "lib").glob("*/libcuguest-core.a")).parent
    dynamic = run("readelf", "-d", libdir / "libcuguest.so")
    check("which the library has", f"soname: [libcuguest.so.{ABI}]" in dynamic, dynamic)
    check_exports_only_ours(libdir / "libcuguest.so")

    env = environment(PKG_CONFIG_PATH=str(libdir / "pkgconfig"), PKG_CONFIG_SYSROOT_DIR=str(tmp / "unpacked"))
    for name in ("cuguest", "cuguest-core", "cuguest-runtime"):
        check(f"{name}.pc has the version", run("pkg-config", "--modversion", name, env=env).strip() == VERSION)
    flags = run("pkg-config", "--cflags", "--libs", "cuguest", env=env).split()
    by_pkg_config, by_cmake = tmp / "pkg-config", tmp / "cmake"
    by_pkg_config.mkdir()
    build_viewer([compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror", *toolkit_flags(toolkit)], by_pkg_config, flags,
                 environment(LD_LIBRARY_PATH=str(libdir)))
    run("cmake", "-S", HERE / "consumer", "-B", by_cmake, f"-DPARENT={HERE / 'parent'}", f"-DCMAKE_PREFIX_PATH={unpacked}",
        "-DCMAKE_CXX_STANDARD=17", *toolkit_options(toolkit, "cuguest_TOOLKIT_INCLUDE"),
        env=cmake_environment(compiler))
    run("cmake", "--build", by_cmake, "-j1", env=cmake_environment(compiler))
    found = (by_cmake / "CMakeCache.txt").read_text()
    check("CMake found this one", f"cuguest_DIR:PATH={libdir}/" in found, found)
    check("whose version it is", f'"{VERSION}"' in (libdir / "cmake" / "cuguest" / "cuguestConfigVersion.cmake").read_text())
    for built in (by_pkg_config, by_cmake):
        check_links_no_cuda(built / "libpicture.so", built / "viewer")
        check_runs_without_driver(built / "viewer", LD_LIBRARY_PATH=f"{libdir}:{built}")
    report = run(unpacked / "bin" / "cuguest-audit", "--", "true")
    check("the auditor runs from there", "0 findings" in report, report)


def machine():
    return run("dpkg", "--print-architecture").strip()


def conan(tmp):
    # The compiler is that which conan finds.
    conan_environment = environment(CONAN_HOME=str(tmp / "home"), PYTHONPATH=PACKAGES,
                                    PATH=f"{PACKAGES}/bin:{os.environ['PATH']}", **toolkit_environment(toolkit))
    skip_without([] if shutil.which("conan", path=conan_environment["PATH"]) else ["conan, of pip"])
    copy_of_tracked(tmp / "tree")
    run("conan", "profile", "detect", env=conan_environment)
    log = run("conan", "create", tmp / "tree", "--no-remote", env=conan_environment)
    check("conan creates the package, and a program of it runs", f"cuguest {VERSION}: " in log, log)
    listed = run("conan", "list", "cuguest-core/*", env=conan_environment)
    check("of this version", re.search(rf"^\s*cuguest-core/{re.escape(VERSION)}$", listed, re.M), listed)


def wheels(tmp):
    env = environment(PYTHONPATH=PACKAGES, **toolkit_environment(toolkit))
    skip_without([] if succeeds("python3", "-c", "import ziglang", env=env) else ["ziglang, of pip"])
    run(ROOT / "packaging" / "wheels", tmp, env=env)
    for machine_name, in_elf in (("x86_64", "X86-64"), ("aarch64", "AArch64")):
        wheel = tmp / f"cuguest-{VERSION}-cp39-abi3-manylinux_2_28_{machine_name}.whl"
        check(f"{wheel.name} is made", wheel.exists(), list(tmp.glob("*")))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(tmp / machine_name)
        package = tmp / machine_name / "cuguest"
        collector = package / "_auditor" / "collect" / "libcuguest-audit.so"
        check("the auditor's library exports its beginnings alone",
              exported(collector) == ["CuguestAuditCollectInto", "InitializeInjection"], exported(collector))
        for binary in (collector, package / "_core.abi3.so", package / "_auditor" / "command" / "cuguest-audit"):
            check(f"{binary.name} is for {machine_name}", in_elf in run("readelf", "-h", binary))
            check("and needs the C library alone", all(name.startswith(("libc.so", "ld-linux", "libdl", "libpthread"))
                                                       for name in needed(binary)), needed(binary))
            check("and names no folder of ours", str(ROOT).encode() not in binary.read_bytes())


def release(tmp):
    env = meson_environment(compiler, PYTHONPATH=PACKAGES)
    skip_without([] if succeeds("python3", "-m", "reuse", "--version", env=env) else ["reuse, of pip"])
    tree, out = tmp / "tree", tmp / "out"
    git = copy_of_tracked(tree)
    changelog = tree / "CHANGELOG.md"

    def refused(why, *arguments):
        before = run(*git, "rev-parse", "HEAD"), sorted(tmp.iterdir())
        tried = subprocess.run([tree / "packaging" / "release", *arguments], env=env, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, check=False)
        check(f"refused: {why}", tried.returncode and why in tried.stdout, tried.stdout)
        check("and nothing is changed", before == (run(*git, "rev-parse", "HEAD"), sorted(tmp.iterdir())))

    refused("usage", NEXT, out)
    refused(f"no section of {NEXT}", "prepare", NEXT)
    refused(f"has a section of {VERSION}", "begin", VERSION)
    refused("0.0.1 is older than", "begin", "0.0.1")
    (tree / ".ci" / "run").write_text("#!/bin/sh\n[ ! -e build-release ] && echo '3 passed, 0 failed, 0 skipped'\n")
    refused("has changes", "begin", NEXT)
    run(*git, "commit", "--quiet", "--all", "--message", "A run that says so")
    said = run(tree / "packaging" / "release", "begin", NEXT, env=env)
    check("a version begins", f"release: {NEXT} begins" in said and version_of(tree) == NEXT, said)
    begun = run(sys.executable, tree / "test" / "style" / "versions_test.py", tree)
    check("its files and sections are of one version", ", 0 failed" in begun, begun)
    refused("has no date", "pack", out, "two_files")

    said = run(tree / "packaging" / "release", "prepare", NEXT, env=env)
    check("a commit is prepared", f"release: {NEXT} is commit " in said, said)
    check("the branch is at it, and nothing is tagged",
          run(*git, "log", "-1", "--format=%s").strip() == f"Release {NEXT}" and not run(*git, "tag"))
    check("the changelog has its date", re.search(rf"^## {re.escape(NEXT)} \(20\d\d-", changelog.read_text(), re.M))
    refused("was not tested", "pack", out, "two_files")
    refused("", "test", "false")  # whose clone is left, to look at
    refused("was not tested", "pack", out, "two_files")
    run(tree / "packaging" / "release", "test", "echo", "not all", env=env)
    refused("was not tested", "pack", out, "two_files")
    run(tree / "packaging" / "release", "test", env=env)
    refused("no artefact wheel", "pack", out, "wheel")
    names = ["cuguest_core.cc", "cuguest_core.h", *(f"cuguest-{NEXT}{end}" for end in ("-runs.md", ".spdx", ".tar.xz"))]
    outs = [out, tmp / "again"]
    for each in outs:
        said = run(tree / "packaging" / "release", "pack", each, "spdx", "two_files", "runs", env=env)
        check("artefacts are made", f"release: {NEXT} is commit " in said, said)
        check("those that were named", sorted(file.name for file in each.iterdir()) == sorted([*names, "SHA256SUMS"]))
        run("sha256sum", "--check", "SHA256SUMS", cwd=each)
    check("twice the same", len({(each / "SHA256SUMS").read_text() for each in outs}) == 1)
    document = (out / f"cuguest-{NEXT}.spdx").read_text()
    check("whose document lists the files", document.startswith("SPDXVersion: SPDX-2") and "lib/guard/scope.cc" in document)
    runs = (out / f"cuguest-{NEXT}-runs.md").read_text()
    check("the page has the runs and the bare machines", re.search(r"`.ci/run`: 3 passed, 0 failed, 0 skipped$", runs, re.M) and
          "`echo not all`: not all" in runs and "bare machines" in runs, runs)
    run("tar", "-xf", out / f"cuguest-{NEXT}.tar.xz", "-C", tmp)
    check("the archive has the version", version_of(tmp / f"cuguest-{NEXT}") == NEXT)
    header = (tmp / f"cuguest-{NEXT}" / "include" / "cuguest" / "version.h").read_text()
    major, minor, patch = NEXT.split(".")
    check("and so has its header", f'CUGUEST_VERSION "{NEXT}"' in header and
          re.search(rf"MAJOR {major}\n.*MINOR {minor}\n.*PATCH {patch}\n", header), header)
    check("and the wheel", version_of(tmp / f"cuguest-{NEXT}" / "subprojects" / "pycuguest") == NEXT)
    run(*git, "commit", "--quiet", "--allow-empty", "--message", "Another")
    refused("was not tested", "pack", tmp / "other", "two_files")
    check("no clone is left", not list(tree.glob("build-release*")))


newest = re.search(r"^## (\S+) \(", (ROOT / "CHANGELOG.md").read_text(), re.M)[1]
with scratch() as tmp:
    check("the changelog begins with the version", newest == VERSION, newest)
    {"debian": debian, "conan": conan, "wheels": wheels, "release": release}[what](tmp)
    done()

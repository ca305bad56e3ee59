#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""installed_test.py pkgconfig|cmake static|shared COMPILER TOOLKIT_INCLUDE MESON...

cuguest installed to a prefix, and used from there by a build that is not Meson.
"""

import json
import shutil
import sys

from common import (HERE, ROOT, check, check_exports_only_ours, check_links_no_cuda,
                    check_runs_without_driver, done, environment, run, scratch)

consumer, kind, compiler, toolkit, *meson = sys.argv[1:]
if not shutil.which("cmake" if consumer == "cmake" else "pkg-config"):
    print(f"skipped: {consumer}: not installed")
    print("cases: 0 passed, 0 failed, 1 skipped")
    sys.exit(77)

with scratch() as tmp:
    build, prefix, out = tmp / "build", tmp / "prefix", tmp / "out"
    env = environment(CXX=compiler)
    run(*meson, "setup", build, ROOT, f"--prefix={prefix}", f"-Ddefault_library={kind}", "--buildtype=plain",
        f"-Dtoolkit_include={toolkit}", "-Dtests=enabled", "-Dexamples=disabled", "-Dkernels=disabled",
        "-Dbenchmarks=disabled", env=env)
    # Of the tests only cuguest-testing and the simulation are wanted.
    targets = json.loads(run(*meson, "introspect", "--targets", build))
    files = [f for t in targets if t["installed"] for f in t["filename"]]
    run("ninja", "-C", build, "-j2", *(f.removeprefix(f"{build}/") for f in files), env=env)
    run(*meson, "install", "-C", build, "--no-rebuild", env=env)

    out.mkdir()
    libdir = next(prefix.rglob("cuguest.pc")).parent.parent
    changes = {"CXX": compiler, "PKG_CONFIG_PATH": str(libdir / "pkgconfig"),
               "LD_LIBRARY_PATH": f"{libdir}:{out}"}
    env = environment(**changes)
    if kind == "shared":
        check_exports_only_ours(libdir / "libcuguest.so")

    if consumer == "pkgconfig":
        static = ["--static"] if kind == "static" else []

        def flags(name):
            return run("pkg-config", "--cflags", "--libs", *static, name, env=env).split()

        check("-DCUGUEST_STATIC comes with the static library only",
              ("-DCUGUEST_STATIC" in flags("cuguest")) == (kind == "static"), flags("cuguest"))
        parent, common = HERE / "parent", [compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror"]
        run(*common, "-fPIC", "-shared", "-fvisibility=hidden", parent / "picture.cc",
            "-o", out / "libpicture.so", *flags("cuguest"), env=env)
        run(*common, parent / "viewer.cc", "-o", out / "viewer", f"-L{out}", "-lpicture", env=env)
        run(*common, HERE / "consumer" / "simulated.cc", "-o", out / "simulated",
            *flags("cuguest-testing"), env=env)
        run(*common, "-fsyntax-only", HERE / "consumer" / "versions.cc", *flags("cuguest-runtime"), env=env)
        simdir = run("pkg-config", "--variable=simdir", "cuguest-testing", env=env).strip()
    else:
        run("cmake", "-S", HERE / "consumer", "-B", out, f"-DPARENT={HERE / 'parent'}",
            f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_CXX_STANDARD=17",
            *([f"-Dcuguest_TOOLKIT_INCLUDE={toolkit}"] if toolkit else []), env=env)
        run("cmake", "--build", out, "-j2", env=env)
        simdir = (out / "simdir").read_text()
    check(f"builds with {compiler} through {consumer}", True)

    binaries = [out / "libpicture.so", out / "viewer"]
    check_links_no_cuda(*binaries, *([libdir / "libcuguest.so"] if kind == "shared" else []))
    check_runs_without_driver(out / "viewer", LD_LIBRARY_PATH=changes["LD_LIBRARY_PATH"])
    run(out / "simulated", env=environment(LD_LIBRARY_PATH=f"{simdir}:{libdir}"))
    check("a test linked with cuguest-testing runs on the installed simulation", True)
    done()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""subproject_test.py static|shared true|false COMPILER TOOLKIT_INCLUDE MESON...

A parent of ten lines takes cuguest as a Meson subproject, without exceptions and RTTI,
with more warnings than anybody asks for, all of them errors, and gets a library that
shows nothing of it. The second argument: whether a header is precompiled, which hides
that a source does not include what it uses.
"""

import json
import shlex
import shutil
import subprocess
import sys

from common import (HERE, OURS, ROOT, check, check_exports_only_ours, check_links_no_cuda,
                    check_runs_without_driver, done, exported, files_below, meson_environment, run, scratch, toolkit_options, visible)

kind, precompiled, compiler, toolkit, *meson = sys.argv[1:]

with scratch() as tmp:
    parent, build, stage = tmp / "parent", tmp / "build", tmp / "stage"
    shutil.copytree(HERE / "parent", parent)
    (parent / "subprojects").mkdir()
    (parent / "subprojects" / "cuguest").symlink_to(ROOT)
    env = meson_environment(compiler, precompiled == "true", CXXFLAGS="-fno-exceptions -fno-rtti -Wconversion -Wshadow")

    strict = ["-Dwarning_level=3", "-Dwerror=true"]
    log = run(*meson, "setup", build, parent, "--prefix=/usr", "--libdir=lib", "--buildtype=plain",
        "--force-fallback-for=cuguest",
        f"-Db_pch={precompiled}", *strict, *(option.replace("-D", "-Dcuguest:") for option in strict),
        f"-Dcuguest:default_library={kind}", *toolkit_options(toolkit, "cuguest:toolkit_include"), env=env)
    run("ninja", "-C", build, "-j1", env=env)
    check(f"builds with {compiler} and {' '.join(strict)}", True)

    def introspect(what):
        return json.loads(run(*meson, "introspect", f"--{what}", build))

    unused = ("cublas", "cufft", "cudart", "eigen", "boost", "benchmark", "doxygen")
    asked = [line for line in log.splitlines() if any(name in line.lower() for name in unused) and "skipped:" not in line]
    check("asks for nothing that a library does not use", "absl_status" in log and not asked, asked)
    check("configures no test of ours", not introspect("tests") and not introspect("benchmarks"))
    targets = [t["name"] for t in introspect("targets") if t["build_by_default"]]
    check("builds nothing of ours but the library", sorted(targets) == ["cuguest", "picture", "viewer"], targets)

    # The program does not use cuguest, so its command is what the parent gives everybody.
    commands = {c["file"].split("/")[-1]: set(shlex.split(c["command"]))
                for c in json.loads((build / "compile_commands.json").read_text())}
    extra = {word for word in commands["picture.cc"] - commands["viewer.cc"]
             if not word.startswith(("-I", "-isystem")) and "picture" not in word}
    # What Abseil wants of its users (-DNOMINMAX, here and there) is between it and them.
    extra -= {"-fPIC", "-fvisibility=hidden", *run("pkg-config", "--cflags", "absl_status", "absl_statusor").split()}
    check("adds no flag to the parent's files but -DCUGUEST_STATIC in a static build",
          extra == ({"-DCUGUEST_STATIC"} if kind == "static" else set()), extra)

    # Without cuguest-testing.
    log = run(*meson, "setup", tmp / "untested", parent, "--force-fallback-for=cuguest", "-Dcuguest:tests=disabled",
              f"-Dcuguest:default_library={kind}", *toolkit_options(toolkit, "cuguest:toolkit_include"), env=env)
    targets = {t["name"] for t in json.loads(run(*meson, "introspect", "--targets", tmp / "untested"))}
    ours = {"cuguest", "cuguest-core", "cuguest_embedded", *(["cuguest-objects", "cuguest-libraries"] if kind == "static" else [])}
    check("tests=disabled: configures the library and no simulation",
          targets == {*ours, "picture", "viewer"} and "python" not in log.lower(), targets)

    # A parent with tests, and with options of its own that reach us: its sources are one each
    # target, which those of the library cannot be, and its archives are for programs only. What would be built
    # is looked at; to build it would take minutes.
    if kind == "static":
        plain = (parent / "meson.build").read_text()
        with (parent / "meson.build").open("a") as file:
            file.write("executable('tested', 'viewer.cc', link_with: picture, dependencies: dependency('cuguest-testing'))\n")
        tested = tmp / "tested"
        options = ["--force-fallback-for=cuguest", "-Dunity=on", "-Db_staticpic=false", f"-Dcuguest:default_library={kind}",
                   *toolkit_options(toolkit, "cuguest:toolkit_include")]
        run(*meson, "setup", tested, parent, *options, "--buildtype=debugoptimized", env=env)
        steps = run("ninja", "-C", tested, "-n", "-v", env=env).splitlines()
        linked = [at for at, step in enumerate(steps) if "/cudasim/sim/libcuda.so.1 " in step and " -o " in step]
        uses = [at for at, step in enumerate(steps) if " -o tested.p/" in step]
        compiled = [step for step in steps if " -c " in step and " -o subprojects/cuguest/" in step]
        together = [step for step in compiled if "unity" in step and " -o subprojects/cuguest/lib/" in step]
        check("each source of the library is compiled by itself", len(compiled) > 50 and not together, together)
        run(*meson, "setup", tmp / "debug", parent, *options, "-Dcpp_args=-g2", env=env)
        commands = json.loads((tmp / "debug" / "compile_commands.json").read_text())
        outputs = [c["output"] for c in commands if c["output"].startswith("subprojects/cuguest/")]
        check("in a debug build each target of ours is one source", 5 < len(outputs) < 40 and all("unity" in output
              for output in outputs if "/lib/" in output), outputs)
        library = [shlex.split(c["command"]) for c in commands if c["output"].startswith("subprojects/cuguest/lib/")]
        check("with line tables alone, unless the parent says more", library and all(
              "-g1" in words and words.index("-g1") < words.index("-g2") for words in library), library[:1])
        check("ours is compiled for any use", all(" -fPIC " in step for step in compiled),
              [step for step in compiled if " -fPIC " not in step])
        check("what uses cuguest-testing is compiled after the simulation is built",
              linked and uses and linked[0] < uses[0], (linked, uses, steps[-20:]))

        # Of 2020-02-25, which has no absl::StatusOr.
        (tmp / "pc").mkdir()
        (tmp / "pc" / "absl_status.pc").write_text("Name: absl_status\nDescription: old\nVersion: 20200225\n")
        old = subprocess.run([*meson, "setup", tmp / "old", parent, *options, "--wrap-mode=nodownload"], text=True,
                             env={**env, "PKG_CONFIG_LIBDIR": str(tmp / "pc")}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        check("an Abseil that is too old is told as such", old.returncode and "Abseil 20200923 or newer is needed" in old.stdout,
              old.stdout[-2000:])

        # Meson gives the simulation's subproject the option once. What reconfigures without an effect is refused.
        def reconfigure(*options):
            result = subprocess.run([*meson, "setup", "--reconfigure", tested, parent, *options], env=env, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            return result.returncode, result.stdout

        code, log = reconfigure("-Dcuguest:sim_libraries=enabled")
        check("refuses sim_libraries on reconfiguring, and names the option that works",
              code and "-Dcudasim:libraries=enabled" in log, log[-2000:])
        code, log = reconfigure("-Dcuguest:sim_libraries=enabled", "-Dcudasim:libraries=enabled")
        targets = {t["name"] for t in json.loads(run(*meson, "introspect", "--targets", tested))}
        check("the option that it names works", (not code and "cublas" in targets) or "eigen3" in log, log[-2000:])

    # The parent as a subproject of somebody's own, so that the simulation is one of a subproject of a subproject.
    if kind == "static":
        (parent / "meson.build").write_text(plain)
        outer, nested = tmp / "outer", tmp / "nested"
        (outer / "subprojects").mkdir(parents=True)
        (outer / "subprojects" / "parent").symlink_to(parent)
        (outer / "test.cc").write_text('#include "cudasim/sim.h"\nint main() { return cudasim::Sim::IsActive() ? 0 : 1; }\n')
        (outer / "meson.build").write_text(
            "project('outer', 'cpp')\nsubproject('parent')\ntesting = dependency('cuguest-testing')\n"
            "test('nested', executable('nested', 'test.cc', dependencies: testing),\n"
            "     env: {'LD_LIBRARY_PATH': testing.get_variable('simdir')})\n")
        options = ["--force-fallback-for=cuguest", f"-Dcuguest:default_library={kind}", *toolkit_options(toolkit, "cuguest:toolkit_include")]
        run(*meson, "setup", nested, outer, *options, env=env)
        steps = run("ninja", "-C", nested, "-n", "-v", "nested", env=env)
        check("finds the simulation in a subproject of a subproject", "/cudasim/sim/libcuda.so.1 " in steps, steps[-2000:])
        # Meson then looks in the parent's own subprojects only.
        run(*meson, "setup", tmp / "unpromoted", parent, "--wrap-mode=nopromote", *options, env=env)
        targets = {t["name"] for t in json.loads(run(*meson, "introspect", "--targets", tmp / "unpromoted"))}
        check("does without cuguest-testing where subprojects are not promoted",
              "cuguest" in targets and not {"cuguest-testing", "cuda"} & targets, targets)

    picture = build / "libpicture.so"
    # Its own, and the inline std:: functions of its own object, which libstdc++ makes
    # visible. (Inline members of a shared cuguest's classes are compiled into it too.)
    exports = set(exported(picture))
    own = visible(next(build.rglob("picture.cc.o")))
    ours = {name for name in exports if "cuguest" in name or "absl" in name}
    if kind == "shared":
        ours = {name for name in ours if not name.startswith("cuguest::") or name not in own}
    check("the parent's library exports only its own symbols",
          "PictureStatus()" in exports and exports <= own and not ours, sorted(ours | (exports - own)))
    binaries = [picture, build / "viewer"]
    if kind == "shared":
        library = next((build / "subprojects").rglob("libcuguest.so"))
        check_exports_only_ours(library)
        binaries.append(library)
    check_links_no_cuda(*binaries)
    check_runs_without_driver(build / "viewer")

    run(*meson, "install", "-C", build, "--no-rebuild", "--destdir", stage, env=env)
    installed = files_below(stage)
    ours = [name for name in installed if any(part in name for part in OURS)]
    check("installs the parent", {"usr/lib/libpicture.so", "usr/bin/viewer"} <= set(installed), installed)
    if kind == "static":
        check("installs nothing of ours", not ours and len(installed) == 2, installed)
    else:
        expected = {"usr/lib/libcuguest.so", "usr/include/cuguest/context_guard.h",
                    "usr/lib/pkgconfig/cuguest.pc", "usr/lib/cmake/cuguest/cuguestConfig.cmake"}
        check("installs library, headers, pkg-config and CMake files", expected <= set(installed), installed)
        check("installs nothing else, and no test part",
              len(ours) + 2 == len(installed) and not any("testing" in n or "sim" in n for n in ours), installed)
    done()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""That each way of building cuguest finds the toolkit by its one rule (toolkit_test.py has that), configured only: in
/usr/local/cuda, and in a folder that only a variable, an nvcc or an option names."""

import os
import pathlib
import shlex
import shutil

from common import HIDE, ROOT, check, environment, namespace, run, skip

HELLO = '#include "cuguest/context_guard.h"\nint main() { cuguest::ContextGuard guard(nullptr); }\n'
# The simulation is what an embedder has beside the library; it is not configured here, for its time.
MESON = """
project('host', 'cpp', default_options: ['cpp_std=c++17'])
cuguest = dependency('%s', fallback: 'cuguest', default_options: ['default_library=static', 'tests=disabled', %s])
executable('hello', 'hello.cc', dependencies: cuguest)
"""
CMAKE = """
cmake_minimum_required(VERSION 3.22)
project(host CXX)
%s
add_subdirectory(%s cuguest)
add_executable(hello hello.cc)
target_link_libraries(hello PRIVATE %s)
"""


class Ways:
    """Projects in `tmp`, of hosts of `toolkit`, and the toolkit's folder at `elsewhere`."""

    def __init__(self, tmp, toolkit):
        self.tmp, self.elsewhere, self.count = tmp, tmp / "opt" / "cuda", 0
        self.elsewhere.mkdir(parents=True)
        self.root = pathlib.Path(toolkit).resolve().parent
        moved = f"mount --bind {shlex.quote(str(self.root))} {shlex.quote(str(self.elsewhere))} || exit 99\n" + HIDE
        self.moved = namespace(moved) or skip("unshare is not permitted, or not installed")
        self.is_usual = os.path.isdir("/usr/local/cuda") and os.path.samefile("/usr/local/cuda", self.root)

    def project(self, name, **files):
        folder = self.tmp / name
        (folder / "subprojects").mkdir(parents=True)
        (folder / "subprojects" / "cuguest").symlink_to(ROOT)
        for file, text in {"hello.cc": HELLO, **files}.items():
            (folder / file).write_text(text)
        return folder

    def configures(self, what, command, sources, *options, place="usual", path=(), **variables):
        """`command` is up to the folder of the sources; the build must name the place's headers."""
        if place == "usual" and not self.is_usual:
            return
        self.count += 1
        build = self.tmp / f"build-{self.count}"
        at = pathlib.Path("/usr/local/cuda") if place == "usual" else self.elsewhere
        env = environment(PATH=":".join([*map(str, path), os.environ["PATH"]]), **{k: str(v) for k, v in variables.items()})
        words = [str(word).format(build=build, sources=sources) for word in command]
        log = run(*([] if place == "usual" else self.moved), *words, *options, env=env)
        compiled = "".join(file.read_text() for name in ("build.ninja", "compile_commands.json")
                           for file in build.rglob(name))
        check(what, f"{at}/include" in compiled, log)
        shutil.rmtree(build)

    def check(self, tool, command, sources, option):
        """The ways of one tool to build `sources`."""
        opt = self.elsewhere
        self.configures(f"{tool}: /usr/local/cuda", command, sources)
        for name in ("CUDAToolkit_ROOT", "CUDA_PATH", "CUDA_HOME"):
            self.configures(f"{tool}: ${name}", command, sources, place="elsewhere", **{name: opt})
        self.configures(f"{tool}: nvcc on the PATH", command, sources, place="elsewhere", path=[opt / "bin"])
        self.configures(f"{tool}: a link to nvcc on the PATH", command, sources, place="elsewhere", path=[self.link()])
        self.configures(f"{tool}: -D{option}", command, sources, f"-D{option}={opt}/include", place="elsewhere")

    def link(self):
        folder = self.tmp / "links"
        folder.mkdir(exist_ok=True)
        if not (folder / "nvcc").is_symlink():
            (folder / "nvcc").symlink_to(self.elsewhere / "bin" / "nvcc")
        return folder


def check_meson(ways, meson, version):
    """At the top, all three subprojects alone, and as a subproject."""
    setup = [*meson, "setup", "{build}", "{sources}"]
    top = [*setup, "-Dauto_features=disabled"]
    ways.configures(f"Meson {version}, at the top: /usr/local/cuda", top, ROOT)
    ways.configures(f"Meson {version}, at the top, all features: nvcc on the PATH", setup, ROOT, place="elsewhere",
                    path=[ways.elsewhere / "bin"])
    for part in ("cudasim", "cuguest-audit"):
        ways.configures(f"Meson {version}, {part} alone: nvcc on the PATH", top, ROOT / "subprojects" / part,
                        place="elsewhere", path=[ways.elsewhere / "bin"])
    host = ways.project(f"host-{version}", **{"meson.build": MESON % ("cuguest", "")})
    ways.check(f"Meson {version}, a subproject", setup, host, "cuguest:toolkit_include")
    host = ways.project(f"core-{version}", **{"meson.build": MESON % ("cuguest-core", "'abseil=disabled'")})
    ways.configures(f"Meson {version}, the core as a subproject: nvcc on the PATH", setup, host, place="elsewhere",
                    path=[ways.elsewhere / "bin"])


def check_cmake(ways, cmake, compiler):
    """As part of another project, the library, the core and the simulation."""
    configure = [cmake, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={compiler}", "-S", "{sources}", "-B", "{build}"]
    host = ways.project("by_cmake", **{"CMakeLists.txt": CMAKE % ("", ROOT, "cuguest::cuguest")})
    ways.check("CMake", configure, host, "cuguest_TOOLKIT_INCLUDE")
    ways.configures("CMake: -DCUDAToolkit_ROOT", configure, host, f"-DCUDAToolkit_ROOT={ways.elsewhere}", place="elsewhere")
    host = ways.project("core_by_cmake", **{"CMakeLists.txt": CMAKE % ("set(CUGUEST_ABSEIL OFF)", ROOT, "cuguest::core")})
    ways.configures("CMake, the core: nvcc on the PATH", configure, host, place="elsewhere", path=[ways.elsewhere / "bin"])
    host = ways.project("sim_by_cmake", **{"CMakeLists.txt": CMAKE % ("", ROOT / "subprojects/cudasim", "cudasim::cudasim")})
    ways.configures("CMake, cudasim alone: nvcc on the PATH", configure, host, place="elsewhere", path=[ways.elsewhere / "bin"])

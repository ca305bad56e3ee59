#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pack.py BUILD OUT: a folder that runs the tests where there is only Python: run.py and an archive.

Packs the test, example and benchmark programs of a Meson build, and the libraries that
they load, into OUT/pack.tar.xz. Paths in it are those below BUILD, since tests find
their libraries beside themselves. The simulated driver, runtime and libraries stay behind.
A test that is a Python script is run by the Python of the machine that runs it; test/headers/used_test.py by
its compilers, too, with our headers, <cuda.h> and the core's archive. What a test gives Python with -c becomes a
script: so a test that could not be built says there, too, what is missing. Tests of other programs are left out, by
name.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SUITES = ("unit", "process", "interop", "hosts", "audited", "examples", "benchmark")
# Of the machine that runs it: the C and C++ runtimes, the driver, and the toolkit's large libraries.
TOOLKIT = "cublas|cublasLt|cufft|cusolver|cusparse|nccl|nvJitLink"
NOT_OURS = re.compile(rf"(ld-linux|linux-vdso|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|cuda|nvidia|{TOOLKIT})[.-])")

# Device code that a program finds beside itself.
IMAGES = (".cubin", ".ptx")

# As a program finds them without help, so the toolkit's runtime and not the simulated one.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "headers"))
from flags import ROOT, system_includes

build, archive_directory = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
contents = tempfile.TemporaryDirectory(prefix="cuguest-pack-")
out = pathlib.Path(contents.name)
to_strip, seen = [], set()


def introspect(what):
    result = subprocess.run(["meson", "introspect", f"--{what}", str(build)], check=True, capture_output=True)
    return json.loads(result.stdout)


def copy(source, name, strip=True):
    target = out / name
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    if strip:
        to_strip.append(target)


def linked(path):
    """The names of the libraries that it is linked with, and where they are found."""
    return re.findall(r"(\S+) => (/\S+)", subprocess.check_output(["ldd", path], env=ENVIRONMENT, text=True))


def copy_with_libraries(path, directory):
    """Libraries of the build to where they were in it, others to `directory`."""
    if (path, directory) in seen:
        return
    seen.add((path, directory))
    copy(path, path.relative_to(build))
    for name, found in linked(path):
        if NOT_OURS.match(name):
            continue
        library = pathlib.Path(found)
        # ldd may answer with build/test/../lib/...
        inside = library.parent.resolve()
        copy(library, (inside.relative_to(build) if build in [inside, *inside.parents] else pathlib.Path(directory)) / name)


def is_parallel(test):
    """What is free of the device's memory is everybody's."""
    return test["is_parallel"] and not any(suite.endswith(":device_memory") for suite in test["suite"])


def paths_in(environment):
    """Of a test's variables those that name a packed file, by its path in the pack."""
    inside = {name: os.path.relpath(value, build) for name, value in environment.items()}
    return {name: path for name, path in inside.items() if not path.startswith("..") and (out / path).is_file()}


def cases_in(environment):
    """Of a test's variables those of Boost.Test: which suite of the program it is."""
    return {name: value for name, value in environment.items() if name.startswith("BOOST_TEST_")}


def copy_script(path):
    """With the modules beside it."""
    for module in path.parent.glob("*.py"):
        copy(module, pathlib.Path("scripts") / path.parent.name / module.name, strip=False)
    return pathlib.Path("scripts") / path.parent.name / path.name


def write_script(name, text):
    """What Python is given with -c."""
    file = pathlib.Path("scripts") / "inline" / f"{name}.py"
    (out / file).parent.mkdir(parents=True, exist_ok=True)
    (out / file).write_text(text + "\n")
    return file


def copy_headers_test():
    """test/headers/used_test.py with what it compiles: its row of the manifest."""
    file = copy_script(ROOT / "test" / "headers" / "used_test.py")
    shutil.copytree(ROOT / "test" / "headers" / "used", out / file.parent / "used")
    shutil.copytree(ROOT / "include", out / "scripts" / "used" / "include")
    folders = [word[len("-isystem"):] for word in system_includes(build)] + ["/usr/local/cuda/include"]
    copy(next(path for folder in folders if (path := pathlib.Path(folder) / "cuda.h").exists()), "scripts/cuda/cuda.h", strip=False)
    copy(build / "lib" / "libcuguest-core.a", "lib/libcuguest-core.a")
    return {"name": "headers_used", "suite": "unit", "file": str(file),
            "args": ["whole", "scripts/used", "lib/libcuguest-core.a", "-isystemscripts/cuda"], "libraries": ["lib"],
            "paths": {}, "environment": {}, "timeout": 600, "parallel": True}


targets = {target["id"]: target for target in introspect("targets")}
manifest, left_out = [copy_headers_test()], []
tests = [t for t in introspect("tests") if "benchmark" not in "".join(t["suite"])]  # no smoke tests
for test in tests + introspect("benchmarks"):
    suite = test["suite"][0].split(":")[-1]
    if suite not in SUITES:
        continue
    program, *args = test["cmd"]
    if args and args[0].endswith(".py"):
        # A process of somebody else's: it is given the libraries of its guest, and no toolkit.
        file = copy_script(pathlib.Path(args.pop(0)))
        args = [arg.replace(f"{build}/", "") for arg in args]
        libraries = ["lib/guest"]
    elif args and args[0] == "-c" and pathlib.Path(program).name.startswith("python"):
        file = write_script(test["name"], args[1])
        del args[:2]
        libraries = []
    elif build not in pathlib.Path(program).resolve().parents:
        left_out.append(f"left out: {test['name']}, which runs {program}")
        continue
    else:
        program = pathlib.Path(program).resolve()
        file = program.relative_to(build)
        libraries = ["lib", "/usr/local/cuda/lib64"]
        copy_with_libraries(program, libraries[0])
    for target in (targets[id] for id in test["depends"] if id in targets):
        path = pathlib.Path(target["filename"][0]).resolve()
        if path.suffix == ".so" or target["type"] == "executable":
            copy_with_libraries(path, libraries[0])
        elif path.suffix in IMAGES:
            copy(path, path.relative_to(build), strip=False)
    manifest.append({"name": test["name"], "suite": suite, "file": str(file), "args": args,
                     "libraries": libraries, "paths": paths_in(test["env"]), "environment": cases_in(test["env"]),
                     "timeout": test["timeout"], "parallel": is_parallel(test)})

order = {suite: position for position, suite in enumerate(SUITES)}
manifest.sort(key=lambda test: order[test["suite"]])
(out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
archive_directory.mkdir(parents=True, exist_ok=True)
subprocess.run(["strip", "--strip-debug", *to_strip], check=True)
# The same bytes for the same contents, so that run.py knows them again; on all cores.
subprocess.run(["tar", "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--use-compress-program=xz -T0 -1",
                "-cf", archive_directory / "pack.tar.xz", "-C", out, "."], check=True)
shutil.copy(pathlib.Path(__file__).with_name("run.py"), archive_directory)
print(*left_out, sep="\n", end="\n" if left_out else "")
print(f"{len(manifest)} programs in {archive_directory}")

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the embed tests share. To import it is enough to run where no link of the machine shows a toolkit."""

import contextlib
import hashlib
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OURS = ("libcuguest", "include/cuguest", "pkgconfig/cuguest", "cmake/cuguest", "cudasim")
HIDE = """
for folder in /usr/local/cuda*; do
  [ ! -d "$folder" ] || [ -L "$folder" ] || mount -t tmpfs none "$folder" || exit 99
done
exec "$@"
"""
# Links to a toolkit in these folders show it to every compiler and linker, and an nvcc there to every shell: where they
# are, a test of how a toolkit is found tests only them.
FOLDERS = [pathlib.Path("/usr/local", name) for name in ("bin", "include", "lib")]
NO_LINKS = """
for folder in /usr/local/bin /usr/local/include /usr/local/lib; do
  [ -d "$folder" ] || continue
  new=$(mktemp -d) && mount -t tmpfs none "$new" && mkdir "$new/.rest" && mount --rbind "$folder" "$new/.rest" || exit 99
  find "$folder" -mindepth 1 -maxdepth 1 ! -lname '*/cuda*' ! -name nvcc \\
    \\( -type l -exec cp -P {} "$new" \\; -o -printf '.rest/%f\\0' \\) | xargs -0r ln -st "$new" || exit 99
  mount --rbind "$new" "$folder" && umount -R "$new" && rmdir "$new" || exit 99
done
exec "$@"
"""
VARIABLES = ("CUDA_HOME", "CUDA_PATH", "CUDAToolkit_ROOT", "CPATH", "LIBRARY_PATH", "LD_LIBRARY_PATH")
passed = 0


# Less to wait for: several sources are compiled at a time.
TOGETHER = ["-Dunity=on", "-Dunity_size=8"]


def environment(**changes):
    """No library path: the point is a machine without a CUDA driver."""
    env = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "LIBRARY_PATH", "DESTDIR")}
    env.update(changes)
    return env


def ccache_before(compiler, precompiled=True):
    """Not before clang with precompiled headers, which name the folder in which they were made: one that was kept
    there fits no other folder."""
    return ["ccache"] if shutil.which("ccache") and not (precompiled and "clang" in compiler) else []


def meson_environment(compiler, precompiled=True, **changes):
    """Meson puts ccache only before a compiler of its own choice."""
    return environment(CXX=" ".join([*ccache_before(compiler, precompiled), compiler]), **changes)


def cmake_environment(compiler, **changes):
    launchers = {f"CMAKE_{language}_COMPILER_LAUNCHER": launcher for language in ("C", "CXX")
                 for launcher in ccache_before(compiler)}
    return environment(CXX=compiler, **launchers, **changes)


def run(*command, env=None, **kwargs):
    words = [str(word) for word in command]
    result = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env=env or environment(), **kwargs)
    if result.returncode:
        print("$", shlex.join(words), result.stdout, sep="\n")
        sys.exit(f"failed with {result.returncode}")
    return result.stdout


def check(what, holds, details=""):
    global passed
    print("ok:" if holds else "NOT OK:", what)
    if not holds:
        print(details)
        print(f"cases: {passed} passed, 1 failed, 0 skipped")
        sys.exit(1)
    passed += 1


def skip(why):
    print(f"skipped: {why}\ncases: 0 passed, 0 failed, 1 skipped")
    sys.exit(77)


def namespace(script):
    """The command that runs another one after `script`, which mounts, and nobody else sees that; None where nobody may."""
    for options in (["-m"], ["-rm"]):
        command = ["unshare", *options, "bash", "-c", script, "hide"]
        try:
            if subprocess.run([*command, "true"], capture_output=True).returncode == 0:
                return command
        except OSError:
            break
    return None


def hiding():
    """The command that runs another one where the toolkit is hidden: none, where there is nothing to hide."""
    if not any(path.is_dir() for path in pathlib.Path("/usr/local").glob("cuda*")):
        return []
    return namespace(HIDE) or skip("unshare is not permitted, or not installed")


def shown():
    """What of a toolkit is in FOLDERS."""
    return [path for folder in FOLDERS if folder.is_dir() for path in folder.iterdir() if path.name == "nvcc"
            or path.is_symlink() and "/cuda" in os.readlink(path).removeprefix(".rest/")]


def leave_links():
    """Runs this script anew where a toolkit is only where its installation puts it: without those links, the variables that
    name it, and its folder on the PATH."""
    if found := shown():
        command = namespace(NO_LINKS)
        if not command:
            skip(f"unshare is not permitted, or not installed, and every compiler sees a toolkit: {found[0]}")
        os.execvp(command[0], [*command, sys.executable, *sys.argv])
    for name in VARIABLES:
        os.environ.pop(name, None)
    os.environ["PATH"] = ":".join(part for part in os.environ["PATH"].split(":")
                                  if part in ("/bin", "/usr/bin") or not os.path.exists(f"{part}/nvcc"))


def toolkit_options(toolkit, option):
    """How a build is told of the toolkit, by this option of Meson's or CMake's: not at all, where it finds it itself."""
    installed = "/usr/local/cuda/include"
    is_found = not toolkit or os.path.isdir(installed) and os.path.samefile(toolkit, installed)
    return [] if is_found else [f"-D{option}={toolkit}"]


def toolkit_environment(toolkit):
    """The same for a build that has no such option."""
    return {"CUDA_HOME": os.path.dirname(toolkit)} if toolkit_options(toolkit, "") else {}


def toolkit_flags(toolkit):
    """What a compiler is told of it: pkg-config has nothing to say of a toolkit."""
    return ["-isystem", toolkit] if toolkit else []


def without_fetched(path):
    """A PATH without the toolkit that this build may have fetched itself."""
    return ":".join(part for part in path.split(":") if not part.startswith(f"{ROOT}/build-tools/cuda"))


def done(skipped=0):
    print(f"cases: {passed} passed, 0 failed, {skipped} skipped")
    sys.exit(0 if passed else 77)


def without_builds(directory, names):
    """For shutil.copytree: what is not to be copied."""
    return [name for name in names if name == "__pycache__"
            or name.startswith("build") and (pathlib.Path(directory) / name).is_dir()]


def exported(library):
    """The dynamic symbols that `library` defines, demangled."""
    lines = run("nm", "-DC", "--defined-only", "--without-symbol-versions", library).splitlines()
    rows = (line.split(" ", 2) for line in lines)
    return sorted(name for _, kind, name in rows if kind != "A")  # but the names of versions


def visible(object_file):
    """What an object file by itself would add to a shared library's exports, demangled."""
    columns = (line.split(None, 7) for line in run("readelf", "-sWC", object_file).splitlines())
    return {c[7] for c in columns
            if len(c) == 8 and c[4] in ("GLOBAL", "WEAK", "UNIQUE") and c[5] == "DEFAULT" and c[6] != "UND"}


def needed(binary):
    return [line.split("[")[1].rstrip("]") for line in run("readelf", "-d", binary).splitlines()
            if "(NEEDED)" in line]


def build_viewer(compile_command, out, flags, env):
    """An embedder that is a shared library, and a program that is linked with that alone."""
    parent = HERE / "parent"
    run(*compile_command, "-fPIC", "-shared", "-fvisibility=hidden", parent / "picture.cc", "-o", out / "libpicture.so",
        *flags, env=env)
    run(*compile_command, parent / "viewer.cc", "-o", out / "viewer", f"-L{out}", "-lpicture", env=env)


def check_links_no_cuda(*binaries):
    for binary in binaries:
        libraries = needed(binary)
        check(f"{binary.name} links no CUDA library",
              not any(name.startswith(("libcuda", "libnv", "libcu")) and not name.startswith("libcuguest")
                      for name in libraries), libraries)


def check_runs_without_driver(viewer, **changes):
    output = run(viewer, env=environment(**changes))
    print("   ", output.strip().replace("\n", "\n    "))
    has_driver = "libcuda.so.1" in run("/sbin/ldconfig", "-p")
    check("the program runs and says which driver it found",
          "driver: " in output and "guard: " in output and (has_driver or "libcuda.so.1" in output), output)


def check_exports_only_ours(library):
    strangers = [name for name in exported(library) if not name.removeprefix("typeinfo for ")
                 .removeprefix("typeinfo name for ").removeprefix("vtable for ").startswith(("cuguest::", "cuguest_"))]
    check(f"{library.name} exports only cuguest:: and cuguest_", exported(library) and not strangers, strangers)


def files_below(directory):
    return sorted(str(p.relative_to(directory)) for p in directory.rglob("*") if not p.is_dir())


@contextlib.contextmanager
def scratch():
    """A directory that the same test of the same tree has each time, or a new one where that exists: what CMake precompiles
    names its directory, so that ccache has it for no other."""
    same = hashlib.sha256(repr([str(ROOT), *sys.argv]).encode()).hexdigest()[:12]
    name = os.path.join(os.path.realpath(tempfile.gettempdir()), f"cuguest-embed-{same}")
    try:
        os.mkdir(name, 0o700)
    except FileExistsError:
        name = tempfile.mkdtemp(prefix="cuguest-embed-")
    os.environ["CCACHE_BASEDIR"] = name  # what another tree compiled in its own is the same
    try:
        yield pathlib.Path(name).resolve()
    finally:
        shutil.rmtree(name)


leave_links()

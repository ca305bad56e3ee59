#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""core_test.py ARCHIVE COMPILER TOOLKIT_INCLUDE SIMDIR OPTIMIZATION

cuguest-core is for embedders without Abseil and libstdc++: what its archive needs is in the C library and the
compiler's runtime; its headers bring none of Abseil's; an embedder that the C compiler's driver links, without
libstdc++, guards a context; and a guard costs it at most 36 KB, where the archive is optimised.
"""

import re

from common import ROOT, check, done, needed, pathlib, run, scratch, sys

archive, cxx, toolkit, simdir, optimization = sys.argv[1:]
cc = "cc"
archive = pathlib.Path(archive).resolve()
INCLUDE = [f"-I{ROOT}/include", *(["-isystem", toolkit] if toolkit else [])]
FLAGS = ["-std=c++17", "-O2", "-fPIC", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-ffunction-sections",
         "-fdata-sections", "-Wall", "-Wextra", "-Werror", "-DCUGUEST_STATIC", *INCLUDE]
C_FLAGS = ["-std=c99", "-pedantic", *(word for word in FLAGS if not word.startswith(("-std", "-fno-")))]
LINK = ["-Wl,--gc-sections", "-Wl,-z,defs", f"-Wl,--exclude-libs,{archive.name}"]
LIMIT = 36 * 1024  # of the file: 29,384 with GCC 12 and Debian 12, 33,624 with GCC 13 and Ubuntu 24.04

# Each line of the table: the source of a shared object that calls it, in C++ or in C.
EMBEDDERS = {
    "nothing": ("c", "typedef int Nothing;"),
    "a guard": ("cc", """
        #include "cuguest/context_guard.h"
        extern "C" [[gnu::visibility("default")]] int Guarded(CUcontext context) {
          cuguest::ContextGuard guard(context);
          return guard.result();
        }"""),
    "a guard, in C": ("c", """
        #include "cuguest/c.h"
        __attribute__((visibility("default"))) int Guarded(struct CUctx_st* context) {
          cuguest_guard guard = {sizeof(guard), {0}};
          const int code = cuguest_guard_enter(&guard, context, CUGUEST_ELIDE, __FILE__, __LINE__);
          return code != 0 ? code : cuguest_guard_leave(&guard);
        }"""),
    "acquiring and a guard, in C": ("c", """
        #include "cuguest/c.h"
        __attribute__((visibility("default"))) int Guarded(unsigned long long pointer) {
          cuguest_acquired acquired = {sizeof(acquired), {0}};
          cuguest_guard guard = {sizeof(guard), {0}};
          cuguest_ref ref = CUGUEST_REF_INIT;
          int code = cuguest_acquire_from_pointer(&acquired, pointer, 0);
          if (code == 0) code = cuguest_acquired_ref(&acquired, &ref);
          if (code == 0) code = cuguest_guard_enter_ref(&guard, &ref, CUGUEST_ELIDE, __FILE__, __LINE__);
          if (code == 0) code = cuguest_guard_leave(&guard);
          cuguest_acquired_release(&acquired);
          return code;
        }"""),
    "everything": ("c", "typedef int Nothing;"),  # with the whole archive
}

# A host that has loaded the driver, and a guest in another context.
PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>

#include "cuguest/context_guard.h"
#include "cuguest/error_text.h"
#include "cuguest/host_scope.h"

template <typename Function>
Function Find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

int main() {
  void* const cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (cuda == nullptr) return puts("no driver") < 0;
  const auto init = Find<CUresult (*)(unsigned)>(cuda, "cuInit");
  const auto retain = Find<CUresult (*)(CUcontext*, CUdevice)>(cuda, "cuDevicePrimaryCtxRetain");
  const auto get = Find<CUresult (*)(CUcontext*)>(cuda, "cuCtxGetCurrent");
  CUcontext mine = nullptr;
  CUcontext now = nullptr;
  if (init(0) != CUDA_SUCCESS || retain(&mine, 0) != CUDA_SUCCESS) return 1;
  {
    cuguest::ContextGuard guard(mine);
    if (!guard.ok()) return puts(cuguest::ErrorName(guard.result())) < 0;
    if (get(&now) != CUDA_SUCCESS || now != mine) return 2;
    cuguest::HostScope host(guard);
    if (get(&now) != CUDA_SUCCESS || now != nullptr) return 3;
  }
  if (get(&now) != CUDA_SUCCESS || now != nullptr) return 4;
  return puts("guarded") < 0;
}
"""


def symbols(*arguments):
    return {line.split()[0].split("@")[0] for line in run("nm", "--format=posix", *arguments).splitlines()
            if " " in line}


def library_of(name):
    return pathlib.Path(run(cc, f"-print-file-name={name}").strip())


with scratch() as tmp:
    runtime = [path for name in ("libc.so.6", "ld-linux-x86-64.so.2", "libdl.so.2", "libpthread.so.0", "libgcc_s.so.1")
               if (path := library_of(name)).is_absolute()]
    have = set().union(*(symbols("-D", "--defined-only", path) for path in runtime)) | {"_GLOBAL_OFFSET_TABLE_"}
    missing = symbols("-u", archive) - symbols("--defined-only", archive) - have
    names = " ".join(path.name for path in runtime)
    check(f"all that {archive.name} needs is in {names}", len(runtime) > 2 and not missing, sorted(missing))

    text = (ROOT / "include" / "meson.build").read_text()
    headers = re.findall(r"'(cuguest/\S+\.h)'", text[text.index("core_headers = "):text.index("public_headers = ")])
    brought = run(cxx, "-M", *FLAGS, "-x", "c++", "-", input="".join(f'#include "{name}"\n' for name in headers))
    files = re.findall(r"\S+", brought.replace("\\\n", " "))
    strangers = [name for name in files if "/absl/" in name]
    check(f"{len(headers)} headers bring no Abseil", len(headers) > 10 and not strangers, strangers)
    ours = {str(pathlib.Path(name).relative_to(ROOT / "include")) for name in files if name.startswith(str(ROOT / "include"))}
    check("and no other headers of ours", ours == set(headers), sorted(ours ^ set(headers)))

    (tmp / "program.cc").write_text(PROGRAM)
    run(cxx, *FLAGS, "-c", tmp / "program.cc", "-o", tmp / "program.o")
    program = tmp / "program"
    run(cc, tmp / "program.o", archive, *LINK, "-o", program, "-ldl", "-pthread")
    check("the C compiler's driver links an embedder", not any("stdc++" in name for name in needed(program)), needed(program))
    output = run(program, env={"LD_LIBRARY_PATH": simdir})
    check("which guards a context", output == "guarded\n", output)

    sizes = {}
    for what, (language, source) in EMBEDDERS.items():
        stem = tmp / re.sub(r"\W+", "_", what)
        stem.with_suffix(f".{language}").write_text(source)
        # With the whole archive nothing is called, and all of it would be left out.
        whole = what == "everything"
        objects = ["-Wl,--whole-archive", archive, "-Wl,--no-whole-archive"] if whole else [archive]
        run(*((cxx, *FLAGS) if language == "cc" else (cc, *C_FLAGS)), "-c", stem.with_suffix(f".{language}"),
            "-o", stem.with_suffix(".o"))
        run(cc, "-shared", "-s", stem.with_suffix(".o"), *objects, *LINK[whole:], "-o", stem.with_suffix(".so"),
            "-ldl", "-pthread")
        sizes[what] = stem.with_suffix(".so").stat().st_size
    print("  bytes, stripped     more than nothing")
    for what, size in sizes.items():
        print(f"{size:9} {size - sizes['nothing']:9}  {what}")
    if optimization in ("2", "3", "s"):
        check("a guard costs at most 36 KB", 0 < sizes["a guard"] - sizes["nothing"] <= LIMIT, sizes)
    check("what is not called is left out", sizes["a guard, in C"] < sizes["acquiring and a guard, in C"] < sizes["everything"],
          sizes)
    done()

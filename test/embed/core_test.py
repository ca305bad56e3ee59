#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""core_test.py ARCHIVE COMPILER TOOLKIT_INCLUDE SIMDIR OPTIMIZATION

cuguest-core is for embedders without Abseil and libstdc++: what its archive needs is in the C library and the
compiler's runtime; its headers bring none of Abseil's; an embedder that the C compiler's driver links, without
libstdc++, guards a context; copies with suffixes of the namespace stand side by side in a program; and a guard costs it at most
29 KB, with references and texts 37, with a cache 41, and all of it 140, where the archive is optimised.
"""

import re

from common import ROOT, check, done, needed, pathlib, run, scratch, sys, toolkit_flags

archive, cxx, toolkit, simdir, optimization = sys.argv[1:]
cc = "cc"
archive = pathlib.Path(archive).resolve()
INCLUDE = [f"-I{ROOT}/include", *toolkit_flags(toolkit)]
FLAGS = ["-std=c++17", "-O2", "-fPIC", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-ffunction-sections",
         "-fdata-sections", "-Wall", "-Wextra", "-Werror", "-DCUGUEST_STATIC", *INCLUDE]
C_FLAGS = ["-std=c99", "-pedantic", *(word for word in FLAGS if not word.startswith(("-std", "-fno-")))]
LINK = ["-Wl,--gc-sections", "-Wl,-z,defs", f"-Wl,--exclude-libs,{archive.name}"]
LIMIT = 29 * 1024  # of the file: 25,360 with GCC 12 and Debian 12
LIMIT_OF_CACHE = 41 * 1024  # 37,848
LIMIT_OF_ALL = 140 * 1024  # 136,248
LIMIT_OF_THREE = 37 * 1024  # 37,648; without any flag of the linker four pages more

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
    "a guard, a ref and texts, in C": ("c", """
        #include "cuguest/c.h"
        #define VISIBLE __attribute__((visibility("default")))
        VISIBLE int Guarded(struct CUctx_st* context) {
          cuguest_guard guard = {sizeof(guard), {0}};
          cuguest_ref ref = CUGUEST_REF_INIT;
          int code = cuguest_ref_borrow(&ref, context);
          if (code == 0) code = cuguest_guard_enter_ref(&guard, &ref, CUGUEST_ELIDE, __FILE__, __LINE__);
          return code != 0 ? code : cuguest_guard_leave(&guard);
        }
        VISIBLE const char* Name(int code) { return cuguest_error_name(code); }
        VISIBLE const char* Text(int code) { return cuguest_error_text(code); }"""),
    "all functions of these three": ("c", """
        #include "cuguest/c.h"
        #define NAME(name) (void (*)(void))&cuguest_##name
        __attribute__((visibility("default"))) void (*g_all[])(void) = {
            NAME(guard_enter), NAME(guard_enter_ref), NAME(guard_move_to), NAME(guard_move_to_ref),
            NAME(guard_reassert), NAME(guard_leave), NAME(guard_cleanup), NAME(ref_borrow), NAME(ref_current),
            NAME(ref_check), NAME(error_name), NAME(error_text), NAME(error_advice)};"""),
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
    "a cache, in C": ("c", """
        #include "cuguest/c.h"
        static cuguest_per_context values;
        __attribute__((visibility("default"))) int Got(const cuguest_per_context_type* type, const cuguest_ref* ref) {
          cuguest_per_context_pin pin = {sizeof(pin), {0}};
          const int code = cuguest_per_context_get(&values, type, ref, &pin);
          return code != 0 ? code : cuguest_per_context_unpin(&pin);
        }
        __attribute__((visibility("default"))) int Closed(void) { return cuguest_per_context_close(&values); }"""),
    "a cache, in C++": ("cc", """
        #include "cuguest/per_context.h"
        namespace {
        struct Kernels { ~Kernels() {} int module = 0; };
        alignas(cuguest::PerContext<Kernels>) unsigned char g_cache[sizeof(cuguest::PerContext<Kernels>)];
        }
        extern "C" [[gnu::visibility("default")]] int Got(CUcontext context) {
          auto& cache = *new (g_cache) cuguest::PerContext<Kernels>;
          const auto got = cache.GetOrMake(context, [](const cuguest::ContextRef&) { return Kernels(); });
          return got.ok() ? (*got)->module : got.error().code;
        }"""),
    "everything": ("c", "typedef int Nothing;"),  # with the whole archive
}

# A host that has loaded the driver, and a guest in another context.
PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "cuguest/acquired_guard.h"
#include "cuguest/context_guard.h"
#include "cuguest/error.h"
#include "cuguest/host_scope.h"
#include "cuguest/per_context.h"
#include "cuguest/shared_context.h"

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
  {
    const cuguest::SharedContext shared = cuguest::SharedContext::Attach(mine);
    const cuguest::AcquiredGuard guard(cuguest::Device::Borrow(0));
    if (!shared.ok() || !guard.ok()) return 5;
    if (get(&now) != CUDA_SUCCESS || now != mine || guard.context() != shared.context()) return 6;
  }
  {
    cuguest::PerContext<int> numbers;
    const auto made = numbers.GetOrMake(mine, [](const cuguest::ContextRef& context) -> cuguest::ErrorOr<int> {
      return context.id() != 0 ? 7 : 0;
    });
    if (!made.ok() || **made != 7 || numbers.Find(mine).get() != made->get()) return 10;
    const auto none = numbers.GetOrMake(CUcontext(), [](const cuguest::ContextRef&) { return 8; });
    if (none.error().code != CUDA_ERROR_INVALID_CONTEXT || numbers.size() != 1) return 11;
  }
  char text[200];
  if (get(&now) != CUDA_SUCCESS || now != nullptr) return 7;
  cuguest::AcquireFromPointer(text).error().Write(text, sizeof(text));
  if (strstr(text, "not memory that CUDA knows") == nullptr) return puts(text) > 0 ? 8 : 9;
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
    headers = re.findall(r"'(cuguest/\S+\.h)'", text[text.index("core_headers = "):text.index("heart_headers = ")])
    brought = run(cxx, "-M", *FLAGS, "-DCUGUEST_NAMESPACE_SUFFIX=mine", "-x", "c++", "-", input="".join(f'#include "{name}"\n' for name in headers))
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

    core = "".join(f'#include "lib/{name}"\n' for name in (ROOT / "lib" / "core.list").read_text().split())
    (tmp / "core.cc").write_text(core)
    guests = ROOT / "test/embed/suffixes"
    defined = {}
    for suffix in ("alpha", "beta"):
        define = f"-DCUGUEST_NAMESPACE_SUFFIX={suffix}"
        run(cxx, *FLAGS, "-fno-threadsafe-statics", "-w", "-O1", f"-I{ROOT}", define, "-c", tmp / "core.cc", "-o", tmp / f"{suffix}.o")
        run(cc, *C_FLAGS, define, "-c", guests / "guest.c", "-o", tmp / f"guest_{suffix}.o")
        defined[suffix] = symbols("--defined-only", "--extern-only", tmp / f"{suffix}.o")
    common = defined["alpha"] & defined["beta"]
    check("copies with suffixes of their own have no symbol in common", len(defined["alpha"]) > 50 and not common, sorted(common))
    run(cc, "-w", guests / "two_guests.c", *(tmp / f"{name}.o" for name in ("alpha", "beta", "guest_alpha", "guest_beta")), "-o",
        tmp / "two", "-ldl", "-pthread")
    output = run(tmp / "two", env={"LD_LIBRARY_PATH": simdir})
    check("and count apart in one program", output == "alpha 1\nbeta 0\n", output)

    names = set(re.findall(r"^#define (cuguest_\w+) ", (ROOT / "include/cuguest/internal/c_names.h").read_text(), re.M))
    functions = set(re.findall(r"\b(cuguest_\w+)\(", re.sub(r"//.*", "", (ROOT / "include/cuguest/c.h").read_text())))
    check("each function of C has the suffix in its symbol", names == functions, sorted(names ^ functions))

    OF_OBJECTS = re.findall(r"^  X\((\w+), ", (ROOT / "include/cuguest/objects/driver.h").read_text(), re.M)
    sizes, plain = {}, {}  # plain: without --gc-sections
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
        run(cc, "-shared", "-s", stem.with_suffix(".o"), *objects, "-o", stem.with_suffix(".so"), "-ldl", "-pthread")
        plain[what] = stem.with_suffix(".so").stat().st_size
        # The table of names is in each that guards; none of what lives in a context is.
        said = stem.with_suffix(".so").read_bytes()
        strange = [name for name in OF_OBJECTS if name.encode() in said]
        check(f"{what}: names no driver entry of the objects", what == "nothing" or b"CtxPushCurrent" in said and not strange, strange)
    print("  bytes, stripped     more than nothing     the same without --gc-sections")
    for what, size in sizes.items():
        print(f"{size:9} {size - sizes['nothing']:9} {plain[what] - plain['nothing']:9}  {what}")
    if optimization in ("2", "3", "s"):
        check("a guard costs at most 29 KB", 0 < sizes["a guard"] - sizes["nothing"] <= LIMIT, sizes)
        three = "a guard, a ref and texts, in C"
        check("with a ref and texts, at most 37 KB", 0 < sizes[three] - sizes["nothing"] <= LIMIT_OF_THREE, sizes)
        cache = "a cache, in C"
        check("a cache with the guard that it enters by, at most 41 KB", 0 < sizes[cache] - sizes["nothing"] <= LIMIT_OF_CACHE, sizes)
        check("and 53 KB without any flag of the linker", 0 < plain[three] - plain["nothing"] <= LIMIT_OF_THREE + 4 * 4096, plain)
        check("all of it costs at most 140 KB", 0 < sizes["everything"] - sizes["nothing"] <= LIMIT_OF_ALL, sizes)
    check("what is not called is left out", sizes["a guard, in C"] < sizes["acquiring and a guard, in C"] < sizes["everything"],
          sizes)
    done()

// SPDX-License-Identifier: Apache-2.0
//
// What finding a kernel's function costs in a context that it was found in before, from 1, 4
// and 16 threads that ask for one kernel in one context: beside what else would be asked. It
// ends with a table of nanoseconds a lookup, as Markdown. With --check it fails if a lookup
// costs more than it promises.

#include <benchmark/benchmark.h>
#include <cuda.h>

#include <cstdio>
#include <string>

#include "cuguest/code_image.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/driver.h"
#include "cuguest/kernel.h"
#include "cuguest/module.h"
#include "test/benchmark/harness.h"

namespace {

using cuguest::CodeImage;
using cuguest::ContextRef;
using cuguest::Kernel;
using cuguest::Module;
using cuguest_benchmark::kThreads;

constexpr char kCode[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nothing() { ret; }\n";

// What every thread works with. Filled before the first measurement.
struct World {
  CUcontext context;
  ContextRef ref;
  const Module* module;
  const Kernel* kernel;
  const cuguest::Driver* driver;
  CUkernel raw;  // nullptr below CUDA 12.0
  CUlibrary library;
};
World g_world;

struct ByRef {
  static constexpr char kName[] = "FunctionIn(ContextRef)";
  static void Lookup() { benchmark::DoNotOptimize(*g_world.kernel->FunctionIn(g_world.ref)); }
};

struct ByHandle {
  static constexpr char kName[] = "FunctionIn(CUcontext)";
  static void Lookup() { benchmark::DoNotOptimize(*g_world.kernel->FunctionIn(g_world.context)); }
};

struct ByName {
  static constexpr char kName[] = "GetKernel, FunctionIn";
  static void Lookup() {
    benchmark::DoNotOptimize(*g_world.module->GetKernel("nothing")->FunctionIn(g_world.ref));
  }
};

struct KernelGetFunction {
  static constexpr char kName[] = "cuKernelGetFunction";
  static void Lookup() {
    CUfunction function = nullptr;
    if (g_world.raw != nullptr) g_world.driver->KernelGetFunction(&function, g_world.raw);
    benchmark::DoNotOptimize(function);
  }
};

struct LibraryGetKernel {
  static constexpr char kName[] = "cuLibraryGetKernel";
  static void Lookup() {
    CUkernel kernel = nullptr;
    if (g_world.raw != nullptr) {
      g_world.driver->LibraryGetKernel(&kernel, g_world.library, "nothing");
    }
    benchmark::DoNotOptimize(kernel);
  }
};

struct Idiom {
  const char* name;
  void (*measure)(benchmark::State&);
};

template <typename I>
constexpr Idiom Describe() {
  return {I::kName, [](benchmark::State& state) {
            const cuguest::ContextGuard guard(g_world.context);
            for (auto _ : state) I::Lookup();
          }};
}

constexpr Idiom kIdioms[] = {
    Describe<ByRef>(),
    Describe<ByHandle>(),
    Describe<ByName>(),
    Describe<KernelGetFunction>(),
    Describe<LibraryGetKernel>(),
};

std::string KeyOf(const Idiom& idiom, int threads) {
  return std::string(idiom.name) + "/" + std::to_string(threads);
}

void PrintTable(const cuguest_benchmark::Times& times) {
  std::printf("\n| one kernel in one context | 1 thread | 4 threads | 16 threads |\n");
  std::printf("|:--------------------------|---------:|----------:|-----------:|\n");
  for (const Idiom& idiom : kIdioms) {
    std::printf("| %-25s |", idiom.name);
    for (const int threads : kThreads) {
      std::printf(" %.1f ns |", times.Median(KeyOf(idiom, threads)));
    }
    std::printf("\n");
  }
  std::printf("\nnanoseconds that a thread waits for a lookup (median of 9)\n");
}

// No driver call is in it, so the simulation shows it as well.
bool Check(const cuguest_benchmark::Times& times) {
  constexpr double kMost = 25;
  const double lookup = times.Best(KeyOf(kIdioms[0], 1));
  const bool kept = lookup <= kMost;
  std::printf("%s: FunctionIn(ContextRef), 1 thread: best of 9 %.2f ns, at most %.2f promised\n",
              kept ? "kept" : "BROKEN", lookup, kMost);
  return kept;
}

// The same code by the driver alone, to compare with.
void LoadRaw() {
  const cuguest::Driver& driver = *g_world.driver;
  if (driver.LibraryLoadData == nullptr) return;
  if (driver.LibraryLoadData(&g_world.library, kCode, nullptr, nullptr, 0, nullptr, nullptr, 0) ==
      CUDA_SUCCESS) {
    driver.LibraryGetKernel(&g_world.raw, g_world.library, "nothing");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const cuguest_benchmark::Options options = cuguest_benchmark::Parse(argc, argv);
  g_world.driver = cuguest_benchmark::FindDriver();
  if (g_world.driver == nullptr) return 77;
  g_world.context = cuguest_benchmark::MakeContext(*g_world.driver);
  if (g_world.context == nullptr) return 1;
  g_world.ref = ContextRef::Borrow(g_world.context);
  const auto module = Module::Load(CodeImage::FromPtx(kCode, "nothing").value());
  if (!module.ok()) return 1;
  const auto kernel = module->GetKernel("nothing");
  if (!kernel.ok() || !kernel->FunctionIn(g_world.ref).ok()) return 1;
  g_world.module = &*module;
  g_world.kernel = &*kernel;
  LoadRaw();

  for (const Idiom& idiom : kIdioms) {
    for (const int threads : kThreads) {
      cuguest_benchmark::Register(KeyOf(idiom, threads), threads, options, idiom.measure);
    }
  }
  cuguest_benchmark::Times times;
  cuguest_benchmark::Run(argv[0], &times);
  PrintTable(times);
  const bool kept = !options.check || Check(times);
  if (g_world.library != nullptr) g_world.driver->LibraryUnload(g_world.library);
  return kept ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of cuguest that are loaded and unloaded.

#ifndef CUGUEST_TEST_BENCHMARK_GROWTH_COPIES_H_
#define CUGUEST_TEST_BENCHMARK_GROWTH_COPIES_H_

#include <cuda.h>
#include <dlfcn.h>

#include <filesystem>
#include <map>
#include <string>

#include "test/benchmark/growth_contexts.h"
#include "test/benchmark/harness.h"

namespace cuguest_benchmark {

// What is measured of each of several copies, as they are loaded and unloaded.
constexpr const char kLoading[] = "dlopen of a library with a copy";
constexpr const char kFirstGuard[] = "the first ContextGuard of a copy";
constexpr const char kLookUps[] = "of that what the driver is asked for its functions";
constexpr const char kFirstAttach[] = "then the first SharedContext::Attach of the copy";
constexpr const char kAttach[] = "SharedContext::Attach(handle), Release() in a copy";
constexpr const char kUnloading[] = "dlclose of a library with a copy";
constexpr const char* kOfCopies[] = {kLoading,     kFirstGuard, kLookUps,
                                     kFirstAttach, kAttach,     kUnloading};

// Files of one library, each of which the dynamic linker takes for another one.
class CopyFiles {
 public:
  explicit CopyFiles(int count);
  CopyFiles(const CopyFiles&) = delete;
  CopyFiles& operator=(const CopyFiles&) = delete;
  ~CopyFiles();
  std::string At(int i) const { return folder_ / ("copy_" + std::to_string(i) + ".so"); }

 private:
  std::filesystem::path folder_;
};

// One of them, loaded: see test/process/fixtures/plugin.cc.
class Copy {
 public:
  explicit Copy(const std::string& path) : library_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    Require(library_ != nullptr, "a copy is not loaded");
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  ~Copy() { REQUIRE(dlclose(library_) == 0); }
  void Enter(CUcontext context) const {
    REQUIRE(Find<bool (*)(CUcontext)>("PluginEnter")(context));
  }
  void AttachAndRelease(CUcontext context) const {
    void* const holder = Find<void* (*)(CUcontext)>("PluginAttach")(context);
    REQUIRE(holder != nullptr && Find<bool (*)(void*)>("PluginDetach")(holder));
  }

 private:
  template <typename Function>
  Function Find(const char* name) const {
    return reinterpret_cast<Function>(dlsym(library_, name));
  }

  void* library_;
};

// The best of some rounds, in nanoseconds by KeyOf(what, "copies", size), of the last of so many
// copies.
std::map<std::string, double> MeasureCopies(Contexts* contexts, bool smoke);

}  // namespace cuguest_benchmark

#endif  // CUGUEST_TEST_BENCHMARK_GROWTH_COPIES_H_

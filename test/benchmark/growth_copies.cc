// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/benchmark/growth_copies.h"

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <system_error>
#include <vector>

#include "cuguest/objects/driver.h"
#include "cuguest/shared_context.h"
#include "test/benchmark/growth_curves.h"
#include "test/support/files.h"

namespace cuguest_benchmark {
namespace {

using cuguest::Driver;
using cuguest::SharedContext;

// As each copy does when it is first used.
void LookUpEntries(const Driver& driver) {
#define LOOK_UP(Name, since, suffix, parameters) \
  if (since <= driver.version)                   \
    benchmark::DoNotOptimize(driver.lookup("cu" #Name, since, driver.lookup_user));
  CUGUEST_REQUIRED_ENTRIES(LOOK_UP)
  CUGUEST_OPTIONAL_ENTRIES(LOOK_UP)
#undef LOOK_UP
}

}  // namespace

CopyFiles::CopyFiles(int count)
    : folder_(std::filesystem::temp_directory_path() /
              ("cuguest-growth-" + std::to_string(getpid()))) {
  const std::string original = cuguest_test::FindBeside("test/plugin_a.so");
  Require(!original.empty(), "test/plugin_a.so is not there");
  std::filesystem::create_directories(folder_);
  for (int i = 0; i < count; ++i) std::filesystem::copy_file(original, At(i));
}

CopyFiles::~CopyFiles() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::map<std::string, double> MeasureCopies(Contexts* contexts, bool smoke) {
  std::map<std::string, double> best;
  const int most = smoke ? 4 : 64;
  const int rounds = smoke ? 1 : 5;
  const CopyFiles files(most);
  const CUcontext context = contexts->AtLeast(1)[0];
  const SharedContext holder = Take(SharedContext::Attach(context));
  const auto take = [&](const char* what, int size, const std::function<void()>& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    const auto [place, is_first] = best.emplace(KeyOf(what, "copies", size), 0);
    if (is_first || time.count() < place->second) place->second = time.count();
  };
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::unique_ptr<Copy>> copies;
    for (int size = 1; size <= most; ++size) {
      take(kLoading, size, [&] { copies.push_back(std::make_unique<Copy>(files.At(size - 1))); });
      const auto use = [&] { copies.back()->AttachAndRelease(context); };
      take(kFirstGuard, size, [&] { copies.back()->Enter(context); });
      take(kLookUps, size, [&] { LookUpEntries(contexts->driver()); });
      take(kFirstAttach, size, use);
      for (int again = 0; again < 50; ++again) take(kAttach, size, use);
    }
    for (int size = most; size > 0; --size) {
      take(kUnloading, size, [&] { copies.pop_back(); });
    }
  }
  return best;
}

}  // namespace cuguest_benchmark

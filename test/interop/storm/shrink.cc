// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/interop/storm/shrink.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "test/interop/storm/storm.h"
#include "test/support/scenario.h"

namespace storm {
namespace {

constexpr int kFreeRuns = 5;  // of threads that run freely, before it is taken to pass

class Shrinker {
 public:
  explicit Shrinker(const Options& options) : shortest_{options, {}} {}

  // Whether it fails as it is.
  bool Reproduces() { return Fails(shortest_.options); }

  // Most faults show in the operation that has them, behind which all is cut off already.
  void DropOperations() {
    if (shortest_.options.operations == 0) return;
    if (!FailsUpTo(shortest_.options.operations - 1)) return;
    std::uint64_t passes = 0;  // no operations, no failure
    while (passes + 1 < shortest_.options.operations) {
      const std::uint64_t half = passes + (shortest_.options.operations - passes) / 2;
      if (!FailsUpTo(half)) passes = half;
    }
  }

  // Halves of the threads first, then fewer at a time.
  void DropThreads() {
    std::vector<int> left;
    for (int thread = 0; thread < shortest_.options.threads; ++thread) left.push_back(thread);
    for (std::size_t some = left.size() / 2; some > 0; some /= 2) {
      for (std::size_t first = 0; first < left.size() && some < left.size();) {
        Options options = shortest_.options;
        options.only = left;
        const auto from = options.only.begin() + static_cast<std::ptrdiff_t>(first);
        const auto count = std::min(some, left.size() - first);
        options.only.erase(from, from + static_cast<std::ptrdiff_t>(count));
        if (!options.only.empty() && Fails(options)) {
          left = options.only;
        } else {
          first += some;
        }
      }
    }
  }

  const Shortest& shortest() const { return shortest_; }

 private:
  bool FailsUpTo(std::uint64_t operations) {
    Options options = shortest_.options;
    options.operations = operations;
    return Fails(options);
  }

  // Keeps it if it does.
  bool Fails(const Options& options) {
    for (int run = 0; run < (options.lockstep ? 1 : kFreeRuns); ++run) {
      Outcome outcome = RunChild(options);
      if (!outcome.failed()) continue;
      shortest_ = {options, std::move(outcome)};
      // Nothing after the operation that failed is needed.
      const std::size_t at = shortest_.outcome.output.find(kFailedAt);
      if (at == std::string::npos) return true;
      const char* index = shortest_.outcome.output.c_str() + at + std::string(kFailedAt).size();
      shortest_.options.operations =
          std::min<std::uint64_t>(options.operations, std::strtoull(index, nullptr, 10) + 1);
      return true;
    }
    return false;
  }

  Shortest shortest_;
};

}  // namespace

// 77 is a skip.
bool Outcome::failed() const { return code != 0 && code != 77; }

Outcome RunChild(const Options& options) {
  std::vector<std::string> arguments = options.Arguments();
  arguments.emplace_back("--child");
  cuguest_test::Ended ended = cuguest_test::RunSelf(arguments);
  return {ended.code, std::move(ended.output)};
}

std::optional<Shortest> Shrink(const Options& options) {
  for (const bool lockstep : {true, false}) {
    Options tried = options;
    tried.lockstep = lockstep;
    Shrinker shrinker(tried);
    if (!shrinker.Reproduces()) continue;
    shrinker.DropOperations();
    shrinker.DropThreads();
    return shrinker.shortest();
  }
  return std::nullopt;
}

}  // namespace storm

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How costs grow with the process: with the contexts that are alive and that were destroyed, with
// scopes inside each other, with threads that are there and that have ended, with copies of
// cuguest, with devices and with the kernels of a module; and the memory of the process that a
// context, a thread and a copy take, while they are there and once they are gone.
//
// With --check it fails if a curve that is promised flat is not (on a real driver), or if something
// stays behind (on any). docs/growth_picture.py draws the curves of the table that it prints.

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/objects/driver.h"
#include "test/benchmark/growth_contexts.h"
#include "test/benchmark/growth_copies.h"
#include "test/benchmark/growth_curves.h"
#include "test/benchmark/growth_memory.h"
#include "test/benchmark/harness.h"

namespace cuguest_benchmark {
namespace {

constexpr int kDevices = 8;  // of the simulation

// One size after another: how many contexts are shared is a matter of the whole process.
void Measure(const char* program, const std::vector<Curve>& curves, Contexts* contexts,
             const Options& options, Times* times) {
  for (const Curve& curve : curves) {
    for (const int size : curve.sizes) {
      if (curve.make == nullptr || (options.smoke && size > 20)) continue;
      benchmark::ClearRegisteredBenchmarks();
      Register(KeyOf(curve, size), curve.has_threads ? size : 1, options,
               curve.make(contexts, size));
      Run(program, times);
    }
  }
  benchmark::ClearRegisteredBenchmarks();
}

bool PrintCurves(const std::vector<Curve>& curves, const Times& times,
                 const std::map<std::string, double>& of_copies, bool checks) {
  const auto best = [&](const Curve& curve, int size) {
    const auto found = of_copies.find(KeyOf(curve, size));
    return found != of_copies.end() ? found->second : times.Best(KeyOf(curve, size));
  };
  bool kept = true;
  std::string promises;
  std::printf("\n| operation | with | 1 | | | | |\n|---|---|---:|---:|---:|---:|---:|\n");
  for (const Curve& curve : curves) {
    std::printf("| `%s` | %s |", curve.name, curve.of);
    for (const int size : curve.sizes) {
      std::printf(" %d: %.1f |", size, best(curve, size));
    }
    for (std::size_t i = curve.sizes.size(); i < 5; ++i) std::printf(" |");
    std::printf("\n");
    if (curve.flat == 0) continue;
    const double ratio = best(curve, curve.sizes.back()) / best(curve, curve.sizes.front());
    const bool holds = !checks || ratio <= curve.flat;
    kept = kept && holds;
    char line[200];
    std::snprintf(line, sizeof(line), "%s: %s with %d %s: %.2f of one, at most %.1f promised\n",
                  holds ? "kept" : "BROKEN", curve.name, curve.sizes.back(), curve.of, ratio,
                  curve.flat);
    if (checks) promises += line;
  }
  std::printf(
      "\nnanoseconds (best of 9; of copies, best of 5) with so many contexts, scopes, threads, "
      "kernels, copies or devices, or after so many contexts that were destroyed or threads that "
      "have ended\n\n%s",
      promises.c_str());
  return kept;
}

}  // namespace
}  // namespace cuguest_benchmark

int main(int argc, char** argv) {
  using namespace cuguest_benchmark;
  const Options options = Parse(argc, argv);
  const bool is_real = !cudasim::Sim::IsActive();
  if (!is_real) cudasim::Sim::SetDeviceCount(kDevices);
  const cuguest::ObjectDriver* const driver = FindDriver();
  if (driver == nullptr) return 77;
  const std::vector<Curve> curves = Curves(is_real, *driver);
  Contexts contexts(*driver);
  const bool is_clean = PrintMemory(&contexts, options.smoke, is_real);  // before anything is kept
  Times times;
  Measure(argv[0], curves, &contexts, options, &times);
  const std::map<std::string, double> of_copies = MeasureCopies(&contexts, options.smoke);
  const bool is_flat = PrintCurves(curves, times, of_copies, options.check && is_real);
  return is_flat && is_clean ? 0 : 1;
}

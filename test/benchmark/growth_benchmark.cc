// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How costs grow with the process: with the contexts that are alive and that were destroyed, with
// scopes inside each other, with threads that are there and that have ended, with copies of
// cuguest, with devices and with the kernels of a module; and the memory of the process that a
// context, a thread and a copy take, while they are there and once they are gone.
//
// Beside what is done in contexts and devices in turn, the driver's calls that it makes are
// measured alone, since these may grow, too.
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
      const Bodies bodies = curve.make(contexts, size);
      Register(KeyOf(curve, size), curve.has_threads ? size : 1, options, bodies.operation);
      if (bodies.calls) Register(KeyOfCalls(curve, size), 1, options, bodies.calls);
      Run(program, times);
    }
  }
  benchmark::ClearRegisteredBenchmarks();
}

// Nanoseconds by size.
using Row = std::map<int, double>;

void Print(const char* name, const char* of, const Row& row) {
  std::printf("| %s | %s |", name, of);
  for (const auto& [size, time] : row) std::printf(" %d: %.1f |", size, time);
  for (std::size_t i = row.size(); i < 5; ++i) std::printf(" |");
  std::printf("\n");
}

// What the driver's calls take longer with the last size than with the first: that is the driver's.
// Calls that take longer than the operation that makes them were disturbed, and excuse nothing.
double GrowthOf(const Row& calls, double operation) {
  if (calls.empty() || calls.rbegin()->second > operation) return 0;
  return calls.rbegin()->second - calls.begin()->second;
}

// A promise is about what cuguest adds.
bool IsFlat(const Curve& curve, const Row& row, const Row& calls, std::string* promises) {
  const double one = row.begin()->second;
  const double last = row.rbegin()->second;
  const double promised = (last - GrowthOf(calls, last)) / one;
  const bool is_flat = promised <= curve.flat;
  char without[60] = "";
  if (!calls.empty()) {
    std::snprintf(without, sizeof(without), ", %.2f without what its calls grow by", promised);
  }
  char line[250];
  std::snprintf(line, sizeof(line), "%s: %s with %d %s: %.2f of one%s, at most %.1f promised\n",
                is_flat ? "kept" : "BROKEN", curve.name, row.rbegin()->first, curve.of, last / one,
                without, curve.flat);
  *promises += line;
  return is_flat;
}

bool PrintCurves(const std::vector<Curve>& curves, const Times& times,
                 const std::map<std::string, double>& of_copies, bool checks) {
  bool kept = true;
  std::string promises;
  std::printf("\n| operation | with | 1 | | | | |\n|---|---|---:|---:|---:|---:|---:|\n");
  for (const Curve& curve : curves) {
    const bool has_calls = times.Best(KeyOfCalls(curve, curve.sizes.front())) > 0;
    Row row;
    Row calls;
    for (const int size : curve.sizes) {
      const auto of_copy = of_copies.find(KeyOf(curve, size));
      row[size] = of_copy != of_copies.end() ? of_copy->second : times.Best(KeyOf(curve, size));
      if (has_calls) calls[size] = times.Best(KeyOfCalls(curve, size));
    }
    Print(("`" + std::string(curve.name) + "`").c_str(), curve.of, row);
    if (!calls.empty()) Print("of that the driver's calls", curve.of, calls);
    if (checks && curve.flat != 0) kept = IsFlat(curve, row, calls, &promises) && kept;
  }
  std::printf(
      "\nnanoseconds (best of 9; of copies, best of 5) with so many contexts, scopes, threads, "
      "kernels, copies or devices, or after so many contexts that were destroyed or threads that "
      "have ended; the driver's calls without cuguest, in the same run\n\n%s",
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

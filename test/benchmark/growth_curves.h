// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is measured of the growth of costs.

#ifndef CUGUEST_TEST_BENCHMARK_GROWTH_CURVES_H_
#define CUGUEST_TEST_BENCHMARK_GROWTH_CURVES_H_

#include <benchmark/benchmark.h>

#include <functional>
#include <string>
#include <vector>

#include "cuguest/objects/driver.h"
#include "test/benchmark/growth_contexts.h"

namespace cuguest_benchmark {

using Body = std::function<void(benchmark::State&)>;

// What is measured with one size, the repetitions of both interleaved.
struct Bodies {
  Body operation;
  Body calls = {};  // the driver's calls that it makes, alone; empty if they are not measured
};

struct Curve {
  const char* name;
  const char* of;
  std::vector<int> sizes;
  std::function<Bodies(Contexts*, int)> make;  // nullptr: of copies, see MeasureCopies()
  // The most that the last size may take of the first, without what the driver's calls grow by,
  // where these are measured; 0: not promised.
  double flat = 0;
  bool has_threads = false;
};

std::vector<Curve> Curves(bool is_real, const cuguest::ObjectDriver& driver);

// Of what is measured with `size` of `of`.
std::string KeyOf(const std::string& name, const std::string& of, int size);
std::string KeyOf(const Curve& curve, int size);
std::string KeyOfCalls(const Curve& curve, int size);

}  // namespace cuguest_benchmark

#endif  // CUGUEST_TEST_BENCHMARK_GROWTH_CURVES_H_

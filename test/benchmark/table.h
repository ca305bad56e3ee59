// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One table for the whole library: each operation beside what people write today, in one run, in
// groups whose first row is what the others are compared with.
//
// With one thread each row is measured in pairs with the first of its group, back to back, in
// either order in turns. The ratio is the median over the pairs, so that a machine whose speed
// drifts does not matter; the time is what the quickest tenth of the batches took at most, since
// whatever else the machine does only adds to it. With several threads the time is the median of
// nine repetitions from Google Benchmark, those of all rows interleaved, and the ratio that of the
// medians.

#ifndef CUGUEST_TEST_BENCHMARK_TABLE_H_
#define CUGUEST_TEST_BENCHMARK_TABLE_H_

#include <cuda.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cuguest/context_ref.h"
#include "cuguest/objects/driver.h"
#include "cuguest/status.h"
#include "test/benchmark/harness.h"

namespace cuguest_benchmark {

constexpr int kMostThreads = 16;
constexpr int kOwnContexts = 8;  // more threads share them

// What every row works with. Made before the first row.
struct World {
  const cuguest::ObjectDriver* driver;
  CUcontext user;     // of cuCtxCreate
  CUcontext other;    // another one
  CUcontext primary;  // of device 0, the runtime's
  cuguest::ContextRef user_ref;
  CUcontext own[kOwnContexts];  // for rows in which each thread works in a context of its own
};
const World& TheWorld();

// A question for the id of `context`, or of the current one; none below CUDA 12.0.
void AskForId(CUcontext context);

// An operation.
struct Row {
  std::string name;
  // Does it `times` times. `thread`: 0 to 15.
  std::function<void(int thread, int times)> repeat;
};

// The first row is the reference.
struct Group {
  std::string title;
  CUcontext current;         // on the measuring thread; nullptr: none
  std::vector<int> threads;  // each of 1, 4 and 16, or fewer
  int batch;                 // how often at a time: what takes about 50 us
  std::vector<Row> rows;
  // What is done after a batch, and not measured, if anything: waits for a stream.
  std::function<void()> settle = {};
  bool warms = false;  // a batch comes after one that is not measured

  template <typename Work>
  void Add(std::string name, Work work) {
    rows.push_back({std::move(name), [work](int thread, int times) {
                      for (int i = 0; i < times; ++i) work(static_cast<std::size_t>(thread));
                    }});
  }
  // Each thread's own context is current, in place of the group's, which is not nullptr.
  template <typename Work>
  void AddInOwn(std::string name, Work work) {
    rows.push_back({std::move(name), [work](int thread, int times) {
                      TheWorld().driver->CtxSetCurrent(TheWorld().own[thread % kOwnContexts]);
                      for (int i = 0; i < times; ++i) work(static_cast<std::size_t>(thread));
                    }});
  }
};

// The most that a row may take: a ratio to `beside` of the same group (the reference if it is
// empty), or nanoseconds.
struct Promise {
  std::string group;
  std::string row;
  int threads;
  double most;
  std::string beside = {};
  double or_nanoseconds_more = 0;  // or this much longer than the reference; with one thread
  bool is_nanoseconds = false;
};

// What a file of rows adds; it keeps alive what they need.
struct Rows {
  std::vector<Group> groups;
  std::vector<Promise> promises;
  std::shared_ptr<void> needs;
};

// Declared at namespace scope in each file of rows, which is linked where what it measures is
// there. `place`: in the table.
struct RowsOf {
  RowsOf(int place, Rows (*make)());
};

}  // namespace cuguest_benchmark

#endif  // CUGUEST_TEST_BENCHMARK_TABLE_H_

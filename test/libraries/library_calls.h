// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every call of libraries/library.h, cublas.h, cufft.h, cusolver.h and cusparse.h, in forms that
// succeed and in forms that fail, as calls.h has those of the other headers.

#ifndef CUGUEST_TEST_LIBRARIES_LIBRARY_CALLS_H_
#define CUGUEST_TEST_LIBRARIES_LIBRARY_CALLS_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/stream.h"
#include "test/objects/memory/memories.h"
#include "test/runtime/runtime.h"

namespace cuguest_runtime_test {

// What the calls are given.
struct LibraryThings {
  explicit LibraryThings(const ContextRef& of) : ended(of) {}

  cuguest_test::Owner home;
  cuguest_test::Owner other;
  cuguest::StreamRef stream = cuguest::StreamRef::Borrow(home.stream(), home.ref());
  mutable cuguest::DeviceBuffer<std::byte> area =
      cuguest::DeviceBuffer<std::byte>::Allocate(home.ref(), size_t{4} << 20).value();
  ContextRef ended;  // an incarnation of the primary context that was reset
};

// What a call said, and the pool that it used, which ends later.
struct LibraryOutcome {
  LibraryOutcome(absl::Status said, std::shared_ptr<void> of = nullptr)  // NOLINT: implicit
      : status(std::move(said)), pool(std::move(of)) {}
  absl::Status status;
  std::shared_ptr<void> pool;
};

struct LibraryCall {
  const char* names;  // as Call's
  absl::StatusCode expected;
  std::function<LibraryOutcome(const LibraryThings&)> make;
};

const std::vector<LibraryCall>& LibraryCalls();

}  // namespace cuguest_runtime_test

#endif  // CUGUEST_TEST_LIBRARIES_LIBRARY_CALLS_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Buffers of integers on a device, and what the tests of them ask.

#ifndef CUGUEST_TEST_OBJECTS_MEMORY_BUFFERS_H_
#define CUGUEST_TEST_OBJECTS_MEMORY_BUFFERS_H_

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/memory.h"
#include "cuguest/objects/stream.h"
#include "test/objects/memory/memories.h"

namespace buffers {

using cuguest_test::Owner;

using Buffer = cuguest::DeviceBuffer<int>;
using Ints = std::vector<int>;

inline constexpr size_t kInts = cuguest_test::kBytes / sizeof(int);

inline cuguest::StreamRef Ref(const Owner& owner) {
  return cuguest::StreamRef::Borrow(owner.stream(), owner.ref());
}

inline cuguest::MemoryDescription::Kind KindOf(CUdeviceptr pointer) {
  return cuguest::Describe(pointer).value().kind;
}
inline bool IsThere(CUdeviceptr pointer) {
  return KindOf(pointer) != cuguest::MemoryDescription::Kind::kUnregistered;
}

inline Buffer Made(absl::StatusOr<Buffer> buffer) {
  BOOST_TEST_REQUIRE(buffer.ok(), buffer.status().ToString());
  return *std::move(buffer);
}
inline Buffer Allocated(const Owner& owner, size_t count = kInts) {
  return Made(Buffer::Allocate(owner.ref(), count));
}

inline bool Holds(const Buffer& buffer, int value) {
  Ints ints(buffer.size());
  SUCCEEDS(Download(buffer.view(), ints));
  return ints == Ints(buffer.size(), value);
}

}  // namespace buffers

#endif  // CUGUEST_TEST_OBJECTS_MEMORY_BUFFERS_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 3
//
// Not for embedders. What views, buffers and copies are for every element type.

#ifndef CUGUEST_OBJECTS_INTERNAL_MEMORY_RANGE_H_
#define CUGUEST_OBJECTS_INTERNAL_MEMORY_RANGE_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

struct ElementType {
  std::size_t size;
  std::size_t alignment;
};

// Of `count` elements. `doing` is a verb: "allocate".
absl::StatusOr<std::size_t> ByteCount(const char* doing, const ElementType& type,
                                      std::size_t count);

// Memory that a device can reach. No bytes: no pointer.
struct MemoryRange {
  CUGUEST_HIDE MemoryRange() = default;
  CUGUEST_HIDE MemoryRange(CUdeviceptr at, std::size_t size, const ContextRef& owner,
                           Device on_device) noexcept
      : pointer(at), bytes(size), context(owner), device(on_device) {}

  CUdeviceptr pointer = 0;
  std::size_t bytes = 0;
  ContextRef context;  // empty: the device's
  Device device = Device::Borrow(0);
};

}  // namespace internal

template <typename T>
class DeviceView;

namespace internal {

// The range behind a view, and a view of a range that needs no look at it.
struct RangeAccess {
  template <typename View>
  CUGUEST_HIDE static const MemoryRange& Of(const View& view) noexcept {
    return view.range_;
  }
  template <typename T>
  CUGUEST_HIDE static DeviceView<T> View(const MemoryRange& range) noexcept {
    return DeviceView<T>(range);
  }
};

// Source: CUDA Programming Guide, "Interoperability between Runtime and Driver APIs".
CUGUEST_HIDE inline CUdeviceptr AddressOf(const void* pointer) noexcept {
  return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(pointer));
}

CUGUEST_API absl::StatusOr<MemoryRange> BorrowRange(CUdeviceptr pointer, const ElementType& type,
                                                    std::size_t count, bool read_only);
CUGUEST_API absl::StatusOr<MemoryRange> Subrange(const MemoryRange& range, const ElementType& type,
                                                 std::size_t offset, std::size_t count);

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_INTERNAL_MEMORY_RANGE_H_

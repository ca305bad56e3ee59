// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// internal/owned_memory.h                                               tier: 3
// -----------------------------------------------------------------------------
//
// Not for embedders. What DeviceBuffer<T> (device_buffer.h) is for every T.

#ifndef CUGUEST_INTERNAL_OWNED_MEMORY_H_
#define CUGUEST_INTERNAL_OWNED_MEMORY_H_

#include <cuda.h>

#include <cstddef>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/internal/memory_range.h"
#include "cuguest/stream.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

class CUGUEST_API OwnedMemory {
 public:
  static absl::StatusOr<OwnedMemory> Allocate(const ContextRef& context, const ElementType& type,
                                              std::size_t count);
  static absl::StatusOr<OwnedMemory> Allocate(const StreamRef& stream, const ElementType& type,
                                              std::size_t count);
  static absl::StatusOr<OwnedMemory> Adopt(CUdeviceptr pointer, const ElementType& type,
                                           std::size_t count);
  static absl::StatusOr<OwnedMemory> Adopt(CUdeviceptr pointer, const ElementType& type,
                                           std::size_t count, const StreamRef& stream);

  OwnedMemory() noexcept = default;
  OwnedMemory(OwnedMemory&& other) noexcept
      : range_(std::exchange(other.range_, MemoryRange())),
        stream_(std::exchange(other.stream_, StreamRef())) {}
  OwnedMemory& operator=(OwnedMemory&& other) noexcept;
  ~OwnedMemory() { static_cast<void>(Free()); }

  const MemoryRange& range() const noexcept { return range_; }

  absl::Status Free();
  absl::Status FreeIn(const StreamRef& stream);
  MemoryRange Leak() noexcept { return std::exchange(range_, MemoryRange()); }

 private:
  OwnedMemory(const MemoryRange& range, const StreamRef& stream) noexcept
      : range_(range), stream_(stream) {}

  absl::Status FreeAtOnce();
  absl::Status LetGo() noexcept;
  absl::Status Settle(CUresult code);
  absl::Status Keep(CUresult code, std::string_view reason) const;

  MemoryRange range_;
  StreamRef stream_;  // in whose order it is freed; empty: in none
};

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_INTERNAL_OWNED_MEMORY_H_

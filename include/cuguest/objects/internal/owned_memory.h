// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 3
//
// Not for embedders. What DeviceBuffer<T> (device_buffer.h), PinnedBuffer<T> (pinned_buffer.h) and
// ImportedBuffer<T> (imported_buffer.h) are for every T.

#ifndef CUGUEST_OBJECTS_INTERNAL_OWNED_MEMORY_H_
#define CUGUEST_OBJECTS_INTERNAL_OWNED_MEMORY_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/objects/internal/memory_range.h"
#include "cuguest/objects/internal/stream_use.h"
#include "cuguest/objects/stream.h"

CUGUEST_BEGIN_NAMESPACE
struct ExportedMemory;  // imported_buffer.h
struct ObjectDriver;
CUGUEST_END_NAMESPACE

CUGUEST_BEGIN_INTERNAL_NAMESPACE

struct EndOutcome;  // lib/objects/memory/in_context.h

class CUGUEST_API OwnedMemory {
 public:
  static absl::StatusOr<OwnedMemory> Allocate(const ContextRef& context, const ElementType& type,
                                              std::size_t count);
  static absl::StatusOr<OwnedMemory> Allocate(const StreamRef& stream, const ElementType& type,
                                              std::size_t count);
  // Page-locked host memory; `flags` of cuMemHostAlloc.
  static absl::StatusOr<OwnedMemory> AllocateHost(const ContextRef& context,
                                                  const ElementType& type, std::size_t count,
                                                  unsigned flags);
  // Opens what another process has exported.
  static absl::StatusOr<OwnedMemory> Import(const ContextRef& context, const ElementType& type,
                                            const ExportedMemory& exported);
  // Of `count` elements at `values` in host memory.
  static absl::StatusOr<OwnedMemory> CopyOf(const ContextRef& context, const ElementType& type,
                                            const void* values, std::size_t count);
  // The same in the stream's order.
  static absl::StatusOr<OwnedMemory> CopyOf(const StreamRef& stream, const ElementType& type,
                                            const void* values, std::size_t count);
  static absl::StatusOr<OwnedMemory> Adopt(CUdeviceptr pointer, const ElementType& type,
                                           std::size_t count);
  static absl::StatusOr<OwnedMemory> Adopt(CUdeviceptr pointer, const ElementType& type,
                                           std::size_t count, const StreamRef& stream);

  CUGUEST_HIDE OwnedMemory() noexcept = default;
  CUGUEST_HIDE OwnedMemory(OwnedMemory&& other) noexcept
      : range_(std::exchange(other.range_, MemoryRange())),
        stream_(std::exchange(other.stream_, StreamRef())),
        use_(std::move(other.use_)),
        opened_(std::exchange(other.opened_, 0)),
        thread_(other.thread_),
        kind_(other.kind_) {}
  CUGUEST_HIDE OwnedMemory& operator=(OwnedMemory other) noexcept {
    std::swap(range_, other.range_);
    std::swap(stream_, other.stream_);
    std::swap(use_, other.use_);
    std::swap(opened_, other.opened_);
    std::swap(thread_, other.thread_);
    std::swap(kind_, other.kind_);
    return *this;
  }
  CUGUEST_HIDE ~OwnedMemory() { End(); }

  CUGUEST_HIDE const MemoryRange& range() const noexcept { return range_; }

  absl::Status Release();
  absl::Status FreeIn(const StreamRef& stream);
  CUGUEST_HIDE MemoryRange Leak() noexcept {
    use_ = StreamUse();
    return std::exchange(range_, MemoryRange());
  }

 private:
  // By which the driver's call is chosen that gives it back.
  enum class Kind : unsigned char { kDevice, kPinnedHost, kImported };

  OwnedMemory(const MemoryRange& range, const StreamRef& stream) noexcept;

  [[nodiscard]] const char* owner() const noexcept;
  CUresult GiveBack(const ObjectDriver& driver) const noexcept;
  void End() noexcept;
  static CUresult FreeQuietly(OwnedMemory& memory) noexcept;
  [[nodiscard]] bool IsOfAnotherThread() const noexcept;
  EndOutcome TryFree(const StreamRef& stream) noexcept;
  EndOutcome TryFreeIn(const StreamRef& stream, const StreamUse& use) noexcept;
  EndOutcome TryFreeBehind(CUevent last) noexcept;
  EndOutcome TryFreeAtOnce() noexcept;
  EndOutcome Settle(CUresult code, const char* reason = "") noexcept;
  EndOutcome SettleGone() noexcept;

  MemoryRange range_;
  StreamRef stream_;          // in whose order it is freed; empty: in none
  StreamUse use_;             // of that
  CUdeviceptr opened_ = 0;    // where an import was opened: at `range_` or before it
  std::uint64_t thread_ = 0;  // whose per-thread stream it is, if it is one
  Kind kind_ = Kind::kDevice;
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_OBJECTS_INTERNAL_OWNED_MEMORY_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 3
//
// Not for embedders. What ScratchBuffer<T> (scratch_buffer.h) is for every T.

#ifndef CUGUEST_OBJECTS_INTERNAL_SCRATCH_MEMORY_H_
#define CUGUEST_OBJECTS_INTERNAL_SCRATCH_MEMORY_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/export.h"
#include "cuguest/objects/internal/memory_range.h"
#include "cuguest/objects/internal/owned_memory.h"
#include "cuguest/objects/internal/stream_use.h"
#include "cuguest/objects/stream.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// A pool's memory, as a DeviceBuffer of AllocateAsync() has it, or a graph's.
class CUGUEST_API ScratchMemory {
 public:
  static absl::StatusOr<ScratchMemory> Allocate(const StreamRef& stream, const ElementType& type,
                                                std::size_t count);

  CUGUEST_HIDE ScratchMemory() noexcept = default;
  CUGUEST_HIDE ScratchMemory(ScratchMemory&& other) noexcept
      : of_pool_(std::move(other.of_pool_)),
        of_graph_(std::exchange(other.of_graph_, OfGraph())),
        use_(std::move(other.use_)) {}
  CUGUEST_HIDE ScratchMemory& operator=(ScratchMemory other) noexcept {
    std::swap(of_pool_, other.of_pool_);
    std::swap(of_graph_, other.of_graph_);
    std::swap(use_, other.use_);
    return *this;
  }
  CUGUEST_HIDE ~ScratchMemory() {
    if (of_graph_.range.pointer != 0) End();
  }

  CUGUEST_HIDE const MemoryRange& range() const noexcept {
    return of_graph_.range.pointer != 0 ? of_graph_.range : of_pool_.range();
  }

  absl::Status Release();

 private:
  // What a capture has allocated. No pointer: nothing.
  struct OfGraph {
    CUGUEST_HIDE OfGraph() noexcept = default;
    MemoryRange range;
    StreamRef stream;
    cuuint64_t capture = 0;
    std::uint64_t thread = 0;  // whose per-thread stream it is, if it is one
  };

  CUGUEST_HIDE explicit ScratchMemory(OwnedMemory of_pool) noexcept
      : of_pool_(std::move(of_pool)) {}
  static absl::StatusOr<ScratchMemory> AllocateInCapture(const StreamRef& stream,
                                                         std::size_t bytes);
  void End() noexcept;
  static CUresult FreeQuietly(ScratchMemory& memory) noexcept;
  EndOutcome TryFree() noexcept;
  EndOutcome LetGo(CUresult code, const char* reason) noexcept;

  OwnedMemory of_pool_;
  OfGraph of_graph_;
  StreamUse use_;  // of the stream that captures
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_OBJECTS_INTERNAL_SCRATCH_MEMORY_H_

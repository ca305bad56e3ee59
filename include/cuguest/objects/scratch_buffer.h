// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// `ScratchBuffer<T>` is device memory for one call of a library: allocated and freed in the order
/// of the stream that the caller handed in, whichever it is, and whether it captures or not.
///
///   absl::Status Blur(CUstream callers, DeviceView<float> image) {
///     absl::StatusOr<ScratchBuffer<float>> rows =
///         ScratchBuffer<float>::Allocate(callers, image.size());
///     if (!rows.ok()) return rows.status();
///     absl::Status status = BlurRows(image, rows->view(), callers);
///     if (status.ok()) status = BlurColumns(rows->view(), image, callers);
///     return status.ok() ? rows->Release() : status;  // or leave it to the destructor
///   }

#ifndef CUGUEST_OBJECTS_SCRATCH_BUFFER_H_
#define CUGUEST_OBJECTS_SCRATCH_BUFFER_H_

#include <cuda.h>

#include <cstddef>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/device.h"
#include "cuguest/export.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/objects/internal/scratch_memory.h"
#include "cuguest/objects/stream.h"

CUGUEST_BEGIN_NAMESPACE

/// Outside of a capture the memory is the pool's, as that of DeviceBuffer::AllocateAsync(). In one
/// it is the graph's: a node allocates it and a node frees it, so that each launch has it and none
/// holds it in between, however often the graph is launched. What a host cannot do with
/// such a graph is in Note [Scratch memory].
/// Requires: it ends before its stream does, and in a capture before that ends. It is used in the
///           stream's order alone, and in that of streams that wait for it and that it waits for.
/// Stack:   as it was. Count: none: it keeps neither the stream nor its context alive.
/// Threads: distinct. Not from a stream callback (kPermissionDenied; a destructor there owes:
///          Incident::Kind::kOwed), and not from a static or thread_local destructor: see Note [No
///          driver calls after main]. In the order of CU_STREAM_PER_THREAD it ends on its thread.
/// Errors:  those of ObjectDriver::Get(), and as follows; if creation fails, nothing is held.
///          kFailedPrecondition  the context was destroyed or reset
///          kDataLoss            an earlier sticky error
///          kResourceExhausted   no host memory
/// Source:  CUDA Driver API, cuMemAllocAsync, cuMemFreeAsync, cuGraphAddMemAllocNode.
template <typename T>
class ScratchBuffer {
  static_assert(sizeof(T) != 0, "elements of no bytes cannot be counted");
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                "elements are copied byte by byte, and nobody constructs them");

 public:
  /// `count` elements, not initialised, aligned to 256 bytes, from the current pool of the stream's
  /// device, or of the graph with the properties of that pool. No elements: an empty buffer.
  /// Invalidates no capture.
  /// Errors: kInvalidArgument     an empty ref; the size in bytes is more than a size_t holds
  ///         kFailedPrecondition  the stream's capture was invalidated; or it is stream 0, and a
  ///                              blocking stream of its context captures
  ///         kResourceExhausted   out of memory; in a capture as CaptureScope::Allocate()
  ///         kUnimplemented       a driver below CUDA 11.2, in a capture below 11.4; a device that
  ///                              has no pools; a capture into the graph of a child node or of a
  ///                              condition
  ///         The text of the last one says what to use instead.
  /// Cost:   outside of a capture that of DeviceBuffer::AllocateAsync(); in one 13 driver calls,
  ///         below CUDA 13.0 up to four more. On a special stream as StreamRef says.
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<ScratchBuffer> Allocate(const StreamRef& stream,
                                                                           std::size_t count) {
    absl::StatusOr<internal::ScratchMemory> memory =
        internal::ScratchMemory::Allocate(stream, kElements, count);
    if (!memory.ok()) return memory.status();
    return ScratchBuffer(*std::move(memory));
  }

  /// The same for a stream that was handed in, with the errors and the two driver calls of
  /// StreamRef::Borrow().
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<ScratchBuffer> Allocate(
      internal::CallersStream stream, std::size_t count) {
    const absl::StatusOr<StreamRef> ref =
        StreamRef::Borrow(stream.handle, internal::ZeroStream::kLegacy);
    return ref.ok() ? Allocate(*ref, count) : ref.status();
  }

  CUGUEST_HIDE ScratchBuffer() noexcept = default;  // empty

  /// As Release(), its result dropped. Where the graph has memory then that it does not free, that
  /// is reported as Incident::Kind::kOwed, with the code of Release().
  CUGUEST_HIDE ~ScratchBuffer() = default;
  CUGUEST_HIDE ScratchBuffer(ScratchBuffer&&) noexcept = default;
  CUGUEST_HIDE ScratchBuffer& operator=(ScratchBuffer&&) noexcept = default;

  /// Valid for what is submitted until the buffer frees the memory; moving the buffer leaves it
  /// valid. In a capture no pointer query (Describe(), DeviceView::Borrow()) may name it.
  [[nodiscard]] CUGUEST_HIDE DeviceView<T> view() noexcept {
    return DeviceView<T>(memory_.range());
  }
  [[nodiscard]] CUGUEST_HIDE DeviceView<const T> view() const noexcept {
    return DeviceView<const T>(memory_.range());
  }

  /// 0 and nullptr if empty.
  [[nodiscard]] CUGUEST_HIDE CUdeviceptr get() const noexcept { return memory_.range().pointer; }
  [[nodiscard]] CUGUEST_HIDE T* data() noexcept { return reinterpret_cast<T*>(get()); }
  [[nodiscard]] CUGUEST_HIDE const T* data() const noexcept {
    return reinterpret_cast<const T*>(get());
  }

  /// Elements; bytes.
  [[nodiscard]] CUGUEST_HIDE std::size_t size() const noexcept { return size_bytes() / sizeof(T); }
  [[nodiscard]] CUGUEST_HIDE std::size_t size_bytes() const noexcept {
    return memory_.range().bytes;
  }
  [[nodiscard]] CUGUEST_HIDE bool empty() const noexcept { return size_bytes() == 0; }

  [[nodiscard]] CUGUEST_HIDE Device device() const noexcept { return memory_.range().device; }

  /// Frees it in the stream's order: at this place in it, or in the graph. Succeeds if empty, and
  /// at process exit. Invalidates no capture.
  /// Errors: of memory of a pool, those of DeviceBuffer::Release(): the buffer still owns it where
  ///         the stream captures now. Of a graph's,
  ///         kFailedPrecondition  CUDA_ERROR_CONTEXT_IS_DESTROYED, or the capture was invalidated:
  ///                              gone with it; now empty
  ///         kFailedPrecondition  CUDA_ERROR_ILLEGAL_STATE: the capture is over, or its stream; the
  ///                              graph has the memory, and does not free it; now empty
  ///         kFailedPrecondition  CUDA_ERROR_ILLEGAL_STATE: it is in the order of another thread's
  ///                              per-thread stream; it is still owned
  ///         the driver's code    it is still owned; Release() may be tried again
  /// Cost:   on a created stream five driver calls, on a special one two or four more.
  CUGUEST_HIDE absl::Status Release() { return memory_.Release(); }

 private:
  CUGUEST_HIDE static constexpr internal::ElementType kElements = {sizeof(T), alignof(T)};

  CUGUEST_HIDE explicit ScratchBuffer(internal::ScratchMemory memory) noexcept
      : memory_(std::move(memory)) {}

  internal::ScratchMemory memory_;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_SCRATCH_BUFFER_H_

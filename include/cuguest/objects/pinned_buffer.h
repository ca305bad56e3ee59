// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// `PinnedBuffer<T>` owns page-locked host memory. It is allocated and freed in its own context,
/// whatever is current at the time.
///
///   absl::StatusOr<PinnedBuffer<float>> x = PinnedBuffer<float>::Allocate(context, count);
///   if (!x.ok()) return x.status();

#ifndef CUGUEST_OBJECTS_PINNED_BUFFER_H_
#define CUGUEST_OBJECTS_PINNED_BUFFER_H_

#include <cuda.h>

#include <cstddef>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/export.h"
#include "cuguest/objects/host_span.h"
#include "cuguest/objects/internal/memory_range.h"
#include "cuguest/objects/internal/owned_memory.h"

CUGUEST_BEGIN_NAMESPACE

/// The memory goes with its context: when that is destroyed or reset, or its last reference is
/// released, the pages are no longer the buffer's, portable or not, and must not be read or
/// written. A buffer whose context was destroyed or reset makes no driver calls any more; this is
/// as exact as ContextRef::IsAlive.
/// Stack:   as it was. Count: none: it does not keep its context alive.
/// Threads: distinct. Not from a stream callback (kPermissionDenied; a destructor there owes:
///          Incident::Kind::kOwed), and not from a static or thread_local destructor: see Note [No
///          driver calls after main].
/// Errors:  those of ObjectDriver::Get(), and kDataLoss: an earlier sticky error.
/// Source:  CUDA Driver API, cuMemHostAlloc, cuMemFreeHost.
template <typename T>
class PinnedBuffer {
  static_assert(sizeof(T) != 0, "elements of no bytes cannot be counted");
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                "elements are copied byte by byte, and nobody constructs them");

 public:
  /// `count` elements, not initialised. `flags`: any of CU_MEMHOSTALLOC_PORTABLE,
  /// CU_MEMHOSTALLOC_DEVICEMAP and CU_MEMHOSTALLOC_WRITECOMBINED. No elements: an empty buffer.
  /// Invalidates no capture, in any mode, on any thread. On failure nothing is held.
  /// Errors: kInvalidArgument     the size in bytes is more than a size_t holds; other flags
  ///         kFailedPrecondition  the context was destroyed or reset, or the ref is empty
  ///         kResourceExhausted   out of memory
  ///         kUnimplemented       an adopted driver (Driver::Adopt) without cuMemHostAlloc
  /// Cost:   eight driver calls if the context is current, else ten; to lock pages takes longer
  ///         than to allocate device memory.
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<PinnedBuffer> Allocate(const ContextRef& context,
                                                                          std::size_t count,
                                                                          unsigned flags = 0) {
    absl::StatusOr<internal::OwnedMemory> memory =
        internal::OwnedMemory::AllocateHost(context, {sizeof(T), alignof(T)}, count, flags);
    if (!memory.ok()) return memory.status();
    return PinnedBuffer(*std::move(memory));
  }

  CUGUEST_HIDE PinnedBuffer() noexcept = default;  // empty

  /// As Release(), its result dropped. Allocates host memory only where it owes
  /// (Incident::Kind::kOwed).
  CUGUEST_HIDE ~PinnedBuffer() = default;
  CUGUEST_HIDE PinnedBuffer(PinnedBuffer&&) noexcept = default;
  CUGUEST_HIDE PinnedBuffer& operator=(PinnedBuffer&&) noexcept = default;

  /// nullptr if empty. Valid until the buffer frees the memory; moving the buffer leaves it valid.
  [[nodiscard]] CUGUEST_HIDE T* data() noexcept {
    return reinterpret_cast<T*>(memory_.range().pointer);
  }
  [[nodiscard]] CUGUEST_HIDE const T* data() const noexcept {
    return reinterpret_cast<const T*>(memory_.range().pointer);
  }
  [[nodiscard]] CUGUEST_HIDE HostSpan<T> span() noexcept { return {data(), size()}; }
  [[nodiscard]] CUGUEST_HIDE HostSpan<const T> span() const noexcept { return {data(), size()}; }

  /// Elements; bytes.
  [[nodiscard]] CUGUEST_HIDE std::size_t size() const noexcept { return size_bytes() / sizeof(T); }
  [[nodiscard]] CUGUEST_HIDE std::size_t size_bytes() const noexcept {
    return memory_.range().bytes;
  }
  [[nodiscard]] CUGUEST_HIDE bool empty() const noexcept { return size_bytes() == 0; }

  /// The incarnation of the context that the memory is freed with; empty if the buffer is.
  [[nodiscard]] CUGUEST_HIDE const ContextRef& context() const noexcept {
    return memory_.range().context;
  }
  [[nodiscard]] CUGUEST_HIDE Device device() const noexcept { return memory_.range().device; }

  /// Frees it now. Succeeds if empty, and at process exit.
  /// Requires: a device's work with the buffer is done.
  /// Errors: kFailedPrecondition  CUDA_ERROR_CONTEXT_IS_DESTROYED: gone with its context; now empty
  ///         the driver's code    it is still owned, and Release() may be tried again
  /// Cost:   six driver calls if its context is current, else eight.
  CUGUEST_HIDE absl::Status Release() { return memory_.Release(); }

  /// Gives up ownership without a driver call.
  [[nodiscard]] CUGUEST_HIDE HostSpan<T> Leak() noexcept {
    const HostSpan<T> leaked = span();
    static_cast<void>(memory_.Leak());
    return leaked;
  }

 private:
  CUGUEST_HIDE explicit PinnedBuffer(internal::OwnedMemory memory) noexcept
      : memory_(std::move(memory)) {}

  internal::OwnedMemory memory_;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_PINNED_BUFFER_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// `DeviceBuffer<T>` owns device memory. It is allocated and freed in its own context, or in
/// the order of its own stream, whatever is current at the time.
///
///   absl::StatusOr<DeviceBuffer<float>> x = DeviceBuffer<float>::CopyOf(context, values);
///   if (!x.ok()) return x.status();
///   absl::StatusOr<DeviceBuffer<float>> y = DeviceBuffer<float>::Allocate(context, x->size());
///
/// It can take over what somebody else allocated by the driver or by the runtime, since the
/// memory of both is freed alike (docs/guarantees.md).

#ifndef CUGUEST_DEVICE_BUFFER_H_
#define CUGUEST_DEVICE_BUFFER_H_

#include <cuda.h>

#include <cstddef>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/device_view.h"
#include "cuguest/export.h"
#include "cuguest/host_span.h"
#include "cuguest/internal/owned_memory.h"
#include "cuguest/stream.h"

CUGUEST_BEGIN_NAMESPACE

/// Stack:   as it was.
/// Count:   none: it keeps neither its context nor its stream alive. Declare a buffer behind the
///          Stream in whose order it is freed, so that it ends before that. One that ends after a
///          Stream of this copy of cuguest is freed behind all that was submitted to it, for six
///          driver calls more; after a stream that somebody else has destroyed it must not be
///          freed.
/// Threads: distinct objects from any threads; one object needs outside locking. Not from a
///          stream callback (kPermissionDenied; a destructor there leaks), and not from a
///          static or thread_local destructor: see Note [No driver calls after main].
/// Errors:  every function that has any gives those of Driver::Get(), and
///          kPermissionDenied  from a stream callback
///          kDataLoss          an earlier sticky error
///          kResourceExhausted no host memory
/// Source:  CUDA Driver API, cuMemAlloc, cuMemFree, cuMemAllocAsync, cuMemFreeAsync.
template <typename T>
class DeviceBuffer {
  static_assert(sizeof(T) != 0, "elements of no bytes cannot be counted");
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                "elements are copied byte by byte, and nobody constructs them");

 public:
  /// `count` elements, not initialised, aligned to 256 bytes. In a green context: memory of
  /// its device's primary context, which then is context(). No elements: an empty buffer.
  /// Errors: kInvalidArgument     the size in bytes is more than a size_t holds
  ///         kFailedPrecondition  the context was destroyed or reset, or the ref is empty
  ///         kResourceExhausted   out of memory
  ///         Nothing is held then.
  /// Cost:   eight driver calls if the context is current, else ten; the allocation itself
  ///         may wait for the device.
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<DeviceBuffer> Allocate(const ContextRef& context,
                                                                          std::size_t count) {
    return Made(internal::OwnedMemory::Allocate(context, kElements, count));
  }

  /// Allocate(), and an Upload() of `values` into the buffer: the call returns when the copy is
  /// done.
  /// Errors: those of Allocate() and of Upload() in copy.h. Nothing is held then.
  /// Cost:   16 driver calls if the context is current (17 below CUDA 12.0), else 21.
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<DeviceBuffer> CopyOf(const ContextRef& context,
                                                                        HostSpan<const T> values) {
    return Made(internal::OwnedMemory::CopyOf(context, kElements, values.data(), values.size()));
  }

  /// As Allocate(), from the current pool of the stream's device (cuDeviceSetMemPool), for use in
  /// the stream's order from here on, and freed in it. The stream must live until then, unless a
  /// Stream owns it.
  /// Errors: as Allocate, and
  ///         kInvalidArgument     an empty ref
  ///         kFailedPrecondition  the stream captures, or for stream 0 a blocking stream of
  ///                              its context does
  ///         kUnimplemented       a driver below CUDA 11.2, or a device without pools
  /// Cost:   eight driver calls if the stream's context is current, else ten.
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<DeviceBuffer> AllocateAsync(
      const StreamRef& stream, std::size_t count) {
    return Made(internal::OwnedMemory::Allocate(stream, kElements, count));
  }

  /// Takes over what starts at `pointer`, from cuMemAlloc, cuMemAllocManaged, cudaMalloc,
  /// cudaMallocManaged or a pool. It is freed in the context that owns it. Of pool memory the
  /// stream is not known, so work with it must be done before it is freed here.
  /// Errors: those of DeviceView::Borrow, and
  ///         kInvalidArgument  `pointer` is not where the allocation starts; no elements, which
  ///                           would never be freed; or pinned host or virtual memory, which
  ///                           is freed in another way
  ///         It keeps its owner. A module's variable is not recognised; freeing it fails.
  /// Cost:   that of Describe(), twice; of AdoptAsync, three times.
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<DeviceBuffer> Adopt(CUdeviceptr pointer,
                                                                       std::size_t count) {
    return Made(internal::OwnedMemory::Adopt(pointer, kElements, count));
  }
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<DeviceBuffer> Adopt(T* pointer,
                                                                       std::size_t count) {
    return Adopt(internal::AddressOf(pointer), count);
  }

  /// The same, freed in the order of `stream`, which must live until then, unless a Stream owns it;
  /// see Note [Memory freed in a stream that ends].
  /// Errors: those of Adopt, and
  ///         kInvalidArgument  an empty ref; or managed memory, which the driver does not free
  ///                           so (docs/guarantees.md)
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<DeviceBuffer> AdoptAsync(
      CUdeviceptr pointer, std::size_t count, const StreamRef& stream) {
    return Made(internal::OwnedMemory::Adopt(pointer, kElements, count, stream));
  }

  CUGUEST_HIDE DeviceBuffer() noexcept = default;  // empty

  /// As Release(), its result dropped, but for Note [Per-thread streams]. Allocates no host memory.
  CUGUEST_HIDE ~DeviceBuffer() = default;
  CUGUEST_HIDE DeviceBuffer(DeviceBuffer&&) noexcept = default;
  CUGUEST_HIDE DeviceBuffer& operator=(DeviceBuffer&&) noexcept = default;

  /// Valid until the buffer frees the memory; moving the buffer leaves it valid.
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

  /// The incarnation of the context that the memory is freed with; empty for pool memory.
  [[nodiscard]] CUGUEST_HIDE const ContextRef& context() const noexcept {
    return memory_.range().context;
  }
  [[nodiscard]] CUGUEST_HIDE Device device() const noexcept { return memory_.range().device; }

  /// Frees it now: memory of Allocate and Adopt at once, waiting for the device where
  /// cuMemFree does; of AllocateAsync and AdoptAsync when the stream gets there. Memory of
  /// cuMemAlloc that was adopted so, and whose Stream has ended: at once, after a wait for the
  /// stream's work. Succeeds if empty, and at the end of the process.
  /// Errors: kFailedPrecondition  with CUDA_ERROR_CONTEXT_IS_DESTROYED: it went with its
  ///                              context before; the buffer is empty then, as on success.
  ///                              Or its stream captures, or is another thread's per-thread
  ///                              stream: it is still owned.
  ///         kInvalidArgument     its Stream ended while it captured: it is still owned
  ///         the driver's code    it is still owned, and Release() may be tried again
  /// Cost:   six driver calls if its context is current, else eight; in a stream's order eight
  ///         and ten; of pool memory at once, four.
  CUGUEST_HIDE absl::Status Release() { return memory_.Release(); }

  /// The same, in the order of another stream than the one it would be freed in; see Note [Memory
  /// freed in a stream that ends].
  /// Errors: also kInvalidArgument     an empty ref: it is still owned
  ///              kFailedPrecondition  with CUDA_ERROR_INVALID_CONTEXT: the stream's context was
  ///                                   destroyed or reset, and the memory's was not: it is still
  ///                                   owned
  CUGUEST_HIDE absl::Status FreeAsync(const StreamRef& stream) { return memory_.FreeIn(stream); }

  /// Gives up ownership without a driver call.
  [[nodiscard]] CUGUEST_HIDE DeviceView<T> Leak() noexcept { return DeviceView<T>(memory_.Leak()); }

 private:
  CUGUEST_HIDE static constexpr internal::ElementType kElements = {sizeof(T), alignof(T)};

  CUGUEST_HIDE static absl::StatusOr<DeviceBuffer> Made(
      absl::StatusOr<internal::OwnedMemory> memory) {
    if (!memory.ok()) return memory.status();
    return DeviceBuffer(*std::move(memory));
  }
  CUGUEST_HIDE explicit DeviceBuffer(internal::OwnedMemory memory) noexcept
      : memory_(std::move(memory)) {}

  internal::OwnedMemory memory_;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_DEVICE_BUFFER_H_

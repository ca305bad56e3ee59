// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// `DeviceBuffer<T>` owns device memory. It is allocated and freed in its own context, or in the
/// order of its own stream, whatever is current at the time.
///
///   absl::StatusOr<DeviceBuffer<float>> x = DeviceBuffer<float>::CopyOf(context, values);
///   if (!x.ok()) return x.status();
///   absl::StatusOr<DeviceBuffer<float>> y = DeviceBuffer<float>::Allocate(context, x->size());
///
/// It can adopt memory of the driver or the runtime: both are freed alike (docs/guarantees.md).

#ifndef CUGUEST_OBJECTS_DEVICE_BUFFER_H_
#define CUGUEST_OBJECTS_DEVICE_BUFFER_H_

#include <cuda.h>

#include <cstddef>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/export.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/objects/host_span.h"
#include "cuguest/objects/internal/owned_memory.h"
#include "cuguest/objects/stream.h"

CUGUEST_BEGIN_NAMESPACE

/// Requires: other code destroys the stream in whose order the buffer is freed only after that.
/// Stack:   as it was. Count: none: it keeps neither its context nor its stream alive. Declare a
///          buffer after the Stream in whose order it is freed, to destroy it first. One that
///          outlives a Stream of this copy of cuguest is freed behind all that was submitted to it,
///          for six driver calls more.
/// Threads: distinct; a buffer and its Stream may end at the same time. Not from a stream callback
///          (kPermissionDenied; a destructor there owes: Incident::Kind::kOwed), and not from a
///          static or thread_local destructor: see Note [No driver calls after main].
/// Errors:  those of ObjectDriver::Get(), and as follows; if creation fails, nothing is held.
///          kFailedPrecondition  the context was destroyed or reset, or the ContextRef is empty
///          kDataLoss            an earlier sticky error
///          kResourceExhausted   no host memory
/// Source:  CUDA Driver API, cuMemAlloc, cuMemFree, cuMemAllocAsync, cuMemFreeAsync.
template <typename T>
class DeviceBuffer {
  static_assert(sizeof(T) != 0, "elements of no bytes cannot be counted");
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                "elements are copied byte by byte, and nobody constructs them");

 public:
  /// `count` elements, not initialised, aligned to 256 bytes. In a green context: memory of its
  /// device's primary context, which then is context(). No elements: an empty buffer.
  /// Errors: kInvalidArgument    the size in bytes is more than a size_t holds
  ///         kResourceExhausted  out of memory
  /// Cost:   eight driver calls if the context is current, else ten; it may wait for the device.
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<DeviceBuffer> Allocate(const ContextRef& context,
                                                                          std::size_t count) {
    return Made(internal::OwnedMemory::Allocate(context, kElements, count));
  }

  /// Allocate(), and an Upload() of `values`; it returns when the copy is done.
  /// Errors: those of Allocate() and of Upload() in copy.h.
  /// Cost:   16 driver calls if the context is current, else 20.
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<DeviceBuffer> CopyOf(const ContextRef& context,
                                                                        HostSpan<const T> values) {
    return Made(internal::OwnedMemory::CopyOf(context, kElements, values.data(), values.size()));
  }

  /// As Allocate(), from the current pool of the stream's device (cuDeviceSetMemPool), for use, and
  /// freed, in the stream's order.
  /// Requires: the stream lives until the memory is freed, unless a Stream owns it.
  /// Errors: as Allocate(), and
  ///         kInvalidArgument     an empty ref
  ///         kFailedPrecondition  the stream or (stream 0) a blocking one of its context captures
  ///         kUnimplemented       a driver below CUDA 11.2, or a device without pools
  /// Cost:   five driver calls on a created stream, and four more, or six if its context is not
  ///         current, when the thread's last one was in another context (below CUDA 12.0 every
  ///         time). On a special stream as StreamRef says.
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<DeviceBuffer> AllocateAsync(
      const StreamRef& stream, std::size_t count) {
    return Made(internal::OwnedMemory::Allocate(stream, kElements, count));
  }

  /// AllocateAsync(), and an UploadAsync() of `values`; not of a temporary container.
  /// Requires: that of AllocateAsync(); `values` stay until the upload is done.
  /// Errors, cost: those of both.
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<DeviceBuffer> CopyOfAsync(
      const StreamRef& stream, HostSpan<const T> values) {
    return Made(internal::OwnedMemory::CopyOf(stream, kElements, values.data(), values.size()));
  }
  template <typename Host, typename = internal::IfEndsTooEarly<T, Host>>
  static absl::StatusOr<DeviceBuffer> CopyOfAsync(const StreamRef& stream, Host&& values) = delete;

  /// Takes ownership of what starts at `pointer`, from cuMemAlloc, cuMemAllocManaged, cudaMalloc,
  /// cudaMallocManaged or a pool. It is freed in the context that owns it.
  /// Requires: work with pool memory, whose stream is not known, is done before it is freed here.
  /// Errors: those of DeviceView::Borrow(), and
  ///         kInvalidArgument  `pointer` is not where the allocation starts; no elements, which
  ///                           would never be freed; or pinned host or virtual memory, which is
  ///                           freed in another way; or memory that the driver does not export: it
  ///                           was opened from another process (see ImportedBuffer), or is a
  ///                           module's variable
  ///         It keeps its owner then. On a device that exports nothing the last two are not
  ///         recognised; freeing them fails.
  /// Cost:   that of Describe(), twice, and one driver call for device memory; of AdoptAsync(),
  ///         three times. Five calls more for memory that a pool has on the host.
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<DeviceBuffer> Adopt(CUdeviceptr pointer,
                                                                       std::size_t count) {
    return Made(internal::OwnedMemory::Adopt(pointer, kElements, count));
  }
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<DeviceBuffer> Adopt(T* pointer,
                                                                       std::size_t count) {
    return Adopt(internal::AddressOf(pointer), count);
  }

  /// The same, freed in the order of `stream`; see Note [Memory freed in a stream that ends].
  /// Requires: `stream` lives until the memory is freed, unless a Stream owns it.
  /// Errors: those of Adopt(), and kInvalidArgument: an empty ref; or managed memory, which the
  ///         driver does not free so (docs/guarantees.md).
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<DeviceBuffer> AdoptAsync(
      CUdeviceptr pointer, std::size_t count, const StreamRef& stream) {
    return Made(internal::OwnedMemory::Adopt(pointer, kElements, count, stream));
  }

  CUGUEST_HIDE DeviceBuffer() noexcept = default;  // empty

  /// As Release(), its result dropped, but for Note [Per-thread streams]. Allocates host memory
  /// only where it owes (Incident::Kind::kOwed).
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

  /// Frees it now: memory of Allocate() and Adopt() at once, waiting for the device where cuMemFree
  /// does; of AllocateAsync() and AdoptAsync() when the stream gets there. Memory of cuMemAlloc
  /// that AdoptAsync() adopted, and whose Stream was destroyed: at once, after a wait for the
  /// stream's work. Succeeds if empty, and at process exit.
  /// Errors: kFailedPrecondition  CUDA_ERROR_CONTEXT_IS_DESTROYED: gone with its context; now empty
  ///         In all other cases the buffer still owns the memory:
  ///         kFailedPrecondition  its stream captures, or is another thread's per-thread stream
  ///         kInvalidArgument     its Stream was destroyed while it captured, or without an event
  ///                              behind its work
  ///         the driver's code    Release() may be tried again
  /// Cost:   six driver calls if its context is current, else eight; in the order of a created
  ///         stream five, of a special one two or four more; of pool memory at once, four.
  CUGUEST_HIDE absl::Status Release() { return memory_.Release(); }

  /// The same, in the order of another stream than the one it would be freed in; see Note [Memory
  /// freed in a stream that ends].
  /// Errors: also, with the memory still owned,
  ///         kInvalidArgument     an empty ref
  ///         kFailedPrecondition  CUDA_ERROR_INVALID_CONTEXT: the stream's context was destroyed or
  ///                              reset, and the memory's was not
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

#endif  // CUGUEST_OBJECTS_DEVICE_BUFFER_H_

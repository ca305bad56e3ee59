// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// Device memory that two processes of a machine share: one describes memory of its own as an
/// `ExportedMemory`, and in the other an `ImportedBuffer<T>` owns the mapping of it. It is opened
/// and closed in its own context, whatever is current at the time.
///
///   // In one process:
///   absl::StatusOr<ExportedMemory> exported = ExportedMemory::Of(buffer.view());
///   if (!exported.ok()) return exported.status();
///   Send(*exported);
///
///   // In another one:
///   const ExportedMemory received = Receive();
///   absl::StatusOr<ImportedBuffer<float>> x = ImportedBuffer<float>::Import(context, received);
///   if (!x.ok()) return x.status();
///
/// Events order the work of the two: see Event::Export() in stream.h. Memory of a pool, and virtual
/// memory, are shared in another way, by file descriptors: see Note [Memory of another process].

#ifndef CUGUEST_OBJECTS_IMPORTED_BUFFER_H_
#define CUGUEST_OBJECTS_IMPORTED_BUFFER_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/export.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/objects/internal/memory_range.h"
#include "cuguest/objects/internal/owned_memory.h"

CUGUEST_BEGIN_NAMESPACE

/// Which memory another process may open: plain bytes, which may be sent as they are to a process
/// of this machine. From a peer without cuguest, `handle` is that of cuIpcGetMemHandle or
/// cudaIpcGetMemHandle, `offset` where the peer's pointer lies in its allocation, and `bytes` how
/// many there are from it on.
struct ExportedMemory {
  CUGUEST_HIDE ExportedMemory() = default;

  CUipcMemHandle handle = {};  ///< of the whole allocation
  std::uint64_t offset = 0;    ///< bytes
  std::uint64_t bytes = 0;

  /// Describes the memory of `view`, which may be a part of an allocation. Who opens it can write
  /// to all of that allocation.
  /// Requires: the memory is not freed before every importer has closed it (CUDA Driver API,
  ///           cuIpcOpenMemHandle); nobody checks that.
  /// Stack:   net 0. Count: none.
  /// Threads: any; not from a stream callback: kPermissionDenied. Invalidates no capture.
  /// Errors:  those of ObjectDriver::Get() and Describe(), and
  ///          kInvalidArgument     an empty view; memory that is not of cuMemAlloc or cudaMalloc,
  ///                               but of a pool, virtual, managed or imported: the text says which
  ///          kFailedPrecondition  the memory's context was destroyed or reset
  ///          kUnimplemented       a system that exports nothing: CUDA_ERROR_NOT_SUPPORTED; an
  ///                               adopted driver (Driver::Adopt) without cuIpcGetMemHandle
  /// Cost:    eight driver calls if the context is current, else ten.
  /// Source:  CUDA Driver API, cuIpcGetMemHandle; docs/guarantees.md.
  template <typename T>
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<ExportedMemory> Of(const DeviceView<T>& view) {
    static_assert(!std::is_const_v<T>, "who opens it can write to it");
    return OfRange(internal::RangeAccess::Of(view));
  }

 private:
  CUGUEST_API static absl::StatusOr<ExportedMemory> OfRange(const internal::MemoryRange& range);
};
static_assert(std::is_trivially_copyable_v<ExportedMemory>, "it is sent as bytes");

/// Memory of another process. The mapping goes with its context: when that is destroyed or reset,
/// or its last reference is released, the pointer is no longer the buffer's, and a buffer whose
/// context was destroyed or reset makes no driver calls any more; this is as exact as
/// ContextRef::IsAlive. The exporter's memory stays in any case.
/// Stack:   as it was. Count: none: it does not keep its context alive.
/// Threads: distinct. Not from a stream callback (kPermissionDenied; a destructor there owes:
///          Incident::Kind::kOwed), and not from a static or thread_local destructor: see Note [No
///          driver calls after main]. In a child of a fork it makes no driver call, and the
///          parent's mapping stays.
/// Errors:  those of ObjectDriver::Get(), and kDataLoss: an earlier sticky error.
/// Source:  CUDA Driver API, cuIpcOpenMemHandle, cuIpcCloseMemHandle; docs/guarantees.md.
template <typename T>
class [[nodiscard]] ImportedBuffer {
  static_assert(sizeof(T) != 0, "elements of no bytes cannot be counted");
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                "elements are copied byte by byte, and nobody constructs them");

 public:
  /// Opens what another process exported, and reaches its device where that is another one than
  /// `context`'s. The same memory may be imported several times in a context: each buffer is closed
  /// for itself. On one device, open everything of one process in one context: the documentation
  /// allows no second one. Invalidates no capture, in any mode, on any thread. On failure nothing
  /// is held.
  /// Errors: kInvalidArgument     the bytes are no handle; or the allocation does not have that
  ///                              part, in elements of T and aligned for them; none at all
  ///         kFailedPrecondition  the context was destroyed or reset, or the ref is empty;
  ///                              CUDA_ERROR_INVALID_CONTEXT: this process exported it, and uses
  ///                              the memory itself
  ///         kUnimplemented       a system that exports nothing; an adopted driver
  ///                              (Driver::Adopt) without the functions
  ///         the driver's code    the exporter has freed it or has ended; its device cannot be
  ///                              reached
  /// Cost:   eight driver calls if the context is current, else ten.
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<ImportedBuffer> Import(
      const ContextRef& context, const ExportedMemory& exported) {
    absl::StatusOr<internal::OwnedMemory> memory =
        internal::OwnedMemory::Import(context, {sizeof(T), alignof(T)}, exported);
    if (!memory.ok()) return memory.status();
    return ImportedBuffer(*std::move(memory));
  }

  CUGUEST_HIDE ImportedBuffer() noexcept = default;  // empty

  /// As Release(), its result dropped. Allocates host memory only where it owes
  /// (Incident::Kind::kOwed).
  CUGUEST_HIDE ~ImportedBuffer() = default;
  CUGUEST_HIDE ImportedBuffer(ImportedBuffer&&) noexcept = default;
  CUGUEST_HIDE ImportedBuffer& operator=(ImportedBuffer&&) noexcept = default;

  /// Valid until the buffer closes the memory; moving the buffer leaves it valid.
  [[nodiscard]] CUGUEST_HIDE DeviceView<T> view() noexcept {
    return internal::RangeAccess::View<T>(memory_.range());
  }
  [[nodiscard]] CUGUEST_HIDE DeviceView<const T> view() const noexcept {
    return internal::RangeAccess::View<const T>(memory_.range());
  }

  /// 0 if empty. Where an offset was exported, not the pointer that cuIpcCloseMemHandle takes.
  [[nodiscard]] CUGUEST_HIDE CUdeviceptr get() const noexcept { return memory_.range().pointer; }

  /// Elements; bytes.
  [[nodiscard]] CUGUEST_HIDE std::size_t size() const noexcept { return size_bytes() / sizeof(T); }
  [[nodiscard]] CUGUEST_HIDE std::size_t size_bytes() const noexcept {
    return memory_.range().bytes;
  }
  [[nodiscard]] CUGUEST_HIDE bool empty() const noexcept { return size_bytes() == 0; }

  /// The incarnation of the context that the memory was opened in; empty if the buffer is.
  [[nodiscard]] CUGUEST_HIDE const ContextRef& context() const noexcept {
    return memory_.range().context;
  }
  [[nodiscard]] CUGUEST_HIDE Device device() const noexcept { return memory_.range().device; }

  /// Closes it now, in its context. Succeeds if empty, and at process exit.
  /// Requires: work of this process with the buffer is done.
  /// Errors: kFailedPrecondition  CUDA_ERROR_CONTEXT_IS_DESTROYED: gone with its context; now empty
  ///         the driver's code    it is still owned, and Release() may be tried again
  /// Cost:   six driver calls if its context is current, else eight.
  CUGUEST_HIDE absl::Status Release() { return memory_.Release(); }

 private:
  CUGUEST_HIDE explicit ImportedBuffer(internal::OwnedMemory memory) noexcept
      : memory_(std::move(memory)) {}

  internal::OwnedMemory memory_;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_IMPORTED_BUFFER_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// What is this pointer? `Describe()` answers for any address, valid or not: which kind of memory
/// it is, whose, how much, and which side can reach it.
///
///   const absl::StatusOr<MemoryDescription> memory = Describe(pointer);
///   if (!memory.ok()) return memory.status();
///   std::puts(memory->ToString().c_str());
///   // 0x7f2a00000010: device memory of device 0, byte 16 of 4096, context 0x55d0c8f2a3e0
///   const bool is_known = memory->kind != MemoryDescription::Kind::kUnregistered;
///   if (!is_known) return CopyThroughTheHost(pointer);

#ifndef CUGUEST_OBJECTS_MEMORY_H_
#define CUGUEST_OBJECTS_MEMORY_H_

#include <cuda.h>

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

/// A copy of what the driver said, true when it said it. Sizes and offsets are in bytes. See Note
/// [Whose memory it is] for the kinds.
struct CUGUEST_API MemoryDescription {
  enum class Kind : unsigned char {
    kUnregistered,
    kDevice,
    kManaged,
    kPinnedHost,
    kPool,
    kVirtual,
    kPageable,  ///< plain memory of the host, where every device of this process reaches it
  };
  /// What the device that holds the memory may do with it; kNone if unregistered. It is asked for
  /// virtual memory only, and kReadWrite for all else: also for memory of a pool on the host, which
  /// no device may use until the pool gives it access (cuMemPoolSetAccess).
  enum class Access : unsigned char { kNone, kRead, kReadWrite };

  CUGUEST_HIDE MemoryDescription() = default;

  Kind kind = Kind::kUnregistered;
  CUdeviceptr pointer = 0;  ///< what was asked about

  /// The incarnation of the context that it belongs to; empty where it belongs to a device, or to
  /// the host alone.
  ContextRef context;
  /// For pinned host memory its context's; for pools and virtual memory on the host the one that
  /// the driver names, which need not be the only one to reach it; for pageable memory that of the
  /// current context, else the first. Nothing if unregistered.
  std::optional<Device> device;

  /// Whether its pages are the host's, whatever kind it is; never for managed memory.
  bool is_on_host = false;

  /// The allocation around the pointer; for virtual memory the one mapping around it, which may
  /// have neighbours. 0 and 0 if unregistered or pageable, below CUDA 10.2 (for virtual memory
  /// below 11.3), and for memory of a pool on the host, whose start the driver does not report.
  CUdeviceptr base = 0;
  std::size_t size = 0;

  /// The same byte for a kernel, and for the host; 0 and nullptr where it cannot reach it.
  CUdeviceptr device_address = 0;
  void* host_address = nullptr;

  Access access = Access::kNone;
  CUmemoryPool pool = nullptr;  ///< of kPool; it may have been destroyed

  /// From `base` to the pointer, and from there to the end.
  [[nodiscard]] CUGUEST_HIDE std::size_t offset() const noexcept {
    return size == 0 ? 0 : static_cast<std::size_t>(pointer - base);
  }
  [[nodiscard]] CUGUEST_HIDE std::size_t bytes_left() const noexcept { return size - offset(); }

  /// Whether every device of a 64-bit system reaches it unasked: managed, pinned and pageable host
  /// memory.
  [[nodiscard]] CUGUEST_HIDE bool is_for_all_devices() const noexcept {
    return kind == Kind::kManaged || kind == Kind::kPinnedHost || kind == Kind::kPageable;
  }

  [[nodiscard]] std::string ToString() const;  ///< one line
};

/// "device memory", "pinned host memory", ...
[[nodiscard]] CUGUEST_API const char* Name(MemoryDescription::Kind kind) noexcept;

/// What kind of memory an address is in, and whose. Null, freed and plain host memory, numbers that
/// are no address, and addresses that are reserved and not mapped are kUnregistered. But where
/// every device has CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS (HMM, Grace Hopper), what is mapped
/// in this process is kPageable, freed or not, whatever its protection. The driver looks the
/// address up and does not read from it.
/// Stack:   net 0: pinned host memory is looked up in its own context if none is current, as only a
///          context has an address for it; below CUDA 10.2 all memory is looked up in its own.
///          Nothing else touches it. Needs and creates no context.
/// Threads: any; not from a stream callback: kPermissionDenied. Invalidates no capture, of any
///          mode, on any thread.
/// Errors:  those of ObjectDriver::Get(), and kFailedPrecondition: before cuInit, in a forked
/// child; or
///          the memory's context was destroyed or reset during the call.
/// Cost:    driver calls: one for unregistered and pool memory, else two, and four for pageable
///          memory; for pinned host memory up to eight if no context is current; once in a
///          process, for what is plain, one more and one for each device; below CUDA 11.3 one more,
///          below 10.2 three more and those of a ContextGuard. They take the driver's lock: not for
///          hot paths (60 ns on an H200; 250 ns with four threads).
/// Needs:   nothing; below CUDA 10.2 without `base` and `size`, as said there.
/// Source:  CUDA Driver API, cuPointerGetAttributes.
[[nodiscard]] CUGUEST_API absl::StatusOr<MemoryDescription> Describe(CUdeviceptr pointer);
[[nodiscard]] CUGUEST_API absl::StatusOr<MemoryDescription> Describe(const void* pointer);
[[nodiscard]] CUGUEST_HIDE inline absl::StatusOr<MemoryDescription> Describe(std::nullptr_t) {
  return Describe(CUdeviceptr{0});
}
/// An array's handle is no address: see Array::Describe() of array.h.
void Describe(CUarray array) = delete;

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_MEMORY_H_

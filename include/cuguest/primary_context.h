// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 2
/// \file
/// `PrimaryContext` owns one reference to a device's primary context, which the CUDA runtime and
/// every other library of the process share. The reference keeps that context alive, unless
/// somebody resets it; it does not make it current, which is ContextGuard's work.
///
///   PrimaryContext primary = PrimaryContext::Retain(device);
///   if (!primary.ok()) return primary.error().code;
///   ContextGuard guard(primary);

#ifndef CUGUEST_PRIMARY_CONTEXT_H_
#define CUGUEST_PRIMARY_CONTEXT_H_

#include <cuda.h>

#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/error.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

/// Stack:   never touched.
/// Count:   +1 on Retain, -1 on Release or destruction; moves keep it.
/// Threads: distinct.
/// Source:  CUDA Driver API, "Primary Context Management"; docs/guarantees.md.
class [[nodiscard]] CUGUEST_API PrimaryContext {
 public:
  /// What Query() found.
  struct State {
    CUGUEST_HIDE State() = default;
    CUGUEST_INTERNAL_IS_NO_STATUS_OR(State);
    [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return failure.ok(); }
    [[nodiscard]] CUGUEST_HIDE const Error& error() const noexcept { return failure; }

    bool active = false;  ///< somebody holds a reference
    unsigned flags = 0;   ///< CU_CTX_SCHED_* and others; 0 when inactive unless set in advance
    Error failure;        ///< why the others mean nothing
  };

  /// Takes one reference, creating the context if there is none.
  /// Errors: it is not ok(), and nothing is held:
  ///         kNoDriver, kNotInitialized      as Driver::GetInitialized()
  ///         CUDA_ERROR_INVALID_DEVICE       no such device
  ///         CUDA_ERROR_OUT_OF_MEMORY        creating the context ran out of memory
  ///         CUDA_ERROR_DEVICE_UNAVAILABLE   the device is in a compute mode that refuses it
  ///         a sticky error (IsSticky)       an earlier one
  /// Cost:   the first reference of a device creates a context (about 90 ms and 0.5 GiB of device
  ///         memory on an H200); later ones are two driver calls.
  [[nodiscard]] static PrimaryContext Retain(Device device) noexcept;

  /// Takes one reference if the context is active, and does not create it. The driver has no such
  /// call, so this queries and then retains: if the last holder releases its reference exactly in
  /// between, the context is created after all. A caller that must exclude that needs a reference
  /// of its own.
  /// Errors: those of Retain, and kNobodyHolds, CUDA_ERROR_INVALID_CONTEXT, if it is inactive.
  [[nodiscard]] static PrimaryContext RetainIfActive(Device device) noexcept;

  /// Creates nothing, retains nothing.
  /// Cost:   one driver call, which takes the driver's lock: not for hot paths.
  [[nodiscard]] static State Query(Device device) noexcept;

  CUGUEST_HIDE PrimaryContext() noexcept = default;  // empty: holds no reference
  CUGUEST_HIDE PrimaryContext(PrimaryContext&& other) noexcept
      : device_(other.device_), incarnation_(other.incarnation_), error_(other.error_) {
    other.incarnation_ = ContextRef();
  }
  PrimaryContext& operator=(PrimaryContext&& other) noexcept;

  /// As Release(), whose result nobody gets. What cannot be given back is as
  /// Incident::Kind::kOwed says. Not from a static or thread_local destructor: see Note [No driver
  /// calls after main].
  ~PrimaryContext();

  CUGUEST_INTERNAL_IS_NO_STATUS_OR(PrimaryContext);

  /// Whether it holds a reference.
  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return get() != nullptr; }
  /// Why it does not: kEmpty, CUDA_ERROR_INVALID_CONTEXT, where retaining did not fail.
  [[nodiscard]] Error error() const noexcept;

  /// nullptr if empty. The handle of a device's primary context stays the same through every reset;
  /// context() tells its incarnations apart.
  [[nodiscard]] CUGUEST_HIDE CUcontext get() const noexcept { return incarnation_.get(); }
  [[nodiscard]] CUGUEST_HIDE Device device() const noexcept { return device_; }

  /// The incarnation that was retained: give this to ContextGuard, and key caches by it.
  [[nodiscard]] CUGUEST_HIDE const ContextRef& context() const noexcept { return incarnation_; }

  /// Whether the incarnation that was retained was reset: somebody reset the device
  /// (cudaDeviceReset, cuDevicePrimaryCtxReset), or released more references than they held.
  /// Everything in it is gone, even if the context is active again: Release() and Retain() anew.
  /// False if empty.
  /// Cost:   one driver call, contention-free. Exact.
  /// Needs:  CUDA 12.0; below that a reset goes unseen once the context is active again.
  [[nodiscard]] bool WasReset() const noexcept;

  /// Releases the reference now and reports what the destructor cannot. A reset takes no references
  /// away: after one, this releases ours and nobody else's.
  /// Errors: CUDA_ERROR_INVALID_CONTEXT  the driver counts no reference any more: somebody released
  ///                                     one that they did not hold
  ///         CUDA_ERROR_NOT_PERMITTED    in a stream callback
  /// Post:   empty, unless in a stream callback: it is still held then.
  Error Release() noexcept;

  /// Gives up ownership without a driver call; the reference lasts until the process ends.
  CUGUEST_HIDE CUcontext Leak() noexcept {
    const CUcontext context = get();
    incarnation_ = ContextRef();
    return context;
  }

 private:
  Device device_ = Device::Borrow(0);
  ContextRef incarnation_;  // empty: holds no reference
  Error error_;             // of retaining it
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_PRIMARY_CONTEXT_H_

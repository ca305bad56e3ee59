// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 4
/// \file
/// `DeviceGuard` makes a context of the device current, which is all that the runtime goes by, and
/// restores the caller's stack. It never calls cudaSetDevice: the idiom cudaGetDevice,
/// cudaSetDevice(d), ... cudaSetDevice(old) replaces the caller's current context, and its last
/// call creates a primary context of some 500 MB on the *old* device if there was none.
///
///   CUGUEST_ASSIGN_OR_RETURN(const Device device, runtime::FromRuntime(d));
///   runtime::DeviceGuard guard(device, IfInactive::kCreate);
///   CUGUEST_RETURN_IF_ERROR(guard);
///   cudaMalloc(&pointer, bytes);                 // on device d

#ifndef CUGUEST_RUNTIME_DEVICE_GUARD_H_
#define CUGUEST_RUNTIME_DEVICE_GUARD_H_

#include "cuguest/acquire.h"
#include "cuguest/acquired_guard.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/error.h"
#include "cuguest/runtime/binding.h"

CUGUEST_BEGIN_RUNTIME_NAMESPACE

/// For a scope, cudaGetDevice says `device` and runtime calls work there: in the current context if
/// that is on it already, else in the device's primary context.
/// Stack:   as ContextGuard: net 0 over the scope.
/// Count:   one reference to the primary context while the scope lasts, unless a context of the
///          device was current.
/// Threads: bound; as ContextGuard, guards end in any order.
/// Errors:  test ok(). error() is that of AcquireOn or of ContextGuard; a guard that failed has
///          changed nothing. An inactive primary context of `device` is an error; with kCreate it
///          is created, and no other, as cudaSetDevice does. What a callee leaves behind is an
///          incident, repaired as by any ContextGuard; only the device that cudaGetDevice names
///          with *no* context current stays the callee's: see runtime/callee_scope.h. The runtime's
///          last error is not touched.
/// Cost:    where a context of the device is current, 3 driver calls (query, cuCtxGetId, query) if
///          it is the one that the thread's last DeviceGuard or Acquire function found current,
///          otherwise 4; without contention, lock or allocation. Where none is: those of AcquireOn,
///          of a ContextGuard and of releasing the reference, which take the driver's lock.
class [[nodiscard]] DeviceGuard {
 public:
  [[nodiscard]] [[gnu::always_inline]] inline explicit DeviceGuard(
      Device device, IfInactive if_inactive = IfInactive::kRefuse,
      Location where = Location::Here())
      : guard_(device, if_inactive, GuardMode::kElide, where) {}
  [[gnu::always_inline]] inline ~DeviceGuard() {}
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

  [[nodiscard]] bool ok() const noexcept { return guard_.ok(); }
  [[nodiscard]] Error error() const noexcept { return guard_.error(); }

  /// The context that the runtime works in; valid as long as this object.
  /// Requires: ok().
  [[nodiscard]] const ContextRef& context() const noexcept { return guard_.context(); }

  /// As ContextGuard::Reassert.
  CUresult Reassert() noexcept { return guard_.Reassert(); }

 private:
  AcquiredGuard guard_;
};

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_RUNTIME_DEVICE_GUARD_H_

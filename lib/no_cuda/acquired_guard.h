// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A guard of what was not acquired is ok, and names none. tier: 2

#ifndef CUGUEST_LIB_NO_CUDA_ACQUIRED_GUARD_H_
#define CUGUEST_LIB_NO_CUDA_ACQUIRED_GUARD_H_

#include <utility>

#include "cuguest/acquired_guard.h"
#include "lib/no_cuda/acquire.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// As acquired, for a guard: `acquired`, or what is ok and names no context.
CUGUEST_HIDE inline Acquired ForGuard(Acquired acquired) noexcept {
  if (acquired.ok()) return acquired;
  return Acquired(Incarnation{nullptr, 0}.Ref(), acquired.source(),
                  Device::Borrow(kDeviceNotAsked));
}

}  // namespace internal

inline AcquiredGuard::AcquiredGuard(Acquired acquired, GuardMode mode, Location where) noexcept
    : acquired_(internal::ForGuard(std::move(acquired))),
      guard_(acquired_.context(), mode, where) {}

inline AcquiredGuard::AcquiredGuard(CUstream stream, GuardMode mode, Location where) noexcept
    : AcquiredGuard(AcquireFromStream(stream), mode, where) {}

inline AcquiredGuard::AcquiredGuard(CUstream stream, Device device, IfInactive if_inactive,
                                    GuardMode mode, Location where) noexcept
    : AcquiredGuard(AcquireFromStream(stream, device, if_inactive), mode, where) {}

inline AcquiredGuard::AcquiredGuard(CUdeviceptr pointer, IfInactive if_inactive, GuardMode mode,
                                    Location where) noexcept
    : AcquiredGuard(AcquireFromPointer(pointer, if_inactive), mode, where) {}

inline AcquiredGuard::AcquiredGuard(const void* pointer, IfInactive if_inactive, GuardMode mode,
                                    Location where) noexcept
    : AcquiredGuard(AcquireFromPointer(pointer, if_inactive), mode, where) {}

inline void AcquiredGuard::EnterFound(const internal::CurrentContext& /*asked*/, GuardMode /*mode*/,
                                      Location where) noexcept {
  static_cast<void>(MoveTo(std::move(acquired_), where));
}

inline Error AcquiredGuard::error() const noexcept { return {}; }

inline Error AcquiredGuard::MoveTo(Acquired acquired, Location where) noexcept {
  acquired_ = internal::ForGuard(std::move(acquired));
  static_cast<void>(guard_.MoveTo(acquired_.context(), where));
  return {};
}

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_NO_CUDA_ACQUIRED_GUARD_H_

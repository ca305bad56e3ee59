// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ways in: a guard of what a stream, a pointer or a device means.

#include "lib/capi/c_guard.h"

#include "cuguest/acquire.h"
#include "cuguest/c.h"
#include "cuguest/internal/stream_kind.h"
#include "lib/capi/c_acquired.h"
#include "lib/share/owed.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

// Acquires by `acquire`, which says what it has found current, and enters.
template <typename Acquire>
CUresult EnterAcquired(cuguest_guard* given, int if_inactive, int mode, Location where,
                       Acquire acquire) noexcept {
  if (!IsWhatIfInactive(if_inactive)) return CUDA_ERROR_INVALID_VALUE;
  return BeginGuard(given, mode, [&](Guard* guard) {
    CurrentContext asked = CurrentContext::NotAsked();
    Acquired acquired = acquire(static_cast<IfInactive>(if_inactive), &asked);
    if (!acquired.ok()) return acquired.error().code;
    const CUcontext* const current = asked.IsKnown() ? &asked.context : nullptr;
    guard->scope.EnterFound(Incarnation::Of(acquired.context()), current,
                            mode == CUGUEST_ALWAYS_PUSH, where);
    const CUresult code = guard->scope.JustEntered();
    if (code != CUDA_SUCCESS || !acquired.holds()) return code;
    Device device = Device::Borrow(0);
    static_cast<void>(acquired.GetDevice(&device));  // which it knows
    guard->device = device.get();
    guard->end_reference = [](Guard* ended, Reported) {
      ReleasePrimaryOrOwe(ended->device, "a cuguest_guard");
    };
    static_cast<void>(acquired.Leak());
    return code;
  });
}

Acquired FromDevice(int device, IfInactive if_inactive, CurrentContext* asked) {
  *asked = CurrentContext();
  return AcquireOn(*asked, Device::Borrow(device), if_inactive);
}

}  // namespace
CUGUEST_END_INTERNAL_NAMESPACE

namespace c = cuguest::internal;

int cuguest_guard_enter_stream(cuguest_guard* guard, CUstream stream, int device, int if_inactive,
                               int mode, const char* file, int line) {
  return c::EnterAcquired(guard, if_inactive, mode, {file, line},
                          [=](cuguest::IfInactive what, c::CurrentContext* asked) {
                            const bool means_device =
                                device != CUGUEST_NO_DEVICE && c::MeansCurrent(stream);
                            return means_device ? c::FromDevice(device, what, asked)
                                                : c::AcquireFromStream(stream, asked);
                          });
}

int cuguest_guard_enter_pointer(cuguest_guard* guard, unsigned long long pointer, int if_inactive,
                                int mode, const char* file, int line) {
  return c::EnterAcquired(guard, if_inactive, mode, {file, line},
                          [=](cuguest::IfInactive what, c::CurrentContext* asked) {
                            return c::AcquireFromPointer(pointer, what, asked);
                          });
}

int cuguest_guard_enter_device(cuguest_guard* guard, int device, int if_inactive, int mode,
                               const char* file, int line) {
  return c::EnterAcquired(guard, if_inactive, mode, {file, line},
                          [=](cuguest::IfInactive what, c::CurrentContext* asked) {
                            return c::FromDevice(device, what, asked);
                          });
}

int cuguest_guard_enter_acquired(cuguest_guard* guard, const cuguest_acquired* acquired, int mode,
                                 const char* file, int line) {
  cuguest_ref ref = CUGUEST_REF_INIT;
  const int code = cuguest_acquired_ref(acquired, &ref);
  return code == 0 ? cuguest_guard_enter_ref(guard, &ref, mode, file, line) : code;
}

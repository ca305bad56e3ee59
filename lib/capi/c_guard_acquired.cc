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

CUresult CanEnter(cuguest_guard* given, int if_inactive, int mode) noexcept {
  const bool is_known = IsWhatIfInactive(if_inactive) && IsMode(mode);
  return is_known ? GuardStorage(given).CanBegin() : CUDA_ERROR_INVALID_VALUE;
}

// Needs CanEnter(). `asked`: what was found current while it was acquired.
CUresult EnterAcquired(cuguest_guard* given, Acquired&& acquired, const CurrentContext& asked,
                       int mode, Location where) noexcept {
  if (!acquired.ok()) return acquired.error().code;
  return BeginGuard(given, mode, [&](Guard* guard) {
    guard->scope.EnterFound(Incarnation::Of(acquired.context()),
                            asked.IsKnown() ? &asked.context : nullptr, mode == CUGUEST_ALWAYS_PUSH,
                            where);
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

}  // namespace
CUGUEST_END_INTERNAL_NAMESPACE

namespace c = cuguest::internal;

int cuguest_guard_enter_stream(cuguest_guard* guard, CUstream stream, int device, int if_inactive,
                               int mode, const char* file, int line) {
  if (device != CUGUEST_NO_DEVICE && c::MeansCurrent(stream)) {
    return cuguest_guard_enter_device(guard, device, if_inactive, mode, file, line);
  }
  const CUresult code = c::CanEnter(guard, if_inactive, mode);
  if (code != CUDA_SUCCESS) return code;
  c::CurrentContext asked = c::CurrentContext::NotAsked();
  return c::EnterAcquired(guard, c::AcquireFromStream(stream, &asked), asked, mode, {file, line});
}

int cuguest_guard_enter_pointer(cuguest_guard* guard, unsigned long long pointer, int if_inactive,
                                int mode, const char* file, int line) {
  const CUresult code = c::CanEnter(guard, if_inactive, mode);
  if (code != CUDA_SUCCESS) return code;
  c::CurrentContext asked = c::CurrentContext::NotAsked();
  return c::EnterAcquired(
      guard, c::AcquireFromPointer(pointer, static_cast<cuguest::IfInactive>(if_inactive), &asked),
      asked, mode, {file, line});
}

int cuguest_guard_enter_device(cuguest_guard* guard, int device, int if_inactive, int mode,
                               const char* file, int line) {
  const CUresult code = c::CanEnter(guard, if_inactive, mode);
  if (code != CUDA_SUCCESS) return code;
  const c::CurrentContext asked;
  return c::EnterAcquired(guard,
                          c::AcquireOn(asked, cuguest::Device::Borrow(device),
                                       static_cast<cuguest::IfInactive>(if_inactive)),
                          asked, mode, {file, line});
}

int cuguest_guard_enter_acquired(cuguest_guard* guard, const cuguest_acquired* acquired, int mode,
                                 const char* file, int line) {
  cuguest_ref ref = CUGUEST_REF_INIT;
  const int code = cuguest_acquired_ref(acquired, &ref);
  return code == 0 ? cuguest_guard_enter_ref(guard, &ref, mode, file, line) : code;
}

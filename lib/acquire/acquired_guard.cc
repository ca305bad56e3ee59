// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/acquired_guard.h"

#include <cstdint>
#include <utility>

#include "cuguest/error.h"
#include "cuguest/internal/stream_kind.h"

CUGUEST_BEGIN_NAMESPACE

using internal::CurrentContext;
using internal::Scope;

AcquiredGuard::AcquiredGuard(Acquired acquired, GuardMode mode, Location where) noexcept
    : acquired_(std::move(acquired)), guard_(Scope::kNotSet) {
  if (acquired_.ok()) {
    guard_.scope_.EnterByCall(internal::Incarnation::Of(context()), mode == GuardMode::kAlwaysPush,
                              where);
  } else {
    guard_.scope_.Refuse(acquired_.error().code, where);
  }
}

// Where it is found it stays: what was acquired is not moved.
template <typename Find>
AcquiredGuard::AcquiredGuard(const Find& find, CurrentContext&& asked, GuardMode mode,
                             Location where) noexcept
    : acquired_(find(&asked)), guard_(Scope::kNotSet) {
  EnterFound(asked, mode, where);
}

AcquiredGuard::AcquiredGuard(CUstream stream, GuardMode mode, Location where) noexcept
    : AcquiredGuard(
          [=](CurrentContext* asked) { return internal::AcquireFromStream(stream, asked); },
          CurrentContext::NotAsked(), mode, where) {}

AcquiredGuard::AcquiredGuard(CUstream stream, Device device, IfInactive if_inactive, GuardMode mode,
                             Location where) noexcept
    : AcquiredGuard(
          [=](CurrentContext* asked) {
            if (!internal::MeansCurrent(stream)) return internal::AcquireFromStream(stream, asked);
            *asked = CurrentContext();
            return internal::AcquireOn(*asked, device, if_inactive);
          },
          CurrentContext::NotAsked(), mode, where) {}

AcquiredGuard::AcquiredGuard(CUdeviceptr pointer, IfInactive if_inactive, GuardMode mode,
                             Location where) noexcept
    : AcquiredGuard(
          [=](CurrentContext* asked) {
            return internal::AcquireFromPointer(pointer, if_inactive, asked);
          },
          CurrentContext::NotAsked(), mode, where) {}

// Source: CUDA Programming Guide, "Interoperability between Runtime and Driver APIs".
AcquiredGuard::AcquiredGuard(const void* pointer, IfInactive if_inactive, GuardMode mode,
                             Location where) noexcept
    : AcquiredGuard(static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(pointer)),
                    if_inactive, mode, where) {}

void AcquiredGuard::EnterFound(const CurrentContext& asked, GuardMode mode,
                               Location where) noexcept {
  if (internal::Rarely(!acquired_.ok())) {
    return guard_.scope_.Refuse(acquired_.error().code, where);
  }
  guard_.scope_.EnterFound(internal::Incarnation::Of(context()),
                           asked.IsKnown() ? &asked.context : nullptr,
                           mode == GuardMode::kAlwaysPush, where);
}

Error AcquiredGuard::MoveTo(Acquired acquired, Location where) noexcept {
  if (!acquired.ok()) return acquired.error();
  const CUresult code = guard_.MoveTo(acquired.context(), where);
  if (code != CUDA_SUCCESS) return internal::MakeError(code, guard_.doing(), guard_.advice());
  acquired_ = std::move(acquired);
  return {};
}

Error AcquiredGuard::error() const noexcept {
  const CUresult entered = guard_.result();  // asked, also where acquiring failed
  if (!acquired_.ok()) return acquired_.error();
  return internal::MakeError(entered, guard_.doing(), guard_.advice());
}

CUGUEST_END_NAMESPACE

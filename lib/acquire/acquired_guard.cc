// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/acquired_guard.h"

#include "lib/core/failure.h"

CUGUEST_BEGIN_NAMESPACE

void AcquiredGuard::Enter(Acquired acquired, GuardMode mode, Location where,
                          const internal::CurrentContext* asked) noexcept {
  acquired_ = std::move(acquired);
  if (!acquired_.ok()) return guard_.scope_.Refuse(acquired_.error().code, where);
  const bool is_current = asked != nullptr && mode == GuardMode::kElide && asked->IsSeen() &&
                          acquired_.source() == Acquired::Source::kCurrent;
  if (is_current) {
    guard_.scope_.Enter(*asked, where);
  } else {
    guard_.scope_.Enter(context(), mode == GuardMode::kAlwaysPush, where);
  }
}

Error AcquiredGuard::error() const noexcept {
  const CUresult entered = guard_.result();  // asked, also where acquiring failed
  if (!acquired_.ok()) return acquired_.error();
  return internal::OfAdvice(internal::Failure(entered, guard_.doing()), guard_.advice());
}

CUGUEST_END_NAMESPACE

// SPDX-License-Identifier: Apache-2.0

#include "cuguest/host_scope.h"

#include "lib/context/advice.h"

CUGUEST_BEGIN_NAMESPACE

HostScope::HostScope(ContextGuard& guard) noexcept : guard_(guard.IsInside() ? &guard : nullptr) {
  if (guard_ != nullptr) result_ = guard_->Restore();
}

HostScope::~HostScope() {
  if (guard_ != nullptr) guard_->Reenter();
}

const char* HostScope::advice() const noexcept { return internal::Advice(result_); }

CUGUEST_END_NAMESPACE

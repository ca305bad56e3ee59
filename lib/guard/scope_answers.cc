// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a scope is asked about besides its result.

#include "cuguest/internal/scope.h"

#include "lib/guard/nesting.h"
#include "lib/guard/records.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

CUcontext Scope::caller() const noexcept {
  const Record* const record = serial_ != 0 && calls_ == &kCalls ? Own() : nullptr;
  if (record != nullptr && record->state == State::kLive) return record->caller;
  return caller_;
}

bool Scope::elided() const noexcept {
  const Record* const record = serial_ != 0 && calls_ == &kCalls ? Own() : nullptr;
  return record != nullptr && record->state == State::kLive && record->kind == Kind::kElided;
}

const char* Scope::advice() const noexcept { return Advice(result()); }

CUGUEST_END_INTERNAL_NAMESPACE

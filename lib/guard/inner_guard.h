// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A ContextGuard for what the library itself enters seldom: two calls, and nothing in line.
//                                                                                      tier: 2

#ifndef CUGUEST_LIB_GUARD_INNER_GUARD_H_
#define CUGUEST_LIB_GUARD_INNER_GUARD_H_

#include <cuda.h>

#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/internal/incarnation.h"
#include "cuguest/internal/scope.h"
#include "cuguest/location.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

class InnerGuard {
 public:
  explicit InnerGuard(const ContextRef& context, Location where = Location::Here()) noexcept
      : scope_(Scope::kNotSet) {
    scope_.EnterByCall(Incarnation::Of(context), /*always_pushes=*/false, where);
  }
  InnerGuard(const InnerGuard&) = delete;
  InnerGuard& operator=(const InnerGuard&) = delete;
  ~InnerGuard() { static_cast<void>(scope_.LeaveByCall(Reported::kByIncident)); }

  // What entering gave.
  [[nodiscard]] CUresult result() const noexcept { return scope_.JustEntered(); }

 private:
  Scope scope_;
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_GUARD_INNER_GUARD_H_

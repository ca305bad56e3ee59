// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is true of every guard of a context, run once for each: one that elides, one that always
// pushes, and ExactGuard.

#ifndef CUGUEST_TEST_GUARD_GUARD_KINDS_H_
#define CUGUEST_TEST_GUARD_GUARD_KINDS_H_

#include <cuda.h>

#include "cuguest/context_guard.h"
#include "cuguest/exact_guard.h"
#include "cuguest/host_scope.h"

namespace guard_kinds {

template <cuguest::GuardMode mode>
class InMode : public cuguest::ContextGuard {
 public:
  static constexpr bool kElides = mode == cuguest::GuardMode::kElide;
  static constexpr bool kIsExact = false;
  static constexpr const char* kName = kElides ? "elide" : "always push";

  template <typename Context>
  explicit InMode(const Context& context, cuguest::Location where = cuguest::Location::Here())
      : ContextGuard(context, mode, where) {}
};

class Exact : public cuguest::ExactGuard {
 public:
  static constexpr bool kElides = false;
  static constexpr bool kIsExact = true;
  static constexpr const char* kName = "exact";

  template <typename Context>
  explicit Exact(const Context& context, cuguest::Location where = cuguest::Location::Here())
      : ExactGuard(context, where) {}
  bool elided() const { return false; }
};

template <typename Guard>
struct Kind {
  using Type = Guard;
};

// Of a Kind that a generic lambda was called with.
template <typename Kind>
using GuardOf = typename Kind::Type;

// Calls `body` with a Kind of each guard.
template <typename Body>
void EachKind(const Body& body) {
  body(Kind<InMode<cuguest::GuardMode::kElide>>());
  body(Kind<InMode<cuguest::GuardMode::kAlwaysPush>>());
  body(Kind<Exact>());
}

// A HostScope that is given the guard, where it takes one.
inline cuguest::HostScope HostOf(const cuguest::ContextGuard& guard) {
  return cuguest::HostScope(guard);
}
inline cuguest::HostScope HostOf(const cuguest::ExactGuard&) { return cuguest::HostScope(); }

}  // namespace guard_kinds

#endif  // CUGUEST_TEST_GUARD_GUARD_KINDS_H_

// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// host_scope.h                                                          tier: 2
// -----------------------------------------------------------------------------
//
// `HostScope` is the inverse of a guard: inside a guarded scope it gives the host
// its own stack back, so that a user callback, allocator or logger runs where its
// author expects, and then comes back into the guard's context.
//
//   cuguest::ContextGuard guard(context_);
//   ...
//   {
//     cuguest::HostScope host(guard);
//     options.allocate(bytes);           // runs with the caller's context current
//   }
//   if (!guard.ok()) return cuguest::ToStatus(guard);   // could not come back

#ifndef CUGUEST_HOST_SCOPE_H_
#define CUGUEST_HOST_SCOPE_H_

#include "cuguest/context_guard.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

// HostScope
//
// Stack:   leaves the guard's scope on construction (verifying and repairing, as at
//          its end) and enters it again on destruction. What the host does to its
//          own stack meanwhile is the host's right: the guard takes what it finds on
//          the way back for the caller's stack, and reports nothing.
// Threads: the guard's.
// Errors:  result() is what leaving gave. If coming back fails, the guard is no
//          longer ok() and the caller's context stays current.
// Cost:    that of leaving and entering the guard: 2 or 3 driver calls.
class [[nodiscard]] CUGUEST_API HostScope {
 public:
  // `guard` must outlive the scope. A guard that is not inside is left alone.
  explicit HostScope(ContextGuard& guard) noexcept;
  HostScope(const HostScope&) = delete;
  HostScope& operator=(const HostScope&) = delete;
  ~HostScope();

  [[nodiscard]] bool ok() const noexcept { return result_ == CUDA_SUCCESS; }
  [[nodiscard]] CUresult result() const noexcept { return result_; }
  [[nodiscard]] const char* doing() const noexcept { return "restore the host's context"; }
  [[nodiscard]] const char* advice() const noexcept;

 private:
  ContextGuard* guard_;  // nullptr: the guard was not inside
  CUresult result_ = CUDA_SUCCESS;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_HOST_SCOPE_H_

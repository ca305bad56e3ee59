// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
/// \file
/// The structs of c.h as objects of C++11, for a library in C++ that has no <cuda.h>, or that is
/// compiled without exceptions or the C++ library. Inline calls of c.h, and nothing else.
///
///   int Blur(CUctx_st* context, Picture* picture) {
///     cuguest::CGuard guard(context);
///     if (!guard.ok()) return guard.code();  // nothing has changed
///     return LaunchBlur(picture);            // runs with `context` current
///   }                                        // the caller's context is current again
///
/// An object begins with the function of c.h that it is given, and ends with its block. That
/// function's comment says what it does to the stack, on which threads, at what cost and with which
/// errors; an end out of turn is an incident, as one of a `_cleanup` function. Everything else is
/// done by c.h with get(): cuguest_guard_reassert(guard.get()).

#ifndef CUGUEST_CXX_H_
#define CUGUEST_CXX_H_

#include "cuguest/c.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

/// CScope
///
/// A struct of c.h that stays where it is: `CHostScope host(&cuguest_host_scope_enter,
/// CUGUEST_HERE)`. Ended before its block, by get(), it is not ended again.
template <typename Storage, void (*kCleanup)(Storage*)>
class CScope {
 public:
  /// Calls `begin` with the struct and `arguments`.
  template <typename... Parameters, typename... Arguments, CUGUEST_HIDE_TEMPLATE>
  CUGUEST_HIDE explicit CScope(int (*begin)(Storage*, Parameters...),
                               Arguments... arguments) noexcept
      : code_(begin(&storage_, arguments...)) {}
  CScope(const CScope&) = delete;
  CScope& operator=(const CScope&) = delete;
  CUGUEST_HIDE ~CScope() { kCleanup(&storage_); }

  /// What `begin` returned.
  CUGUEST_HIDE int code() const noexcept { return code_; }
  CUGUEST_HIDE bool ok() const noexcept { return code_ == 0; }

  CUGUEST_HIDE Storage* get() noexcept { return &storage_; }

 protected:
  CUGUEST_HIDE CScope() noexcept = default;  // which begins afterwards

  Storage storage_ = CUGUEST_INIT(Storage);
  int code_ = 0;
};

/// A guard, by a context or by a reference that names one.
class CGuard : public CScope<cuguest_guard, &cuguest_guard_cleanup> {
 public:
  /// The last two arguments are the place that incidents name, by default that of the call.
  CUGUEST_HIDE explicit CGuard(CUctx_st* context, int mode = CUGUEST_ELIDE,
                               const char* file = __builtin_FILE(),
                               int line = __builtin_LINE()) noexcept {
    code_ = cuguest_guard_enter(&storage_, context, mode, file, line);
  }
  CUGUEST_HIDE explicit CGuard(const cuguest_ref& ref, int mode = CUGUEST_ELIDE,
                               const char* file = __builtin_FILE(),
                               int line = __builtin_LINE()) noexcept {
    code_ = cuguest_guard_enter_ref(&storage_, &ref, mode, file, line);
  }
  CUGUEST_HIDE ~CGuard() = default;

  /// The context that it is inside, by cuguest_guard_ref; names none where it is not.
  CUGUEST_HIDE cuguest_ref ref() const noexcept {
    cuguest_ref entered = CUGUEST_REF_INIT;
    static_cast<void>(cuguest_guard_ref(&storage_, &entered) == 0);
    return entered;
  }
};

/// The host's own stack around a callback, by cuguest_host_scope_enter.
using CHostScope = CScope<cuguest_host_scope, &cuguest_host_scope_cleanup>;
/// No current context, by cuguest_no_context_guard_enter.
using CNoContextGuard = CScope<cuguest_no_context_guard, &cuguest_no_context_guard_cleanup>;
/// The thread's stream-capture mode, by cuguest_capture_guard_enter.
using CCaptureGuard = CScope<cuguest_capture_guard, &cuguest_capture_guard_cleanup>;
/// The context of a thread of one's own, by cuguest_thread_home_enter_stream and its siblings.
using CThreadHome = CScope<cuguest_thread_home, &cuguest_thread_home_cleanup>;
/// A listener of incidents, by cuguest_incident_listener_register.
using CIncidentListener = CScope<cuguest_incident_listener, &cuguest_incident_listener_cleanup>;

/// CHolder
///
/// A struct of c.h that holds a reference to a context, and is moved with it:
/// `CPrimary primary(&cuguest_primary_retain, device)`.
template <typename Storage, int (*kRef)(const Storage*, cuguest_ref*),
          int (*kMove)(Storage*, Storage*), void (*kCleanup)(Storage*)>
class CHolder {
 public:
  /// Holds nothing.
  CUGUEST_HIDE CHolder() noexcept = default;
  /// Calls `begin` with the struct and `arguments`.
  template <typename... Parameters, typename... Arguments, CUGUEST_HIDE_TEMPLATE>
  CUGUEST_HIDE explicit CHolder(int (*begin)(Storage*, Parameters...),
                                Arguments... arguments) noexcept
      : code_(begin(&storage_, arguments...)) {}
  CUGUEST_HIDE CHolder(CHolder&& other) noexcept { Take(&other); }
  /// Releases what is held here first. Where that is refused, in a stream callback, both keep what
  /// they hold.
  CUGUEST_HIDE CHolder& operator=(CHolder&& other) noexcept {
    if (this == &other) return *this;
    kCleanup(&storage_);
    if (!ok()) Take(&other);
    return *this;
  }
  CHolder(const CHolder&) = delete;
  CHolder& operator=(const CHolder&) = delete;
  CUGUEST_HIDE ~CHolder() { kCleanup(&storage_); }

  /// 0 where a reference is held; else what `begin` returned, or CUDA_ERROR_ILLEGAL_STATE (401)
  /// where none ever was, or not any more.
  CUGUEST_HIDE int code() const noexcept {
    cuguest_ref held = CUGUEST_REF_INIT;
    return code_ != 0 ? code_ : kRef(&storage_, &held);
  }
  CUGUEST_HIDE bool ok() const noexcept { return code() == 0; }

  /// The context that is held, for a CGuard, as long as it is; none where !ok(), which no guard
  /// enters.
  CUGUEST_HIDE cuguest_ref ref() const noexcept {
    cuguest_ref held = CUGUEST_REF_INIT;
    static_cast<void>(kRef(&storage_, &held) == 0);
    return held;
  }

  CUGUEST_HIDE Storage* get() noexcept { return &storage_; }

 private:
  CUGUEST_HIDE void Take(CHolder* other) noexcept {
    code_ = other->code_;
    if (other->ok()) code_ = kMove(&storage_, &other->storage_);
  }

  Storage storage_ = CUGUEST_INIT(Storage);
  int code_ = 0;
};

/// A device's primary context, by cuguest_primary_retain.
using CPrimary =
    CHolder<cuguest_primary, &cuguest_primary_ref, &cuguest_primary_move, &cuguest_primary_cleanup>;
/// What a device, a pointer or a stream means, by cuguest_acquire_on and its siblings.
using CAcquired = CHolder<cuguest_acquired, &cuguest_acquired_ref, &cuguest_acquired_move,
                          &cuguest_acquired_cleanup>;
/// A context that all holders count, by cuguest_shared_context_create or _attach.
using CSharedContext = CHolder<cuguest_shared_context, &cuguest_shared_context_ref,
                               &cuguest_shared_context_move, &cuguest_shared_context_cleanup>;

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_CXX_H_

// SPDX-License-Identifier: Apache-2.0
//
// The list of the guards that are inside on the calling thread, which is what cuguest/internal/
// this_thread.h leaves to the library, and what guards of every kind say.

#ifndef CUGUEST_LIB_CONTEXT_THREAD_GUARDS_H_
#define CUGUEST_LIB_CONTEXT_THREAD_GUARDS_H_

#include <cuda.h>

#include "cuguest/internal/this_thread.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// Takes `guard`, which is bound to this thread, off its list.
void Unlink(StackGuard* guard) noexcept;

// Puts `to` in the place of `from`, which is bound to this thread: inside, or taken out by a
// HostScope.
void Replace(StackGuard* from, StackGuard* to) noexcept;

// Ends those that are inside `guard` on this thread, if it is inside, the innermost first.
void EndInside(StackGuard* guard) noexcept;

// The same as Unlink() of the HostScope that has taken it out.
void Resign(StackGuard* guard) noexcept;

// Begins a HostScope (in host_scope.cc).
CUresult SuspendAll(HostView* view, const StackGuard* wanted) noexcept;

// Takes `view`, which is this thread's, off its list.
void LeaveHostView(HostView* view) noexcept;

// For a guard that was ended on another thread than `thread`, its own: its place on that
// thread's list can be neither taken off nor read from now on. The list is given up for the
// rest of that thread.
void ForgetListOf(unsigned long long thread) noexcept;

// Whether this thread's list still names its guards.
bool ListIsSound() noexcept;

// Reports that a guard of `context` (nullptr: of none), which was inside, was used on another
// thread than its own, and returns CUDA_ERROR_ILLEGAL_STATE.
CUresult ReportElsewhere(CUcontext context, Location where) noexcept;

// What a guard can add to the driver's words, because it knows what it was asked: a phrase with
// static storage; empty where there is nothing to add.
const char* Advice(CUresult code) noexcept;

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CONTEXT_THREAD_GUARDS_H_

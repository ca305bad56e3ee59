// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// internal/this_thread.h                                                tier: 1
// -----------------------------------------------------------------------------
//
// Not for embedders. Which thread this is, and which guards are inside on it.

#ifndef CUGUEST_INTERNAL_THIS_THREAD_H_
#define CUGUEST_INTERNAL_THIS_THREAD_H_

#include <cuda.h>

#include "cuguest/export.h"
#include "cuguest/location.h"
#ifdef CUGUEST_SCHEDULED_THREADS
#include "cuguest/internal/concurrency.h"
#endif

CUGUEST_BEGIN_INTERNAL_NAMESPACE

struct Incarnation;
struct StackGuard;

// Base of HostScope: the guards that it has taken out and will enter again, outermost first.
struct HostView {
  Location where;
  HostView* outer;
  StackGuard* suspended;
  unsigned long long thread;
  void (*resume_all)(HostView*);  // nullptr if it took none out
};

// Base of ContextGuard and ContextScope, one of which is in every guard that changes the stack: a
// place on the list of those that are inside on one thread, the innermost first.
//
// The list and the numbers of threads are of one copy of cuguest. What a template of somebody
// else's instantiates (std::optional<ContextGuard>, std::vector<ContextScope>) may be shared by two
// embedders, so that a guard that one copy entered is ended by another: that one hands it back by
// `type`.
struct StackGuard {
  // One in every copy.
  struct Type {
    CUresult (*restore)(StackGuard*);
    CUresult (*suspend)(StackGuard*);
    void (*resume)(StackGuard*);
    // The same if nothing lies above what the guard left on the stack. If something does,
    // nothing is changed or reported.
    bool (*suspend_if_on_top)(StackGuard*);
    // Of the guards that are inside on this thread, down to `wanted` at least (nullptr: none).
    CUresult (*suspend_all)(HostView*, const StackGuard* wanted);
    void (*forget_list_of)(unsigned long long thread);
    CUresult (*reassert)(StackGuard*);
    CUresult (*move_to)(StackGuard*, const Incarnation&, Location);
    // Ends those that are inside `guard`, the innermost first.
    void (*end_inside)(StackGuard* guard);
    // Puts `to` in the place of `from`. False, and reported, on another thread than its own.
    bool (*replace)(StackGuard* from, StackGuard* to);
  };

  StackGuard* outer;          // of a HostView's: the next one further in
  unsigned long long thread;  // the number of the thread that it is bound to
  const Type* type;
};

constexpr CUdevice kDeviceNotAsked = -1;

// A context that was seen current. The driver gives its id to no other context, and a context
// stays on its device, so where the id is the current one's again the rest is known, too.
struct SeenContext {
  unsigned long long id;  // 0: none was seen
  CUcontext context;
  CUdevice device;  // or kDeviceNotAsked
};

// Zero when a thread begins; has no destructor, so that it is good for as long as the thread.
struct ThisThread {
  // Neither a pthread_t nor the address of a thread_local will do: both are used again as
  // soon as a thread has ended. 0 until it is asked for.
  unsigned long long number;
  StackGuard* innermost;
  HostView* host_view;  // the innermost
  // Whether the last guard by ContextRef found its context current: a guess at what the next one
  // will find, which decides what it asks first.
  bool expects_current;
  SeenContext seen;  // the last one; see current_context.h
};
#ifdef CUGUEST_SCHEDULED_THREADS
extern CUGUEST_THREAD_LOCAL(ThisThread) t_this_thread;
#else
// `__thread`: an `extern thread_local` costs a call of a wrapper besides.
CUGUEST_API extern __thread ThisThread t_this_thread;
#endif

// Never used again for another thread. Not for the fast paths.
[[nodiscard]] CUGUEST_API unsigned long long NumberOfThisThread() noexcept;
[[nodiscard]] CUGUEST_API bool IsThisThread(unsigned long long number) noexcept;

// A thread that something is bound to, told by the copy that numbered it.
class BoundThread {
 public:
  CUGUEST_HIDE BoundThread() noexcept : is_this_(&IsThisThread) {
    const ThisThread& here = t_this_thread;
    number_ = here.number != 0 ? here.number : NumberOfThisThread();
  }
  [[nodiscard]] CUGUEST_HIDE bool IsThis() const noexcept {
    const ThisThread& here = t_this_thread;
    return is_this_ == &IsThisThread ? number_ == here.number : is_this_(number_);
  }

 private:
  unsigned long long number_;
  bool (*is_this_)(unsigned long long);
};

// Whether a guard that failed to enter says so at its end if nobody asked it before: not where
// the file that constructs it is compiled with NDEBUG.
#ifdef NDEBUG
constexpr bool kReportsUnasked = false;
#else
constexpr bool kReportsUnasked = true;
#endif

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_INTERNAL_THIS_THREAD_H_

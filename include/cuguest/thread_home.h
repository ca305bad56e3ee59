// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 2
/// \file
/// `ThreadHome` gives a thread of a library's own (a progress thread, a worker, a callback's) the
/// context that its work belongs to, for as long as the thread's function runs; or a task of a
/// library on somebody else's pool, for as long as the task runs. Guards inside find it current,
/// and elide.
///
///   void Progress(CUstream stream, Queue* queue) {     // a thread's function
///     ThreadHome home(stream);
///     while (Job* const job = queue->Next()) {
///       const Error error = home.Check();              // a reset, for example
///       job->Finish(error.ok() ? job->Run() : error);
///     }
///   }                                                  // the thread is as it was
///
/// Note [Whose home]
/// ~~~~~~~~~~~~~~~~~
/// A home creates no context, and holds none alive unless it is asked to (Keep::kReference): a
/// thread that waits for work should not keep 500 MB of its host's. It is bound to no hook at the
/// thread's end, so that the library may be unloaded while a thread of the host's is bound: its own
/// destructor leaves it. See docs/threads.md for the three situations.

#ifndef CUGUEST_THREAD_HOME_H_
#define CUGUEST_THREAD_HOME_H_

#include <cuda.h>

#include <utility>

#include "cuguest/acquire.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/error.h"
#include "cuguest/export.h"
#include "cuguest/internal/scope.h"
#include "cuguest/internal/this_thread.h"
#include "cuguest/location.h"

CUGUEST_BEGIN_NAMESPACE

/// Stack:   +1 while it has a context, whatever is current, undone at its end; net 0.
/// Count:   none; with Keep::kReference one reference to a primary context, from the constructor to
///          the end. A reference that what is given holds (an Acquired's) is given back otherwise.
/// Threads: bound; as ContextGuard, Note [Scopes end in any order] included.
/// Cost:    to bind, what acquiring costs, and three driver calls; what Hold() costs (acquire.h)
///          where a reference is asked for, or IfOver::kReenter.
class [[nodiscard]] CUGUEST_API ThreadHome {
 public:
  /// What keeps the context alive meanwhile.
  enum class Keep : unsigned char {
    kNothing,    ///< its owner does, or Check() says that nobody did
    kReference,  ///< a reference to the primary context; another is refused, as Acquired::Hold()
  };
  /// What Check() does when the context was destroyed or reset.
  enum class IfOver : unsigned char {
    kRefuse,   ///< says so, from then on
    kReenter,  ///< enters the next incarnation of the primary context (or the first one), once
               ///< somebody has made it active; of another context there is none
  };

  /// Binds the calling thread.
  /// Errors: test ok(). Nothing has changed then, and nothing is bound: error() is that of
  ///         acquiring, of Acquired::Hold() with Keep::kReference, or of entering. With
  ///         IfOver::kReenter, Check() binds it later where the primary context that `home` holds
  ///         was over, or the device's was not active.
  [[nodiscard]] explicit ThreadHome(Acquired home, Keep keep = Keep::kNothing,
                                    IfOver if_over = IfOver::kRefuse,
                                    Location where = Location::Here()) noexcept;
  /// To the context that `context` names: of a Stream or a SharedContext, which convert, too.
  [[nodiscard]] CUGUEST_HIDE explicit ThreadHome(const ContextRef& context,
                                                 Keep keep = Keep::kNothing,
                                                 IfOver if_over = IfOver::kRefuse,
                                                 Location where = Location::Here()) noexcept
      : ThreadHome(OfRef(context), keep, if_over, where) {}
  /// To that of a stream, of memory or of a device, as AcquireFromStream, AcquireFromPointer and
  /// AcquireOn find it.
  [[nodiscard]] CUGUEST_HIDE explicit ThreadHome(CUstream stream, Keep keep = Keep::kNothing,
                                                 IfOver if_over = IfOver::kRefuse,
                                                 Location where = Location::Here()) noexcept
      : ThreadHome(AcquireFromStream(stream), keep, if_over, where) {}
  [[nodiscard]] CUGUEST_HIDE explicit ThreadHome(CUdeviceptr pointer, Keep keep = Keep::kNothing,
                                                 IfOver if_over = IfOver::kRefuse,
                                                 Location where = Location::Here()) noexcept
      : ThreadHome(AcquireFromPointer(pointer), keep, if_over, where) {}
  [[nodiscard]] CUGUEST_HIDE explicit ThreadHome(const void* pointer, Keep keep = Keep::kNothing,
                                                 IfOver if_over = IfOver::kRefuse,
                                                 Location where = Location::Here()) noexcept
      : ThreadHome(AcquireFromPointer(pointer), keep, if_over, where) {}
  [[nodiscard]] CUGUEST_HIDE explicit ThreadHome(Device device, Keep keep = Keep::kNothing,
                                                 IfOver if_over = IfOver::kRefuse,
                                                 Location where = Location::Here()) noexcept
      : ThreadHome(AcquireOn(device), keep, if_over, where) {}
  /// Neither is an address: write ContextRef::Borrow(context), or Device::Borrow(device).
  template <typename... Others, CUGUEST_HIDE_TEMPLATE>
  explicit ThreadHome(CUcontext, Others...) = delete;
  template <typename... Others, CUGUEST_HIDE_TEMPLATE>
  explicit ThreadHome(int, Others...) = delete;
  ThreadHome(const ThreadHome&) = delete;
  ThreadHome& operator=(const ThreadHome&) = delete;
  /// As Leave(), whose result an incident carries.
  ~ThreadHome();

  /// Whether the last Check(), or the constructor, has found the thread in its home, or a MoveTo()
  /// has made it one.
  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return error_.ok(); }
  [[nodiscard]] CUGUEST_HIDE const Error& error() const noexcept { return error_; }

  /// The incarnation that it is bound to, or was, where that is over.
  [[nodiscard]] CUGUEST_HIDE const ContextRef& context() const noexcept { return context_; }

  /// Between two tasks: the home's context is alive and current when it returns success, also where
  /// a task has left another current, which it repairs and reports as ContextGuard::Reassert. If it
  /// is over, the thread has what it had before, or is in the next incarnation, see IfOver.
  /// Errors: CUDA_ERROR_CONTEXT_IS_DESTROYED  it was destroyed or reset
  ///         kNobodyHolds                     IfOver::kReenter, and nobody has made the next
  ///                                          incarnation active yet: the next Check() looks again
  ///         CUDA_ERROR_ILLEGAL_STATE         and nothing done: another thread, a scope is open
  ///                                          inside it, or it has ended
  ///         and those of ContextGuard::Reassert, and of PrimaryContext::Retain.
  /// Cost:   two driver calls when nothing is wrong.
  Error Check() noexcept;

  /// Makes another context the thread's home, with the same options. Where that fails, its home is
  /// what it was, as far as a ContextScope that could not be moved is: Check() tells.
  /// Errors: those of the constructor; CUDA_ERROR_ILLEGAL_STATE as Check().
  /// Cost:   that of ContextScope::MoveTo; and of Hold(), as binding.
  [[nodiscard]] Error MoveTo(Acquired home) noexcept;
  [[nodiscard]] CUGUEST_HIDE Error MoveTo(const ContextRef& context) noexcept {
    return MoveTo(OfRef(context));
  }

  /// Leaves now: the thread's stack is as it was, and a reference is given back. Does nothing the
  /// second time.
  /// Errors: as ContextGuard::Leave, and Acquired::Release().
  Error Leave() noexcept;

 private:
  CUGUEST_HIDE static Acquired OfRef(const ContextRef& context) noexcept {
    return Acquired(context, Acquired::Source::kCurrent, Device::Borrow(internal::kDeviceNotAsked));
  }

  CUresult Place(const ContextRef& context) noexcept;
  Error Bind(Acquired* home) noexcept;
  Error Follow(CUresult why) noexcept;

  const internal::BoundThread thread_;
  const Location where_;
  const Keep keep_;
  const IfOver if_over_;
  bool has_ended_ = false;
  bool has_next_ = false;  // `context_`, if there is one, is the primary context of `device_`
  Device device_ = Device::Borrow(0);
  ContextRef context_;
  Error error_;
  Acquired held_;
  internal::Scope scope_;  // ends before the reference is given back
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_THREAD_HOME_H_

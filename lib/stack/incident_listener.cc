// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/incident_listener.h"

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>

#include "cuguest/internal/compiler.h"
#include "lib/core/concurrency.h"
#include "lib/stack/stack_repair.h"

CUGUEST_BEGIN_NAMESPACE

// Note [Listeners that go while they are called]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The list is walked without the lock while a callback runs, so a walk must neither keep a
// pointer to a listener that may be gone nor lose its place. Each walk is on a list itself, with
// the listener that it calls and the one that comes next.
// A thread that destroys a listener takes it off the list, moves every walk that would come to it
// one further, and then waits for those of other threads that are in it. A walk never looks back at
// the listener it has called, so a callback may destroy its own; the walk then is not in it any
// more, as another listener may begin at its address. It remembers that address for Await() alone.
//
// A callback of C may leave by longjmp(), so a walk is not on its thread's stack, and is used
// again. It is over when the thread begins another one no deeper on its stack, or has ended; for
// the thread itself, which does not wait for its own calls, at once. Nothing notifies of a thread's
// end, so a wait looks again after a while. A callback may switch to a stack of another place (a
// signal's, a fiber's): one that goes on may count as over then, and learns that by its number.
//
// A child that is forked has the walks of threads that it does not have: they go before anything
// else is done with the lists there, and so does the lock. A thread may be in the middle of a
// change, so each change of a list is one store, of what is complete.
struct IncidentListeners {
  struct Walk {
    IncidentListener* called;
    const IncidentListener* ended;  // by the callback that still runs
    IncidentListener* next;
    internal::ThreadId thread;
    int kernel_thread;
    std::uintptr_t frame;       // of Call()
    unsigned long long number;  // goes up when it begins, then odd, and when it is over
    Walk* other;

    bool IsOpen() const { return number % 2 != 0; }
    bool GoesOn() const { return !internal::HasEnded(kernel_thread); }
  };
  static constexpr unsigned kWalks = 16;  // more are in memory of the C library, and never freed
  using Lock = std::lock_guard<internal::SharedMutex>;

  // Without destructors: incidents are told for as long as the process runs.
  static inline internal::SharedMutex mutex;
  static inline internal::SharedConditionVariable called_changed;
  static inline IncidentListener* first = nullptr;
  static inline Walk* walks = nullptr;
  static inline Walk first_walks[kWalks] = {};
  static inline unsigned walks_made = 0;

  static Lock Locked() {
    internal::WatchForks<&BeginAgain>();
    return Lock(mutex);
  }

  template <typename T>
  static void Link(T** place, T* to) {
    internal::StoreRelease(place, to);
  }

  static void Add(IncidentListener* listener) {
    const Lock lock = Locked();
    IncidentListener** place = &first;
    while (*place != nullptr) place = &(*place)->next_;
    Link(place, listener);
    internal::g_call_listeners.store(&Call, std::memory_order_relaxed);
  }

  static void Remove(IncidentListener* listener) {
    const Lock lock = Locked();
    IncidentListener** place = &first;
    while (*place != listener) place = &(*place)->next_;
    Link(place, listener->next_);
    if (first == nullptr) internal::g_call_listeners.store(nullptr, std::memory_order_relaxed);
    LeaveWalks(listener);
    while (IsCalled(listener)) called_changed.wait_a_while(mutex);
  }

  // Of one that somebody else removes, or has removed: waits until no other thread is in its
  // callback, unless this one is.
  static void Await(const IncidentListener* listener) {
    const Lock lock = Locked();
    const internal::ThreadId here = internal::ThisThreadId();
    const auto is_in = [=](const Walk& walk) {
      return (walk.called == listener || walk.ended == listener) && walk.GoesOn();
    };
    if (AnyWalk([=](const Walk& walk) { return walk.thread == here && is_in(walk); })) return;
    while (AnyWalk(is_in)) called_changed.wait_a_while(mutex);
  }

  // None comes to `listener` any more, and those of this thread are in it no longer.
  static void LeaveWalks(const IncidentListener* listener) {
    const internal::ThreadId here = internal::ThisThreadId();
    for (Walk* walk = walks; walk != nullptr; walk = walk->other) {
      if (walk->next == listener) walk->next = listener->next_;
      if (walk->called == listener && walk->thread == here) {
        walk->called = nullptr;
        walk->ended = listener;
      }
    }
  }

  template <typename Is>
  static bool AnyWalk(Is is) {
    const Walk* walk = walks;
    while (walk != nullptr && !is(*walk)) walk = walk->other;
    return walk != nullptr;
  }

  static bool IsCalled(const IncidentListener* listener) {
    return AnyWalk([=](const Walk& walk) { return walk.called == listener && walk.GoesOn(); });
  }

  // nullptr without memory for it.
  static Walk* Begin(std::uintptr_t frame, int kernel_thread) {
    const Lock lock = Locked();
    const internal::ThreadId here = internal::ThisThreadId();
    Walk* unused = nullptr;
    for (Walk* walk = walks; walk != nullptr; walk = walk->other) {
      if (walk->IsOpen() && walk->thread == here && walk->frame <= frame) GoOn(walk, nullptr);
      if (!walk->IsOpen()) unused = walk;
    }
    if (unused == nullptr) unused = OfEndedThread();
    if (unused == nullptr) unused = Make();
    if (unused == nullptr) return nullptr;
    unused->next = first;
    unused->thread = here;
    unused->kernel_thread = kernel_thread;
    unused->frame = frame;
    internal::StoreRelease(&unused->number, unused->number + 1);
    return unused;
  }

  static Walk* OfEndedThread() {
    Walk* walk = walks;
    while (walk != nullptr && walk->GoesOn()) walk = walk->other;
    if (walk != nullptr) GoOn(walk, nullptr);
    return walk;
  }

  static Walk* Make() {
    Walk* const walk = walks_made < kWalks ? &first_walks[walks_made++]
                                           : static_cast<Walk*>(std::calloc(1, sizeof(Walk)));
    if (walk == nullptr) return nullptr;
    walk->other = walks;
    Link(&walks, walk);
    return walk;
  }

  // From the listener that it calls to `next`; without one it is over.
  static void GoOn(Walk* walk, IncidentListener* next) {
    walk->called = next;
    walk->ended = nullptr;
    if (next == nullptr) internal::StoreRelease(&walk->number, walk->number + 1);
    called_changed.notify_all();
  }

  // The next to be called; at the end the walk is over. A copy, since what is called may be
  // destroyed by its own callback.
  static bool Next(Walk* walk, unsigned long long number, IncidentCallback* callback, void** user) {
    const Lock lock = Locked();
    if (walk->number != number) return false;
    GoOn(walk, walk->next);
    if (walk->called == nullptr) return false;
    walk->next = walk->called->next_;
    *callback = walk->called->callback_;
    *user = walk->called->user_;
    return true;
  }

  [[gnu::noinline]] static void Call(const Incident& incident) {
    const auto frame = reinterpret_cast<std::uintptr_t>(internal::FrameAddress());
    Walk* const walk = Begin(frame, static_cast<int>(incident.thread));
    if (walk == nullptr) return;
    const unsigned long long number = walk->number;
    IncidentCallback callback = nullptr;
    void* user = nullptr;
    while (Next(walk, number, &callback, &user)) callback(incident, user);
  }

  // In a forked child.
  static void BeginAgain() {
    const internal::ThreadId here = internal::ThisThreadId();
    for (Walk* walk = walks; walk != nullptr; walk = walk->other) {
      if (!walk->IsOpen()) continue;
      if (walk->thread == here) {
        walk->kernel_thread = internal::KernelThread();
        continue;
      }
      walk->called = nullptr;
      walk->ended = nullptr;
      ++walk->number;
    }
    internal::g_call_listeners.store(first != nullptr ? &Call : nullptr, std::memory_order_relaxed);
    new (&called_changed) internal::SharedConditionVariable;
    new (&mutex) internal::SharedMutex;
  }
};

IncidentListener::IncidentListener(IncidentCallback callback, void* user) noexcept
    : callback_(callback), user_(user) {
  IncidentListeners::Add(this);
}

IncidentListener::~IncidentListener() { IncidentListeners::Remove(this); }

namespace internal {

void AwaitListener(const IncidentListener* listener) noexcept {
  IncidentListeners::Await(listener);
}

}  // namespace internal
CUGUEST_END_NAMESPACE

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/incident_listener.h"

#include <mutex>
#include <new>

#include "lib/core/concurrency.h"
#include "lib/stack/stack_repair.h"

CUGUEST_BEGIN_NAMESPACE

// Note [Listeners that go while they are called]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The list is walked without the lock while a callback runs, so a walk must neither keep a
// pointer to a listener that may be gone nor lose its place. Each walk stands on its thread's
// stack and is on a list itself, with the listener that it calls and the one that comes next.
// A thread that destroys a listener takes it off the list, moves every walk that would come to it
// one further, and then waits for those of other threads that are in it. A walk never looks back at
// the listener it has called, so a callback may destroy its own; the walk then is not in it any
// more, as another listener may begin at its address. It remembers that address for Await() alone.
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
    Walk* other;
  };
  using Lock = std::lock_guard<internal::SharedMutex>;

  // Without destructors: incidents are told for as long as the process runs.
  static inline internal::SharedMutex mutex;
  static inline internal::SharedConditionVariable called_changed;
  static inline IncidentListener* first = nullptr;
  static inline Walk* walks = nullptr;

  static Lock Locked() {
    internal::WatchForks<&BeginAgain>();
    return Lock(mutex);
  }

  template <typename T>
  static void Link(T** place, T* to) {
    __atomic_store_n(place, to, __ATOMIC_RELEASE);
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
    while (IsCalled(listener)) called_changed.wait(mutex);
  }

  // Of one that somebody else removes, or has removed: waits until no other thread is in its
  // callback, unless this one is.
  static void Await(const IncidentListener* listener) {
    const Lock lock = Locked();
    const internal::ThreadId here = internal::ThisThreadId();
    const auto is_in = [=](const Walk& walk) {
      return walk.called == listener || walk.ended == listener;
    };
    if (AnyWalk([=](const Walk& walk) { return walk.thread == here && is_in(walk); })) return;
    while (AnyWalk(is_in)) called_changed.wait(mutex);
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
    return AnyWalk([=](const Walk& walk) { return walk.called == listener; });
  }

  static void Begin(Walk* walk) {
    const Lock lock = Locked();
    *walk = {nullptr, nullptr, first, internal::ThisThreadId(), walks};
    Link(&walks, walk);
  }

  // The next to be called; at the end the walk is over. A copy, since what is called may be
  // destroyed by its own callback.
  static bool Next(Walk* walk, IncidentCallback* callback, void** user) {
    const Lock lock = Locked();
    walk->called = walk->next;
    walk->ended = nullptr;
    called_changed.notify_all();
    if (walk->called != nullptr) {
      walk->next = walk->called->next_;
      *callback = walk->called->callback_;
      *user = walk->called->user_;
      return true;
    }
    Walk** place = &walks;
    while (*place != walk) place = &(*place)->other;
    Link(place, walk->other);
    return false;
  }

  static void Call(const Incident& incident) {
    Walk walk;
    Begin(&walk);
    IncidentCallback callback = nullptr;
    void* user = nullptr;
    while (Next(&walk, &callback, &user)) callback(incident, user);
  }

  // In a forked child.
  static void BeginAgain() {
    const internal::ThreadId here = internal::ThisThreadId();
    for (Walk** place = &walks; *place != nullptr;) {
      if ((*place)->thread == here) {
        place = &(*place)->other;
      } else {
        *place = (*place)->other;
      }
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

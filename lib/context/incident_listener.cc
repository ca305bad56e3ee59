// SPDX-License-Identifier: Apache-2.0

#include "cuguest/incident_listener.h"

#include <mutex>

#include "lib/context/incident_listeners.h"
#include "lib/core/concurrency.h"

CUGUEST_BEGIN_NAMESPACE

// Note [Listeners that go while they are called]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The list is walked without the lock while a callback runs, so a walk must neither keep a
// pointer to a listener that may be gone nor lose its place. Each walk stands on its thread's
// stack and is on a list itself, with the listener that it calls and the one that comes next.
// A thread that destroys a listener takes it off the list, moves every walk that would come to it
// one further, and then waits for those of other threads that are in it. A walk never looks back at
// the listener it has called, so a callback may destroy its own; the walk then forgets its
// address, where another listener may begin.
struct IncidentListeners {
  struct Walk {
    IncidentListener* called;
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
  // What is read without the lock, to tell nobody at no cost.
  static inline internal::Atomic<unsigned> count{0};

  static void Add(IncidentListener* listener) {
    const Lock lock(mutex);
    IncidentListener** place = &first;
    while (*place != nullptr) place = &(*place)->next_;
    *place = listener;
    count.fetch_add(1, std::memory_order_relaxed);
  }

  static void Remove(IncidentListener* listener) {
    const Lock lock(mutex);
    IncidentListener** place = &first;
    while (*place != listener) place = &(*place)->next_;
    *place = listener->next_;
    count.fetch_sub(1, std::memory_order_relaxed);
    LeaveWalks(listener);
    while (IsCalled(listener)) called_changed.wait(mutex);
  }

  // None comes to `listener` any more, and those of this thread are in it no longer.
  static void LeaveWalks(const IncidentListener* listener) {
    const internal::ThreadId here = internal::ThisThreadId();
    for (Walk* walk = walks; walk != nullptr; walk = walk->other) {
      if (walk->next == listener) walk->next = listener->next_;
      if (walk->called == listener && walk->thread == here) walk->called = nullptr;
    }
  }

  static bool IsCalled(const IncidentListener* listener) {
    for (const Walk* walk = walks; walk != nullptr; walk = walk->other) {
      if (walk->called == listener) return true;
    }
    return false;
  }

  static void Begin(Walk* walk) {
    const Lock lock(mutex);
    *walk = {nullptr, first, internal::ThisThreadId(), walks};
    walks = walk;
  }

  // The next to be called; at the end the walk is over. A copy, since what is called may be
  // destroyed by its own callback.
  static bool Next(Walk* walk, IncidentCallback* callback, void** user) {
    const Lock lock(mutex);
    walk->called = walk->next;
    called_changed.notify_all();
    if (walk->called != nullptr) {
      walk->next = walk->called->next_;
      *callback = walk->called->callback_;
      *user = walk->called->user_;
      return true;
    }
    Walk** place = &walks;
    while (*place != walk) place = &(*place)->other;
    *place = walk->other;
    return false;
  }
};

IncidentListener::IncidentListener(IncidentCallback callback, void* user) noexcept
    : callback_(callback), user_(user) {
  IncidentListeners::Add(this);
}

IncidentListener::~IncidentListener() { IncidentListeners::Remove(this); }

namespace internal {

bool HasListeners() noexcept {
  return IncidentListeners::count.load(std::memory_order_relaxed) != 0;
}

void CallListeners(const Incident& incident) noexcept {
  if (!HasListeners()) return;
  IncidentListeners::Walk walk;
  IncidentListeners::Begin(&walk);
  IncidentCallback callback = nullptr;
  void* user = nullptr;
  while (IncidentListeners::Next(&walk, &callback, &user)) callback(incident, user);
}

}  // namespace internal
CUGUEST_END_NAMESPACE

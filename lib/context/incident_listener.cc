// SPDX-License-Identifier: Apache-2.0

#include "cuguest/incident_listener.h"

#include <pthread.h>

#include "cuguest/internal/this_thread.h"
#include "lib/context/incident_listeners.h"

CUGUEST_BEGIN_NAMESPACE

// Note [Listeners that go while they are called]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The list is walked without the lock while a callback runs, so a walk must neither keep a
// pointer to a listener that may be gone nor lose its place. Each walk stands on its thread's
// stack and is on a list itself, with the listener that it calls and the one that comes next.
// Whoever destroys a listener takes it off the list, moves every walk that would come to it one
// further, and then waits for those of other threads that are in it. A walk never looks back at
// the listener it has called, so a callback may destroy its own.
struct IncidentListeners {
  struct Walk {
    IncidentListener* called;
    IncidentListener* next;
    unsigned long long thread;
    Walk* other;
  };

  // Both without a destructor: incidents are told for as long as the process runs.
  static pthread_mutex_t mutex;
  static pthread_cond_t called_changed;
  static IncidentListener* first;
  static Walk* walks;

  class Lock {
   public:
    Lock() { pthread_mutex_lock(&mutex); }
    ~Lock() { pthread_mutex_unlock(&mutex); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
  };

  static void Add(IncidentListener* listener) {
    const Lock lock;
    IncidentListener** place = &first;
    while (*place != nullptr) place = &(*place)->next_;
    __atomic_store_n(place, listener, __ATOMIC_RELAXED);
  }

  static void Remove(IncidentListener* listener) {
    const Lock lock;
    IncidentListener** place = &first;
    while (*place != listener) place = &(*place)->next_;
    __atomic_store_n(place, listener->next_, __ATOMIC_RELAXED);
    for (Walk* walk = walks; walk != nullptr; walk = walk->other) {
      if (walk->next == listener) walk->next = listener->next_;
    }
    while (IsCalledElsewhere(listener)) pthread_cond_wait(&called_changed, &mutex);
  }

  static bool IsCalledElsewhere(const IncidentListener* listener) {
    const unsigned long long here = internal::NumberOfThisThread();
    for (const Walk* walk = walks; walk != nullptr; walk = walk->other) {
      if (walk->called == listener && walk->thread != here) return true;
    }
    return false;
  }

  static void Begin(Walk* walk) {
    const Lock lock;
    *walk = {nullptr, first, internal::NumberOfThisThread(), walks};
    walks = walk;
  }

  // The next to be called; at the end the walk is over. A copy, since what is called may be
  // destroyed by its own callback.
  static bool Next(Walk* walk, IncidentCallback* callback, void** user) {
    const Lock lock;
    walk->called = walk->next;
    pthread_cond_broadcast(&called_changed);
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

pthread_mutex_t IncidentListeners::mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t IncidentListeners::called_changed = PTHREAD_COND_INITIALIZER;
IncidentListener* IncidentListeners::first = nullptr;
IncidentListeners::Walk* IncidentListeners::walks = nullptr;

IncidentListener::IncidentListener(IncidentCallback callback, void* user) noexcept
    : callback_(callback), user_(user) {
  IncidentListeners::Add(this);
}

IncidentListener::~IncidentListener() { IncidentListeners::Remove(this); }

namespace internal {

bool HasListeners() noexcept {
  return __atomic_load_n(&IncidentListeners::first, __ATOMIC_RELAXED) != nullptr;
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

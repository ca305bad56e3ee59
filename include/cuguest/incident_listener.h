// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
/// \file
/// `IncidentListener` is called for every incident as long as it exists. Several libraries that
/// share one copy of cuguest each have their own, and a plugin may be unloaded once its listeners
/// are destroyed.
///
///   void Log(const cuguest::Incident& incident, void* user) noexcept {
///     static_cast<Logger*>(user)->Write(incident.file, incident.line, Name(incident.kind));
///   }
///   ...
///   cuguest::IncidentListener listener(&Log, &logger);

#ifndef CUGUEST_INCIDENT_LISTENER_H_
#define CUGUEST_INCIDENT_LISTENER_H_

#include "cuguest/export.h"
#include "cuguest/incident.h"

CUGUEST_BEGIN_NAMESPACE

/// Called on the guard's thread, after the repair, and on several threads at a time. It may use
/// CUDA if it leaves the stack as it found it, and guards of its own. It may end the scope that
/// reports: if that was to move or to be reasserted, it gives CUDA_ERROR_ILLEGAL_STATE and is
/// outside; its end returns what it found. It does not throw, and leaves by longjmp() from
/// functions of c.h alone, which says what holds then.
using IncidentCallback = void (*)(const Incident& incident, void* user);

/// Registered from construction to the end of its destructor. Listeners are called in the order of
/// registration; one that is registered during a report may or may not be called for it.
/// Threads: distinct. The destructor waits for calls of this listener that are in progress on other
///          threads: afterwards neither callback nor user is used again. From inside its own
///          callback it does not wait for that call, and may be followed by anything but unloading
///          the code that runs. Two callbacks that destroy each other's listener at the same time
///          wait for each other for ever; so does a destructor under a lock that the callback
///          takes. Not waited for: a callback that another one has interrupted on a stack of its
///          own (a fiber's), and, in a child that a callback has forked, that callback where
///          another thread of the child is the first to use listeners.
/// Cost:    no allocation, unless more than 16 incidents are reported at one time: without memory
///          for that, one is counted and no listener called. No lock of ours is held meanwhile.
class [[nodiscard]] CUGUEST_API IncidentListener {
 public:
  /// Requires: `callback` is not null.
  [[nodiscard]] explicit IncidentListener(IncidentCallback callback, void* user = nullptr) noexcept;
  IncidentListener(const IncidentListener&) = delete;
  IncidentListener& operator=(const IncidentListener&) = delete;
  ~IncidentListener();

 private:
  friend struct IncidentListeners;

  const IncidentCallback callback_;
  void* const user_;
  IncidentListener* next_ = nullptr;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_INCIDENT_LISTENER_H_

// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// incident.h                                                            tier: 2
// -----------------------------------------------------------------------------
/// \file
/// An incident is a disturbance of the context stack (or of the thread's stream-capture
/// mode, or of the runtime's last error) that a guard found when its scope ended (or in
/// `Reassert()`), and what the guard did about it; or a guard that was used wrongly. It names
/// the guard's file and line, which is where to start looking for the culprit.
///
///   void Log(const cuguest::Incident& i) noexcept {
///     my_log("%s:%d: a callee %s; the stack was %s", i.file, i.line,
///            cuguest::Name(i.kind), cuguest::Name(i.repair));
///   }
///   cuguest::SetIncidentHandler(&Log);
///
/// By default incidents are counted and nothing is printed: a guest does not write
/// to its host's stderr. A library that is not alone in its process, or may be unloaded,
/// registers an IncidentListener (incident_listener.h) instead.

#ifndef CUGUEST_INCIDENT_H_
#define CUGUEST_INCIDENT_H_

#include <cuda.h>

#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

enum class IncidentKind : unsigned char {
  kReplaced,     ///< the top of the stack was replaced, as cudaSetDevice does
  kLeakedPush,   ///< one or more pushes were left on the stack
  kExtraPop,     ///< an entry that was not the callee's was popped
  kDestroyed,    ///< a context whose entry was to be restored, or the guard's own, was
                 ///< destroyed and its entry with it
  kFailed,       ///< the driver refused a call that the restoration needed
  kCaptureMode,  ///< another stream-capture mode was left behind; the stack is not concerned
  kLastError,    ///< another last error of the runtime was left behind, or the caller's taken;
                 ///< the stack is not concerned
  kElsewhere,    ///< a guard was ended on another thread than its own; both stacks were left alone
  kUnasked,      ///< a guard failed to enter, and ended without anybody having asked: what was
                 ///< done in its scope was done in the caller's context. Only where the guard's
                 ///< file is compiled without NDEBUG
};
CUGUEST_HIDE inline constexpr int kIncidentKinds = 9;

enum class Repair : unsigned char {
  kRepaired,    ///< the caller's stack is what it was, for certain
  kInferred,    ///< the caller's context is current; the rest of the stack is what it was on
                ///< the most likely reading of what was found, see Note [What is inferred] of
                ///< context_guard.h
  kUnrepaired,  ///< neither is known: see `current`
};

/// Valid only while the handler runs.
struct Incident {
  IncidentKind kind;
  Repair repair;
  CUresult result;     ///< the driver's code that stopped a repair; CUDA_SUCCESS if none did.
                       ///< Of kLastError: the error that was left, as a CUresult; of kUnasked: the
                       ///< guard's
  CUcontext expected;  ///< what the guard expected on top when it looked
  CUcontext found;     ///< what was there; nullptr for an empty stack
  CUcontext current;   ///< what is current now, after the repair
  const char* file;  ///< of the guard, or of the MoveTo() by which it was where it was; a text that
                     ///< says so where it was constructed by the standard library (emplace,
                     ///< make_unique) and not given a Location
  int line;          ///< of the guard; 0 where `file` is that text
  unsigned long thread;  ///< the kernel's id of the calling thread (gettid)
};

/// Called on the guard's thread, after the repair. It may use CUDA if it leaves the
/// stack as it found it, and it must not throw.
using IncidentHandler = void (*)(const Incident& incident);

/// Replaces the handler and returns the one before; nullptr, the default, means count and say
/// nothing. There is one such handler, beside any number of listeners, and one set of counts per
/// copy of cuguest: a library that embeds it statically has its own, and is notified of its own
/// guards only.
///
/// Threads: any, at any time. A handler may still run for a moment on another
///          thread after it was replaced: of no use where its code is to be unloaded.
CUGUEST_API IncidentHandler SetIncidentHandler(IncidentHandler handler) noexcept;

/// How many incidents of `kind` there were since the library was loaded.
[[nodiscard]] CUGUEST_API unsigned long long IncidentCount(IncidentKind kind) noexcept;
[[nodiscard]] CUGUEST_API unsigned long long IncidentCount() noexcept;  // of every kind

/// "replaced the current context", "left a push behind", ...: fits "a callee ...".
[[nodiscard]] CUGUEST_API const char* Name(IncidentKind kind) noexcept;
/// "repaired", "repaired by inference", "not repaired".
[[nodiscard]] CUGUEST_API const char* Name(Repair repair) noexcept;

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_INCIDENT_H_

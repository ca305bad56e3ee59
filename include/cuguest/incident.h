// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 2
/// \file
/// An incident is a disturbance of the context stack (or of the thread's stream-capture mode, or of
/// the runtime's last error) that a guard found when its scope ended (or in `Reassert()`), and what
/// the guard did about it; or a guard that was used wrongly. It names the guard's file and line,
/// which is where to start looking for the cause.
///
///   void Log(const cuguest::Incident& i, void*) noexcept {
///     my_log("%s:%d: a callee %s; the stack was %s", i.file, i.line,
///            cuguest::Name(i.kind), cuguest::Name(i.repair));
///   }
///   cuguest::IncidentListener listener(&Log);  // incident_listener.h
///
/// Without a listener incidents are counted and nothing is printed: a guest does not write to its
/// host's stderr. Each copy of cuguest has one set of counts and of listeners: a library that
/// embeds it statically has its own, and is notified of its own guards only.

#ifndef CUGUEST_INCIDENT_H_
#define CUGUEST_INCIDENT_H_

#include <cuda.h>

#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

/// What a guard found disturbed, and did about it. Valid only while the listener's callback runs.
struct Incident {
  enum class Kind : unsigned char {
    kReplaced,     ///< the top of the stack was replaced, as cudaSetDevice does; or, where the
                   ///< repair is kInferred, popped: see Note [What is inferred]
    kLeakedPush,   ///< one or more pushes were left on the stack
    kExtraPop,     ///< an entry that was not the callee's was popped
    kDestroyed,    ///< a context whose entry was to be restored, or the guard's own, was
                   ///< destroyed and its entry with it
    kFailed,       ///< the driver refused a call that the restoration needed
    kCaptureMode,  ///< another stream-capture mode was left behind; the stack is not concerned
    kLastError,    ///< the runtime's last error was changed, or the caller's taken; not the stack
    kElsewhere,    ///< a guard or scope was ended on another thread than its own; both stacks were
                   ///< left alone, and its own thread restores its stack
    kUnasked,      ///< a guard failed to enter, and ended without anybody having asked: what was
                   ///< done in its scope was done in the caller's context
    kOutOfTurn,  ///< a guard or scope was destroyed while another one was open inside it; the stack
                 ///< is restored when that one has ended
    kOwed,  ///< a destructor or an assignment, in a stream callback, could not give back what it
            ///< held, as the driver refuses to take it there; the next call of this copy elsewhere
            ///< that makes or destroys a context, a reference to one, a stream, an event or a
            ///< buffer does that. The stack is not concerned
  };
  CUGUEST_HIDE static constexpr int kKinds = 11;

  enum class Repair : unsigned char {
    kRepaired,    ///< the caller's stack is what it was, for certain
    kInferred,    ///< the caller's context is current; the rest of the stack is what it was on
                  ///< the most likely reading of what was found, see Note [What is inferred]
    kUnrepaired,  ///< neither is known: see `current`
  };

  Kind kind;
  Repair repair;
  CUresult result;     ///< the driver's code that stopped a repair; CUDA_SUCCESS if none did.
                       ///< Of kLastError: the error that was left, as a CUresult; of kUnasked: the
                       ///< guard's; of kElsewhere and kOutOfTurn: what the end returns; of kOwed:
                       ///< CUDA_ERROR_OUT_OF_MEMORY where there is no host memory to remember it,
                       ///< or that of ScratchBuffer::Release() where a graph goes on allocating it;
                       ///< and it is never given back
  CUcontext expected;  ///< what the guard expected on top when it looked
  CUcontext found;     ///< what was there; nullptr for an empty stack
  CUcontext current;   ///< what is current now, after the repair
  const char* file;    ///< of the guard, or of its MoveTo(); a text that says so where the standard
                       ///< library constructed it (emplace, make_unique) without a Location, where
                       ///< it ended before those inside it, or where it is a cuguest_push(). Of
                       ///< kOwed: what was held, as "a SharedContext"
  int line;            ///< of the guard; 0 where `file` is such a text
  unsigned long thread;  ///< the kernel's id of the calling thread (gettid)
};

/// How many incidents of `kind` there were since the library was loaded.
[[nodiscard]] CUGUEST_API unsigned long long IncidentCount(Incident::Kind kind) noexcept;
[[nodiscard]] CUGUEST_API unsigned long long IncidentCount() noexcept;  // of every kind

/// "left a push behind", "replaced the current context, or popped it", ...: fits "a callee ...".
[[nodiscard]] CUGUEST_API const char* Name(Incident::Kind kind) noexcept;
/// "repaired", "repaired by inference", "not repaired".
[[nodiscard]] CUGUEST_API const char* Name(Incident::Repair repair) noexcept;

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_INCIDENT_H_

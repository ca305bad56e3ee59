// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
//
// Not for embedders. Which thread this is, and the records of the scopes that are open on it.

#ifndef CUGUEST_INTERNAL_THIS_THREAD_H_
#define CUGUEST_INTERNAL_THIS_THREAD_H_

#include <cuda.h>

#include <cstdint>

#include "cuguest/export.h"
#include "cuguest/internal/compiler.h"
#include "cuguest/internal/incarnation.h"
#ifdef CUGUEST_SCHEDULED_THREADS
#include "cuguest/internal/concurrency.h"
#endif

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// Note [Records]
// ~~~~~~~~~~~~~~
// The nesting of a thread's scopes is a stack of records: values that say what each scope entered
// and what is to be restored. A scope object (scope.h) holds the place and the serial number of its
// record; a record holds the address of no scope. So a scope may be moved, end in any order, or be
// leaked, and its record stays right.
//
//   state    the scope ...                                        on the driver's stack,
//                                                                 or its mode the thread's
//   kEntering is about to be open                                not yet
//   kLive    is open                                              yes
//   kEnded   has ended while another one was open above it; is    yes
//            closed when those have ended
//   kOut     was taken out by a HostScope, which enters it again  no
//   kGone    could not be entered again; `result` says why        no
//   kFree    is closed; others are above its place                no
//
// One copy of cuguest sees its own records only. Each thread has room for kRoom records; deeper
// ones are in memory of the C library, kRoom at a time, which goes back when it is not used any
// more; that of a thread that ends with scopes so deep is lost. The fast paths look at those kRoom
// alone that the last record is among, or the next: so depth costs nothing but where a scope is
// entered in others than the one before.
struct Record {
  enum class Kind : unsigned char {
    kElided,       // the context was current already
    kPushed,       // it was pushed on `caller`
    kExact,        // the whole stack is known; or was taken off, if `ours` is none
    kHost,         // a HostScope
    kCaptureMode,  // the thread's capture mode; not on the context stack
  };
  enum class State : unsigned char { kLive, kEntering, kEnded, kOut, kGone, kFree };

  enum class Owner : unsigned char {
    kScope,       // knows all that the record says
    kStaleScope,  // does not: it was out meanwhile
    kNobody,      // of cuguest_push()
  };

  struct CaptureModes {
    CUstreamCaptureMode ours;
    CUstreamCaptureMode callers;
  };

  // Both of these take one load or store, where members would take one each.
  CUGUEST_HIDE void SetLive(int at_line, Kind now, bool pushes_always) noexcept {
    const unsigned long long all = static_cast<unsigned>(at_line) |
                                   static_cast<unsigned long long>(now) << 32 |
                                   static_cast<unsigned long long>(pushes_always) << 48;
    CopyBytes(&line, &all, sizeof(all));
  }
  // Whether it is live and kElided or kPushed, and its scope knows all that it says.
  [[nodiscard]] CUGUEST_HIDE bool IsAsEntered() const noexcept {
    unsigned all;
    CopyBytes(&all, &kind, sizeof(all));
    return (all & 0xFF00FFFEU) == 0;
  }

  unsigned long long serial;  // no other record of this copy ever has it
  Incarnation ours;           // unknown if entered by a handle
  CUcontext caller;           // when it entered
  const char* file;
  union {
    Incarnation* entries;  // kExact: what was on the stack, bottom first; from std::malloc
    CaptureModes modes;    // kCaptureMode
  };
  // These five are the word of SetLive().
  int line;
  Kind kind;
  State state;  // kLive is 0
  bool always_pushes;
  Owner owner;
  union {
    unsigned host_slot;    // kOut: the place of the HostScope
    unsigned entry_count;  // kExact and not kOut: of `entries`
  };
  CUresult result : 16;  // kOut, kGone: why it cannot be entered again
  CUresult owed : 16;    // of a kStaleScope: what its end returns of a move or reassertion before
};

struct DeepRecords;  // of records.cc

constexpr CUdevice kDeviceNotAsked = -1;

// A context that was seen current. The driver gives its id to no other context, and a context
// stays on its device, so where the id is the current one's again the rest is known, too.
struct SeenContext {
  CUGUEST_HIDE static constexpr long long kNoDeviceYet = 1LL << 32;

  unsigned long long id;  // 0: none was seen
  long long device;       // or kNoDeviceYet, which is no int that a caller may take for a device
};

// How many scopes were ended on another thread than their own and are not closed yet, by all
// threads.
CUGUEST_API extern unsigned g_ended_elsewhere;

// Zero when a thread begins; has no destructor, so that it is good for as long as the thread.
struct ThisThread {
  CUGUEST_HIDE static constexpr unsigned kRoom = 16;
  // A record counts its serial up from one use to the next, from a multiple of this on that no
  // other record has.
  CUGUEST_HIDE static constexpr unsigned long long kSerialsAtOnce = 1ULL << 20;

  // Of the kRoom records from `first` on, the one that `slot` has or would have there.
  [[nodiscard]] CUGUEST_HIDE Record& Near(unsigned slot) noexcept {
    const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(records) + distance;
    return reinterpret_cast<Record*>(begin)[slot % kRoom];
  }
  // Whether a record can be added without more ado: there is room and a serial for it, and no
  // record waits to be closed first.
  [[nodiscard]] CUGUEST_HIDE bool HasRoom() noexcept {
    return depth - first < kRoom && Near(depth).serial % kSerialsAtOnce != 0 &&
           (depth == 0 || !HasMail());
  }
  // Needs HasRoom(). Whether there is as much for the one after the next.
  [[nodiscard]] CUGUEST_HIDE bool HasRoomForTwo() noexcept {
    return depth + 1 - first < kRoom && Near(depth + 1).serial % kSerialsAtOnce != 0;
  }
  // Needs HasRoom(), or a record. False in a child of the process that has made the records.
  [[nodiscard]] CUGUEST_HIDE bool IsOfProcess() const noexcept {
    return LoadRelaxed(process_now) == process;
  }
  [[nodiscard]] CUGUEST_HIDE bool IsReady() noexcept { return HasRoom() && IsOfProcess(); }
  [[nodiscard]] CUGUEST_HIDE static bool HasMail() noexcept {
    return LoadRelaxed(&g_ended_elsewhere) != 0;
  }

  unsigned depth;          // records that are in use, kFree ones among them
  unsigned first;          // of those that are near; `depth` is at most kRoom more
  unsigned room;           // of `deep` and what is below it
  unsigned capture_modes;  // of them kCaptureMode
  unsigned process;        // whose records these are
  // Neither a pthread_t nor the address of a thread_local will do: both are used again as
  // soon as a thread has ended. 0 until it is asked for.
  unsigned long long number;
  int kernel_thread;            // gettid(); 0 until a scope begins
  SeenContext seen;             // the last one; see current_context.h
  DeepRecords* deep;            // the last of those that are deeper than kRoom
  std::uintptr_t distance;      // from `records` to those that are near; what is added wraps around
  const unsigned* process_now;  // which process this is; nullptr until a scope begins
  Record records[kRoom];
};
#ifdef CUGUEST_SCHEDULED_THREADS
extern CUGUEST_THREAD_LOCAL(ThisThread) t_this_thread;
CUGUEST_HIDE inline ThisThread* CallingThread() noexcept {
  return &static_cast<ThisThread&>(t_this_thread);
}
#else
CUGUEST_API extern CUGUEST_INTERNAL_THREAD ThisThread t_this_thread;
// The same for code that uses several of them: in a library their address costs a call, which the
// compiler would make at each use.
CUGUEST_HIDE inline ThisThread* CallingThread() noexcept {
  ThisThread* here = &t_this_thread;
  CUGUEST_INTERNAL_KEEP(here);
  return here;
}
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

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_INTERNAL_THIS_THREAD_H_

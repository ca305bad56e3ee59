// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a source reports to: decides which calls are events, and writes these into the channel.
//
// Note [Calls inside calls]
// ~~~~~~~~~~~~~~~~~~~~~~~~~
// The runtime calls the driver, and sources report both. An event is the outermost call, as the
// caller wrote it. A call that never returns (a longjmp, a thread that is cancelled) is noticed by
// the next one that begins further up the stack.
//
// Note [When a frame has returned]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// After an event a thread remembers the canonical frame addresses at which its chain passed from
// one object to the next. A later call whose caller's stack is not below the innermost of them is
// made after that object's function has returned; its chain is then taken, and written as a check,
// unless it says otherwise. Where the caller's stack is, the callback knows from its own frame: the
// distance is the same at each call of the same function, and learned from the first chain.
//
// Note [What callers make in a context]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A call that leaves something in a context, or frees it, takes its chain, and is an event if it is
// the first of its kind of that object's in that context. Calls of memory pools are none: they
// are frequent, and a pool is of a device.
//
// Note [What each finding needs]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// What the analysis decides by passes the filter, in each thread, and in a forked child whatever
// its parent has told already. Also if the call is the first one of the child, which opens its
// channel.
//
// - leaked-push, extra-pop, replaced-context, left-context: each call that changes the stack; the
//   first one after the culprit's return, or the end of the thread, or exit()
// - created-primary, query-created-primary: the context, while it is made
// - touched-device-zero: likewise, and the first work in it
// - reset-primary, over-released-primary: each retain, release and reset, also a runtime's own; the
//   first of what each caller makes in the context
// - destroyed-context, destroyed-in-use: each call that puts the context on a stack, and the one
//   that destroys it
// - destroyed-work: likewise, and the first of what each caller makes or frees in it
// - used-destroyed-context: the call, before it begins
// - changed-setting: each call that sets, with the value before; as leaked-push
// - left-error: each call of the runtime that fails; cudaGetLastError() with an error
// - broke-capture: the beginning and the end of a capture; each call that fails with an error of
//   captures
// - forked-child, after-shutdown: each call that fails with CUDA_ERROR_NOT_INITIALIZED or
//   CUDA_ERROR_DEINITIALIZED
// - leaked-reference: each retain and release
// - leaked-context: the context; at exit(), which objects are not loaded any more
// - forbidden-use: the initialisation, each context, the first call of each function that is
//   watched
// - noisy-call: each call that fails, after TellNoise()
// - used-after-context: the first call of each place that makes an object of a context, and each
//   that is given one whose context is over
//
// Note [Objects of a context that is over]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// While there are objects whose context is over, calls are looked at before they are made: one that
// is given a stream, an event, a module or an array of them may not return, and is an event at
// once. So is one that is to copy page-locked memory which is not there any more. For other memory,
// functions and textures the driver's answer decides: only where it says that the argument is none
// is it certain that nothing else was there by then. Where there are none such objects, a call asks
// one number for that.
//
// Threads: any. It takes no lock that a guest may hold, calls no CUDA function, and does nothing
// where there is no channel.

#ifndef CUGUEST_AUDIT_COLLECT_COLLECTOR_H_
#define CUGUEST_AUDIT_COLLECT_COLLECTOR_H_

#include <cstdint>

#include "audit/collect/call_table.h"

namespace cuguest::audit {

// A call as a source sees it, at its entry or at its return.
struct ReportedCall {
  const CallInfo* info = nullptr;
  std::uint64_t context = 0;  // the current one now
  int result = 0;             // when it returns
  // Either is null: pointers to the arguments, or a structure of them.
  const void* const* pointers = nullptr;
  const void* structure = nullptr;
  std::uintptr_t frame = 0;  // __builtin_frame_address(0) of the source's callback
};

struct ReportedContext {
  const void* handle = nullptr;
  std::uint64_t id = 0;
  int device = -1;
  bool primary = false;
  bool is_green = false;
  std::uintptr_t frame = 0;
};

class Collector {
 public:
  // Asks for a channel at an address, the value of kChannelVariable; forked children will too.
  // False where none can be had.
  static bool Start(const char* address);
  // With the channel in this memory, which the caller closes.
  static bool StartWith(int memory);
  // Each call that fails is an event. To be called before the first one.
  static void TellNoise();
  // Between the two nothing is written.
  static void Pause();
  static void Resume();

  static void OnEnter(const ReportedCall& call);
  static void OnLeave(const ReportedCall& call);
  static void OnContextCreated(const ReportedContext& context);
  static void OnContextDestroyed(const void* handle);
  // The driver is being initialised, for the caller of it at `frame`.
  static void OnInitialized(std::uintptr_t frame);

  // For a source that has handles only: the next number of a context, and the one that a handle
  // stands for. One that was not reported is numbered now. 0 for null.
  static std::uint64_t NextId();
  static std::uint64_t IdOf(const void* handle);
  // ContextTable::HasPrimary().
  static bool HasPrimary(int device);

  // For people: why a source could not be had, and what is not seen.
  static void Note(const char* text);
  // Of the source that was started.
  static void NameSource(const char* name);
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COLLECT_COLLECTOR_H_

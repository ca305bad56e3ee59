// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decides what in a process's events is a disturbance.
//
// A library is entered by a frame on a thread's stack and has returned when that frame is gone.
// What it did meanwhile to the thread's context stack, to settings or to the runtime's last error,
// and did not undo, is a finding if the code that it returned to, or other code whose state it was,
// minds: it put there what is no longer there, or it manages contexts itself, by calls of the
// driver API on this thread. (So a program that leaves contexts to frameworks has none.) A library
// that takes its change back in a later call, as those with an enter and a leave function do, has
// done nothing; one whose caller repairs it has.
//
// A primary context is a finding if who called, at any depth, manages contexts in this process.
// What is destroyed, reset, released, used after its end or breaks a capture is one when it
// happens.
//
// Memory is bounded by the code of the process: the functions that call, not how often; and by the
// contexts, threads and objects that there are at one time.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_ANALYSIS_H_
#define CUGUEST_AUDIT_ANALYSIS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "audit/event.h"
#include "audit/finding.h"

namespace cuguest::audit {

// Entries of a thread's stack that are known. What is below them is not looked at.
inline constexpr std::size_t kStackLimit = 4096;

// Of one process.
class Analysis {
 public:
  // `forked`: the process is a copy of one that used CUDA, and has not called exec.
  // `program`: path of its executable, as its object has it; empty: not known.
  explicit Analysis(bool forked = false, std::string program = "");
  ~Analysis();
  Analysis(const Analysis&) = delete;
  Analysis& operator=(const Analysis&) = delete;

  // What frames with `index` are in, before the first of them. An index stays what it is.
  void OnObject(std::uint32_t index, const Object& object);
  // In the order in which the process's events happened.
  void OnEvent(const Event& event);

  // What is found so far, ordered by kind, culprit and victim. A finding may still go away while
  // the victim has not returned, and a further one appear for what happened earlier: when a party
  // turns out to manage contexts itself. After the last event this is final.
  [[nodiscard]] std::vector<Finding> Findings() const;
  // How often one was dropped because there were too many different ones.
  [[nodiscard]] std::uint64_t Dropped() const;
  // Other limits that were reached, so that findings may be missing: for people.
  [[nodiscard]] std::vector<std::string> Limits() const;
  // Calls that failed in a library: of the kind kNoisy, with the next caller as the victim. Those
  // of the program itself are none.
  [[nodiscard]] std::vector<Finding> Noise() const;
  [[nodiscard]] std::uint64_t DroppedNoise() const;

  // What would be a finding, too, if all that was called had returned by the last event. None after
  // exit(), when that is known. To be asked after the last event.
  [[nodiscard]] std::vector<Finding> Unsettled() const;

  // What is never given back: references of primary contexts, and contexts of libraries that were
  // unloaded. To be asked after the last event.
  [[nodiscard]] std::vector<Finding> Leaks() const;
  // Who was the first to initialise CUDA, to make a context of each device, and to make each call
  // that is an event; of the kind kForbidden.
  struct FirstUse {
    enum What : std::uint8_t { kInitialized, kContext, kCall };
    What what;
    Finding finding;
  };
  [[nodiscard]] const std::vector<FirstUse>& FirstUses() const;

  // The contexts on a thread's stack, the current one last, as far as events tell.
  [[nodiscard]] std::vector<ContextId> Stack(std::uint32_t thread) const;
  [[nodiscard]] ContextNote Context(ContextId id) const;
  // As OnObject() had them; the first is no object.
  [[nodiscard]] const std::vector<Object>& objects() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_ANALYSIS_H_

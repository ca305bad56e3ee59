// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The context stacks of threads, change by change, for those who draw them.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_COMMAND_STACK_CHANGES_H_
#define CUGUEST_AUDIT_COMMAND_STACK_CHANGES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "audit/finding.h"

namespace cuguest::audit {

// A process that has called exec is another one with the same id.
struct ThreadOfProcess {
  std::uint32_t process = 0;  // its number
  int pid = 0;
  std::uint32_t thread = 0;

  bool operator<(const ThreadOfProcess& other) const {
    return std::tie(process, thread) < std::tie(other.process, other.thread);
  }
};

// Stacks begin with their outermost entry.
struct StackChange {
  ThreadOfProcess where;
  std::uint64_t time;  // CLOCK_MONOTONIC, in nanoseconds
  const std::vector<ContextNote>& before;
  const std::vector<ContextNote>& after;
  std::size_t kept;  // entries of both, from the outermost, that are the same
};

class StackObserver {
 public:
  virtual ~StackObserver() = default;
  virtual void OnStackChange(const StackChange& change) = 0;
  // After the change that empties its stack.
  virtual void OnThreadEnd(const ThreadOfProcess& /*where*/) {}
};

class StackChanges {
 public:
  // Which must outlive it.
  void Tell(StackObserver* observer) { observers_.push_back(observer); }
  [[nodiscard]] bool are_told() const { return !observers_.empty(); }

  // The stack at that time; no change if it is what it was.
  void Set(const ThreadOfProcess& where, std::uint64_t time, std::vector<ContextNote> stack);
  // Empties the stack, and forgets the thread.
  void EndThread(const ThreadOfProcess& where, std::uint64_t time);
  void EndProcess(std::uint32_t process, std::uint64_t time);

 private:
  std::vector<StackObserver*> observers_;
  std::map<ThreadOfProcess, std::vector<ContextNote>> stacks_;
};

// "context 7 (primary of device 0)".
[[nodiscard]] std::string ContextLabel(const ContextNote& context);

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_STACK_CHANGES_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of a source, by the numbers that it has for them.

#ifndef CUGUEST_AUDIT_COLLECT_CALL_TABLE_H_
#define CUGUEST_AUDIT_COLLECT_CALL_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "audit/call_rule.h"
#include "audit/collect/object_rule.h"

namespace cuguest::audit {

enum class Domain : std::uint8_t { kDriver, kRuntime };

// Whether `text` is as one of `patterns`, between commas, says; * is any text, ? any letter.
bool MatchesOneOf(const char* patterns, const char* text);
// The functions that are watched, before the first of them is made.
void WatchCalls(const char* patterns);

// One function of a source's. Constant once it is made, but for what is learned.
struct CallInfo {
  const char* name = nullptr;  // base name, for ever
  const CallRule* rule = nullptr;
  Domain domain = Domain::kDriver;
  bool is_of_primary = false;  // cuDevicePrimaryCtxRetain and the like
  bool counts = false;         // cuDevicePrimaryCtxRetain or Release
  bool creates = false;        // cuCtxCreate: the context that is current afterwards
  bool makes_current = false;  // cuCtxPushCurrent, cuCtxSetCurrent: the one that is named
  // How far above the callback's frame the caller's stack begins; 0: not known yet.
  mutable std::atomic<std::uint32_t> depth{0};
  const ObjectRule* objects = nullptr;            // null: it is given no object of a context
  bool makes_or_frees = false;                    // such objects
  bool is_watched = false;                        // by its name
  mutable std::atomic<std::uint32_t> told_in{0};  // likewise: in which its first call was an event
  std::uint32_t number = 0;                       // of the name, in the channel
  mutable std::atomic<std::uint32_t> defined_in{0};  // the channel's epoch, see ObjectTable
};

// CallInfo of a function by the source's number for it, made when it is first asked for.
//
// Threads: any; no locks.
class CallTable {
 public:
  static constexpr std::size_t kMaxCalls = 2048;

  constexpr explicit CallTable(Domain domain) : domain_(domain) {}

  // Null where there is no memory, or the number is too large.
  const CallInfo* Find(std::size_t index, const char* name) {
    if (index >= kMaxCalls) return nullptr;
    const CallInfo* info = infos_[index].load(std::memory_order_acquire);
    return info != nullptr ? info : Make(index, name);
  }

 private:
  const CallInfo* Make(std::size_t index, const char* name);

  const Domain domain_;
  std::atomic<const CallInfo*> infos_[kMaxCalls] = {};
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COLLECT_CALL_TABLE_H_

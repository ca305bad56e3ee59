// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the collector knows of each function of the driver and the runtime: whether a call of it can
// disturb, and which arguments say what it is about.

#ifndef CUGUEST_AUDIT_COLLECT_CALL_RULE_H_
#define CUGUEST_AUDIT_COLLECT_CALL_RULE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "audit/collect/object_rule.h"

namespace cuguest::audit {

enum class Domain : std::uint8_t { kDriver, kRuntime };

enum class CallClass : std::uint8_t {
  kCommon,         // an event only if it failed badly, or the current context is another one
  kWork,           // the same, and the first one in a context is an event
  kMake,           // the same, and the first one of each caller in a context: cudaMalloc
  kFree,           // the same, and the first one of each caller in a context: cudaFree
  kChange,         // an event if it succeeded
  kStack,          // the same; a destroyed handle among its arguments is an event before
  kRuntimeChoice,  // an event if the current context is another one: cudaSetDevice
  kCaptureMode,    // an event if the mode is another one
  kAsk,            // no event, but its answer is remembered: the value before a kChange
  kClearError,     // an event if it returns an error: cudaGetLastError
  kPeekError,      // none at all
};

// What one argument is, as a letter of CallRule::arguments:
//   C  a context           c  where a context is stored    D  a device
//   S  a setting's number  V  its value, of 8 bytes        v  of 4 bytes
//   Q  where 8 bytes are stored                            q  where 4 bytes are
//   M  where a capture mode is, exchanged by the call      p  another of 8 bytes
//   i  another of 4 bytes
struct CallRule {
  const char* name;
  CallClass call_class;
  const char* arguments;
  // Calls with the same one change and tell the same thing; 0: no value is remembered.
  std::uint8_t setting_family;
};

// Of `name`, without suffixes. Never null: unknown functions are common.
const CallRule* FindRule(Domain domain, const char* name);

// Whether `text` is as one of `patterns`, between commas, says; * is any text, ? any letter.
bool MatchesOneOf(const char* patterns, const char* text);
// The functions that are watched, before the first of them is made.
void WatchCalls(const char* patterns);

// The name as callers write it: "cuCtxPushCurrent" of "cuCtxPushCurrent_v2", and without _ptsz,
// _ptds and the version that CUPTI puts behind names of the runtime.
std::size_t LengthOfBaseName(const char* name);

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
  const ObjectRule* objects = nullptr;               // null: it is given no object of a context
  bool makes_or_frees = false;                       // such objects
  bool is_watched = false;                           // by its name
  mutable std::atomic<bool> is_told{false};          // likewise: its first call was an event
  std::uint32_t number = 0;                          // of the name, in the channel
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

#endif  // CUGUEST_AUDIT_COLLECT_CALL_RULE_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is known of each function of the driver and the runtime by its name: what a call does to
// contexts, when it is an event, and which arguments say what it is about. The collector and the
// analysis read one table.
//
// Thread-safe: yes.

#ifndef CUGUEST_AUDIT_CALL_RULE_H_
#define CUGUEST_AUDIT_CALL_RULE_H_

#include <cstdint>
#include <string_view>

namespace cuguest::audit {

enum class CallKind : std::uint8_t {
  kOther,
  kPush,
  kPop,
  kSetCurrent,
  kCreate,   // makes a context and pushes it
  kDestroy,  // also one that may: cuCtxDetach
  kRetainPrimary,
  kReleasePrimary,
  kResetPrimary,
  kSetSetting,    // of a context
  kGetLastError,  // clears it
  kPeekLastError,
  kBeginCapture,
  kEndCapture,
  kAskForCapture,  // fails with a capture's error and harms none
};

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

// Calls with the same one change and tell the same thing.
enum class Setting : std::uint8_t {
  kNone,
  kLimit,
  kCacheConfig,
  kSharedConfig,
  kContextFlags,
  kPrimaryFlags,
};

// What one argument is, as a letter of CallRule::arguments:
//   C  a context           c  where a context is stored    D  a device
//   S  a setting's number  V  its value, of 8 bytes        v  of 4 bytes
//   Q  where 8 bytes are stored                            q  where 4 bytes are
//   M  where a capture mode is, exchanged by the call      p  another of 8 bytes
//   i  another of 4 bytes
struct CallRule {
  const char* name;
  CallKind kind;
  CallClass call_class;
  const char* arguments = "";
  Setting setting = Setting::kNone;
};

// The name as callers write it: "cuCtxPushCurrent" of "cuCtxPushCurrent_v2", and without _ptsz,
// _ptds and the version that CUPTI puts behind names of the runtime.
std::string_view NameAsWritten(std::string_view name);

// Of a call, by its name with or without what NameAsWritten() takes away. Functions that are not
// known are common.
const CallRule& RuleOf(std::string_view call);
inline CallKind KindOf(std::string_view call) { return RuleOf(call).kind; }

// Of a context, or of all that is in a primary one.
bool IsDestruction(std::string_view call);
// A call of the runtime or of what stands on it, not of the driver.
bool IsOfRuntime(std::string_view call);
// Calls that only code that manages contexts by the driver API makes.
bool ManagesContexts(CallKind kind);
// What a caller wants of the call.
enum class Purpose : std::uint8_t { kWorks, kAsks, kChooses, kFrees, kWaits };
Purpose PurposeOf(std::string_view call);
// Of the runtime: whether a caller need not expect that it creates a primary context, as it does no
// work.
bool IsQuery(std::string_view call);
// Settings of a context that the driver and the runtime have different calls for: "Limit", "Flags",
// "CacheConfig", "SharedMemConfig". "" for calls that set none.
std::string_view SettingOf(std::string_view call);

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_CALL_RULE_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a call does to contexts, by its name.
//
// Thread-safe: yes.

#ifndef CUGUEST_AUDIT_CALL_NAME_H_
#define CUGUEST_AUDIT_CALL_NAME_H_

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

// Names with a version or the letters of a kind of stream at their end, too: cuCtxDestroy_v2.
CallKind KindOf(std::string_view call);
// Of a context, or of all that is in a primary one.
bool IsDestruction(std::string_view call);
// A call of the runtime or of what stands on it, not of the driver.
bool IsOfRuntime(std::string_view call);
// Calls that only code that manages contexts by the driver API makes.
bool ManagesContexts(CallKind kind);
// Whether a caller need not expect that it creates a primary context: it asks, chooses or frees.
bool IsQuery(std::string_view call);
// What work leaves in a context: memory, streams, events, modules; and what takes that away.
enum class WorkKind : std::uint8_t { kOther, kMakes, kFrees };
WorkKind WorkOf(std::string_view call);
// Settings of a context that the driver and the runtime have different calls for: "Limit", "Flags",
// "CacheConfig", "SharedMemConfig". "" for other calls.
std::string_view SettingOf(std::string_view call);

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_CALL_NAME_H_

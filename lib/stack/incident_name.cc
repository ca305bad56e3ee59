// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/incident.h"

#include <cstddef>
#include <iterator>

CUGUEST_BEGIN_NAMESPACE

const char* Name(Incident::Kind kind) noexcept {
  constexpr const char* kNames[] = {
      /* kReplaced */ "replaced the current context, or popped it",
      /* kLeakedPush */ "left a push behind",
      /* kExtraPop */ "popped an entry that was not its own",
      /* kDestroyed */ "destroyed a context that was in use",
      /* kFailed */ "left the driver refusing to restore",
      /* kCaptureMode */ "left another stream-capture mode behind",
      /* kLastError */ "left another last error of the runtime behind",
      /* kElsewhere */ "ended a guard on another thread than its own",
      /* kUnasked */ "never asked a guard that had failed",
      /* kOutOfTurn */ "ended a guard before another one inside it",
      /* kOwed */ "ended an object where the driver takes nothing back",
  };
  static_assert(std::size(kNames) == Incident::kKinds);
  const auto index = static_cast<std::size_t>(kind);
  return index < std::size(kNames) ? kNames[index] : "did something unknown";
}

const char* Name(Incident::Repair repair) noexcept {
  if (repair == Incident::Repair::kRepaired) return "repaired";
  return repair == Incident::Repair::kInferred ? "repaired by inference" : "not repaired";
}

CUGUEST_END_NAMESPACE

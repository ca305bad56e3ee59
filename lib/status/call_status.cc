// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/status/call_status.h"

#include "cuguest/driver.h"
#include "cuguest/status.h"
#include "lib/core/driver_status.h"
#include "lib/status/object_text.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

namespace {

using Why = CallOutcome::Why;

}  // namespace

absl::Status CallStatus(const CallOutcome& outcome, std::string_view object) {
  if (outcome.ok()) return absl::OkStatus();
  if (outcome.why == Why::kNotInitialized) return InitStatus(outcome.code);
  if (outcome.why == Why::kNoDriver) {
    absl::Status status = Driver::Get().status();  // kept, unless there was no memory
    if (!status.ok()) return status;
  }
  if (outcome.why == Why::kPrimary) {
    return ToStatus(outcome.code, outcome.doing, PrimaryText(outcome.device));
  }
  return ToStatus(outcome.code, outcome.doing, outcome.why == Why::kAlone ? "" : object);
}

CUGUEST_END_INTERNAL_NAMESPACE

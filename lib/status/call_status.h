// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Statuses of what the core's operations come to.                                      tier: 2

#ifndef CUGUEST_LIB_STATUS_CALL_STATUS_H_
#define CUGUEST_LIB_STATUS_CALL_STATUS_H_

#include <string_view>

#include "absl/status/status.h"
#include "lib/status/call_outcome.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// OK if `outcome` is. `object` is what the caller named; the kinds of failure that have words of
// their own are the caller's to look for first.
absl::Status CallStatus(const CallOutcome& outcome, std::string_view object = {});

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_STATUS_CALL_STATUS_H_

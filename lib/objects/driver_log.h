// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A DriverLog without its object.                                                      tier: 3

#ifndef CUGUEST_LIB_OBJECTS_DRIVER_LOG_H_
#define CUGUEST_LIB_OBJECTS_DRIVER_LOG_H_

#include <cuda.h>

#include <string>

#include "absl/status/status.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// One more is open, or one less. The second needs one that is open in this process.
absl::Status OpenDriverLog();
absl::Status CloseDriverLog();

// The reason of this thread's last call; see DriverLog::Reason().
std::string DriverReason(CUresult code);

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_OBJECTS_DRIVER_LOG_H_

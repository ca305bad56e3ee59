// SPDX-License-Identifier: Apache-2.0
//
// Links by the driver's own linker, which takes no LTO IR.  tier: 3

#ifndef CUGUEST_LIB_LINK_DRIVER_LINK_H_
#define CUGUEST_LIB_LINK_DRIVER_LINK_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/link/link_job.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// For the current context. `report` may be null, and is filled in on failure too.
absl::StatusOr<CodeImage> LinkByDriver(const LinkJob& job, JitReport* report);

// Whether a symbol that two inputs without LTO IR define is in the way: the driver says which,
// where nvJitLink prints it to stderr and takes the first, or crashes if it has linked before
// (13.0). Whatever else is wrong with the inputs is not said here.
absl::Status CheckDefinedOnce(const LinkJob& job);

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_LINK_DRIVER_LINK_H_

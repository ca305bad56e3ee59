// SPDX-License-Identifier: Apache-2.0
//
// Links LTO IR, with other inputs or without, by nvJitLink.  tier: 3

#ifndef CUGUEST_LIB_LINK_LTO_LINK_H_
#define CUGUEST_LIB_LINK_LTO_LINK_H_

#include "absl/status/statusor.h"
#include "lib/link/link_job.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// For the current context. `report` may be null, and is filled in on failure too.
absl::StatusOr<CodeImage> LinkByNvJitLink(const LinkJob& job, JitReport* report);

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_LINK_LTO_LINK_H_

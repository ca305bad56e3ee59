// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
/// \file
/// Whether the copies of cuguest in this process count shared contexts together: a check for
/// start-up.
///
///   CUGUEST_RETURN_IF_ERROR(cuguest::CheckSharing());

#ifndef CUGUEST_SHARING_H_
#define CUGUEST_SHARING_H_

#include "absl/status/status.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

/// Whether all copies of cuguest that are loaded now have one count of each shared context.
/// Threads: any.
/// Errors: kFailedPrecondition  names the objects whose copies count apart from this one, their
///                              layouts and the registries that they use. A context that is
///                              attached both here and there is then counted twice, and one made by
///                              one copy may be destroyed while the other is attached. Also in a
///                              forked child in which this copy has not initialised the driver: it
///                              could wait there for a thread of the parent for ever.
/// Cost:   walks the list of loaded objects, and opens /proc/self/stat.
[[nodiscard]] CUGUEST_API absl::Status CheckSharing();

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_SHARING_H_

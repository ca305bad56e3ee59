// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
/// \file
/// Where the functions of acquire.h find a context, and whether they may create one.

#ifndef CUGUEST_CONTEXT_SOURCE_H_
#define CUGUEST_CONTEXT_SOURCE_H_

#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

/// Where an acquired context was found.
enum class ContextSource {
  kStream,
  kPointer,
  kCurrent,
  kPrimary,  ///< was active
  kCreated,  ///< the primary, which was not active before
};

/// "the stream", "the pointer", "the current context", ...
[[nodiscard]] CUGUEST_API const char* Name(ContextSource source) noexcept;

/// What is to be done where a device's primary context is needed and is not active.
enum class IfInactive { kRefuse, kCreate };

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_CONTEXT_SOURCE_H_

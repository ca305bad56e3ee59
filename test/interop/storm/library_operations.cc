// SPDX-License-Identifier: Apache-2.0
//
// Libraries that are written with the runtime.

#include "test/interop/storm/operations.h"

namespace storm {

Operations LibraryOperations() { return {}; }

}  // namespace storm

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What most sources of the core include: read once for all of them. See cuguest.h.

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "cuguest/c.h"
#include "cuguest/internal/scope.h"
#include "lib/core/driver_access.h"
#include "lib/guard/nesting.h"
#include "lib/guard/records.h"
#include "lib/stack/stack_repair.h"

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What nearly every source of the library includes: read once for all of them, it saves more
// than half of the time that they take to compile without optimisation. Each includes what it
// uses all the same, and test/headers/compile_test.py compiles them without this file.

#include <cuda.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/status.h"
#include "lib/core/driver_access.h"
#include "lib/status/error_status.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

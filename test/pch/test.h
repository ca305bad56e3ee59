// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What nearly every test includes: read once for all programs, it saves nearly half of the
// time that they take to compile. Each includes what it uses all the same.

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/primary_context.h"
#include "test/support/test.h"

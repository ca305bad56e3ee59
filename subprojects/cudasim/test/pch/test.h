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

#include "cudasim/sim.h"
#include "test/support/test.h"

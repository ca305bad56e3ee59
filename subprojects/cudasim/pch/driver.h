// SPDX-License-Identifier: Apache-2.0
//
// As cuguest.h beside it, for the simulated driver and runtime. Without <cuda.h>, of which
// exports.cc asks for more than the others.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the sources of the simulated driver and runtime include most: read once for all of them.
// Each includes what it uses all the same. Without <cuda.h>, of which exports.cc
// asks for more than the others.

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

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Amounts of memory whose highest value is told, too.

#ifndef CUDASIM_DRIVER_MEMORY_WATERMARK_H_
#define CUDASIM_DRIVER_MEMORY_WATERMARK_H_

#include <algorithm>
#include <cstddef>

namespace cudasim::driver {

struct Watermark {
  size_t current = 0;
  size_t high = 0;

  void Set(size_t value) {
    current = value;
    high = std::max(high, value);
  }
  // High is then what is current (measured of a pool's on an H200, driver 580.159.04).
  void Reset() { high = current; }
};

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_MEMORY_WATERMARK_H_

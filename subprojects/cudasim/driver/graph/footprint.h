// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What graphs have of a device's memory.

#ifndef CUDASIM_DRIVER_GRAPH_FOOTPRINT_H_
#define CUDASIM_DRIVER_GRAPH_FOOTPRINT_H_

#include <algorithm>
#include <cstddef>
#include <utility>

#include "driver/memory/watermark.h"

namespace cudasim::driver {

// Footprint
//
// Memory that is in use, and what was and is kept. An allocation of 256 bytes takes a block of 32
// MiB. Whatever frees it leaves it in use until what is kept is trimmed, and what was left is taken
// first (measured on an H100 and an H200, driver 580.159.04).
//
// Threads: one at a time.
class Footprint {
 public:
  void Take(size_t bytes) {
    const size_t found = std::min(Rounded(bytes), left_);
    left_ -= found;
    used_.Set(used_.current + Rounded(bytes) - found);
    reserved_.Set(std::max(used_.current, reserved_.current));
  }
  void Leave(size_t bytes) { left_ += Rounded(bytes); }
  void Trim() {
    used_.Set(used_.current - std::exchange(left_, 0));
    reserved_.Set(used_.current);
  }

  Watermark& used() { return used_; }
  Watermark& reserved() { return reserved_; }

 private:
  static size_t Rounded(size_t bytes) {
    constexpr size_t kBlock = size_t{32} << 20;
    return (bytes + kBlock - 1) / kBlock * kBlock;
  }

  Watermark used_;
  Watermark reserved_;
  size_t left_ = 0;  // of what is used
};

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_GRAPH_FOOTPRINT_H_

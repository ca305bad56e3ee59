// SPDX-License-Identifier: Apache-2.0
//
// What a launch asks for, in whichever form it was said.

#ifndef CUDASIM_DRIVER_LAUNCH_LAUNCH_CONFIG_H_
#define CUDASIM_DRIVER_LAUNCH_LAUNCH_CONFIG_H_

#include <cuda.h>

#include "driver/stream/stream.h"

namespace cudasim::driver {

struct Dimensions {
  unsigned x = 0;
  unsigned y = 0;
  unsigned z = 0;

  bool AllZero() const { return x == 0 && y == 0 && z == 0; }
  bool AnyZero() const { return x == 0 || y == 0 || z == 0; }
  unsigned long long Count() const { return 1ull * x * y * z; }
  bool Divides(const Dimensions& grid) const {
    return grid.x % x == 0 && grid.y % y == 0 && grid.z % z == 0;
  }
  friend bool operator==(const Dimensions& a, const Dimensions& b) {
    return a.x == b.x && a.y == b.y && a.z == b.z;
  }
  friend bool operator!=(const Dimensions& a, const Dimensions& b) { return !(a == b); }
};

struct LaunchConfig {
  Dimensions grid;
  Dimensions block;
  unsigned shared_bytes = 0;
  Dimensions cluster;            // all zeros: as the function says
  Dimensions preferred_cluster;  // the same: none
  bool is_cooperative = false;
  bool is_updatable = false;
  CUevent events[2] = {};  // recorded when it is done
};

// INVALID_VALUE and others for attributes that are bad in themselves; no capture is invalidated.
// What changes nothing here is only checked.
CUresult ReadLaunchConfig(const CUlaunchConfig& from, LaunchConfig* config);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_LAUNCH_LAUNCH_CONFIG_H_

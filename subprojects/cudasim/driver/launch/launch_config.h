// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a launch asks for, in whichever form it was said, and whether a function can be launched so.
// In the order in which a real driver looks, and what a bad answer does to a capture in the stream
// (measured on an H100, driver 580.159.04):
//
//   ReadLaunchConfig                    harmless
//   CheckBlocks                         the capture is invalidated
//   parameters (launch_parameters.h)    harmless
//   CheckResources                      the capture is invalidated; in a capture it comes before
//                                       the parameters
//   CheckRun                            not looked at in a capture

#ifndef CUDASIM_DRIVER_LAUNCH_LAUNCH_CONFIG_H_
#define CUDASIM_DRIVER_LAUNCH_LAUNCH_CONFIG_H_

#include <cuda.h>

#include "driver/code/module.h"
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

// INVALID_VALUE for a grid or block that the device or the function does not allow.
CUresult CheckBlocks(const Function& function, const LaunchConfig& config);

// INVALID_CLUSTER_SIZE; INVALID_VALUE for too much shared memory;
// COOPERATIVE_LAUNCH_TOO_LARGE.
CUresult CheckResources(const Function& function, const LaunchConfig& config,
                        unsigned multiprocessors);

// LAUNCH_OUT_OF_RESOURCES for more threads than there are registers for;
// INVALID_CLUSTER_SIZE where no cluster size was said, or one that no device has.
CUresult CheckRun(const Function& function, const LaunchConfig& config);

// INVALID_CLUSTER_SIZE for clusters that the grid or the function do not allow.
CUresult CheckCluster(const Function& function, const LaunchConfig& config);

// As the function requires it or the launch says.
Dimensions BlockOf(const Function& function, const LaunchConfig& config);

// As the function has it or the launch says; all zeros: none. INVALID_CLUSTER_SIZE.
CUresult FindCluster(const Function& function, const LaunchConfig& config, Dimensions* cluster);

// Whether that is none, and the function cannot be without.
bool LacksCluster(const Function& function, const Dimensions& cluster);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_LAUNCH_LAUNCH_CONFIG_H_

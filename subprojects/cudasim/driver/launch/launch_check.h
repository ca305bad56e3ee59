// SPDX-License-Identifier: Apache-2.0
//
// Whether a function can be launched as is asked. In the order in which a real driver
// looks, and what a bad answer does to a capture in the stream (measured on an H100, driver
// 580.159.04):
//
//   attributes in themselves (launch_config.h)  harmless
//   CheckBlocks                                 the capture is invalidated
//   parameters (launch_parameters.h)            harmless
//   CheckResources                              the capture is invalidated; in a capture it comes
//                                               before the parameters
//   CheckRun                                    not looked at in a capture

#ifndef CUDASIM_DRIVER_LAUNCH_LAUNCH_CHECK_H_
#define CUDASIM_DRIVER_LAUNCH_LAUNCH_CHECK_H_

#include <cuda.h>

#include "driver/code/module.h"
#include "driver/launch/launch_config.h"

namespace cudasim::driver {

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

#endif  // CUDASIM_DRIVER_LAUNCH_LAUNCH_CHECK_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The process as the driver sees it: before cuInit, in use, forked, at its end.

#ifndef CUDASIM_DRIVER_PROCESS_H_
#define CUDASIM_DRIVER_PROCESS_H_

#include <cuda.h>

#include "driver/entry.h"

namespace cudasim::driver {

// Process
//
// | phase    | entered by                        | an ordinary call gives    |
// |----------|-----------------------------------|---------------------------|
// | fresh    | load                              | NOT_INITIALIZED           |
// | ready    | the first cuInit(0) that succeeds | work                      |
// | forked   | fork() from ready, in the child   | NOT_INITIALIZED, for good |
// | ended    | exit(), by a handler that cuInit  | DEINITIALIZED, for good   |
// |          | registers; Sim::Deinitialize      |                           |
//
// A fork before cuInit is harmless: that handler is registered by cuInit, too.
//
// Threads: any.
class Process {
 public:
  // CUDA_SUCCESS, or why an entry with this floor cannot be served now.
  static CUresult Serves(Floor floor);

  static void End();
  // Nobody has called cuInit.
  static bool IsFresh();

  // Configuration, read by cuInit (devices of the machine) and cuGetProcAddress (version).
  static void SetDeviceCount(int count);
  static int DeviceCount();
  // What `device` is among the machine's, which CUDA_VISIBLE_DEVICES may hide and reorder. Needs
  // cuInit.
  static int IndexOf(CUdevice device);
  static void SetDriverVersion(int version);
  static int DriverVersion();
};

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_PROCESS_H_

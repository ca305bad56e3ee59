// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A launch's parameters, in one of the two forms in which they are passed.

#ifndef CUDASIM_DRIVER_LAUNCH_LAUNCH_PARAMETERS_H_
#define CUDASIM_DRIVER_LAUNCH_LAUNCH_PARAMETERS_H_

#include <cuda.h>

#include <cstddef>
#include <vector>

#include "driver/code/image/ptx.h"

namespace cudasim::driver {

class LaunchParameters {
 public:
  explicit LaunchParameters(const PtxEntry& entry) : entry_(entry) {}

  // INVALID_VALUE for what is missing, said twice or malformed. LAUNCH_OUT_OF_RESOURCES for
  // more bytes than there are parameters, which a capture takes for INVALID_VALUE, or, if
  // there are none at all, for nothing wrong.
  CUresult Take(void** each, void** extra, bool captures);

  // As the kernel reads them.
  std::vector<unsigned char> Packed() const;

 private:
  CUresult TakePacked(void** extra, bool captures);
  CUresult CheckSize(size_t size, bool captures) const;
  void PanicIfTooShort(size_t size) const;

  const PtxEntry& entry_;
  std::vector<void*> pointers_;
};

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_LAUNCH_LAUNCH_PARAMETERS_H_

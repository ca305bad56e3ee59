// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the headers of CUDA releases differ in, beside their entries.

#ifndef CUDASIM_DRIVER_RELEASE_H_
#define CUDASIM_DRIVER_RELEASE_H_

#include <cuda.h>

namespace cudasim::driver {

// The ends of enumerations in a release's <cuda.h>. A driver answers a larger value as one that
// it does not know.
struct Release {
  int version;
  int device_attributes;    // CU_DEVICE_ATTRIBUTE_MAX
  int function_attributes;  // CU_FUNC_ATTRIBUTE_MAX
  int limits;               // CU_LIMIT_MAX
  unsigned context_flags;   // CU_CTX_FLAGS_MASK
  int jit_options;          // CU_JIT_NUM_OPTIONS
};

// That of the driver's version.
const Release& ThisRelease();

// CUDA 13.0's: what is newer has values that are not modelled.
const Release& ModelledRelease();

// The version whose header first has it; 0 for what is older than 11.8.
int ReleaseOfError(CUresult code);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_RELEASE_H_

// SPDX-License-Identifier: Apache-2.0

#ifndef CUDASIM_CUFFT_TRANSFORM_H_
#define CUDASIM_CUFFT_TRANSFORM_H_

#include <cuda.h>

#include "cufft/layout.h"

namespace cudasim::cufft {

// The work of one call: an operation of library/kernel.h.
struct Transform {
  Layout layout;
  bool is_inverse;
  const void* input;
  void* output;
  const void* tables;  // the plan's, which must still be there
  const void* area;
  size_t area_bytes;

  CUresult Run() const;
};

}  // namespace cudasim::cufft

#endif  // CUDASIM_CUFFT_TRANSFORM_H_

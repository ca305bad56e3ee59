// SPDX-License-Identifier: Apache-2.0

#ifndef CUGUEST_LIB_SIM_CUFFT_TRANSFORM_H_
#define CUGUEST_LIB_SIM_CUFFT_TRANSFORM_H_

#include <cuda.h>

#include "lib/sim/cufft/layout.h"

namespace cuguest_sim_cufft {

// The work of one call: an operation of lib/sim/library/kernel.h.
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

}  // namespace cuguest_sim_cufft

#endif  // CUGUEST_LIB_SIM_CUFFT_TRANSFORM_H_

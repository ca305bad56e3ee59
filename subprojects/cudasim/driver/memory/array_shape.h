// SPDX-License-Identifier: Apache-2.0
//
// Which arrays there can be.

#ifndef CUGUEST_LIB_SIM_ARRAY_SHAPE_H_
#define CUGUEST_LIB_SIM_ARRAY_SHAPE_H_

#include <cuda.h>

namespace cuguest_sim {

// Whether a device of 9.0 has such an array. Panics for one that it has and this
// simulation has not: block-compressed and packed formats, sparse, deferred and video
// arrays.
bool IsArrayShape(const CUDA_ARRAY3D_DESCRIPTOR& shape);

// How many levels a mipmapped array can have.
unsigned MaxLevels(const CUDA_ARRAY3D_DESCRIPTOR& shape);

// The shape of a level; 0 is the whole.
CUDA_ARRAY3D_DESCRIPTOR ShapeOfLevel(const CUDA_ARRAY3D_DESCRIPTOR& shape, unsigned level);

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_ARRAY_SHAPE_H_

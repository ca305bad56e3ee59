// SPDX-License-Identifier: Apache-2.0
//
// Which arrays there can be.

#ifndef CUDASIM_DRIVER_MEMORY_ARRAY_SHAPE_H_
#define CUDASIM_DRIVER_MEMORY_ARRAY_SHAPE_H_

#include <cuda.h>

namespace cudasim::driver {

// Whether a device of 9.0 has such an array. Panics for one that it has and this
// simulation has not: block-compressed and packed formats, sparse, deferred and video
// arrays.
bool IsArrayShape(const CUDA_ARRAY3D_DESCRIPTOR& shape);

// How many levels a mipmapped array can have.
unsigned MaxLevels(const CUDA_ARRAY3D_DESCRIPTOR& shape);

// The shape of a level; 0 is the whole.
CUDA_ARRAY3D_DESCRIPTOR ShapeOfLevel(const CUDA_ARRAY3D_DESCRIPTOR& shape, unsigned level);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_MEMORY_ARRAY_SHAPE_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shapes of arrays, and what their elements are.                                       tier: 3

#ifndef CUGUEST_LIB_OBJECTS_MEMORY_ARRAY_SHAPE_H_
#define CUGUEST_LIB_OBJECTS_MEMORY_ARRAY_SHAPE_H_

#include <cuda.h>

#include <cstddef>
#include <string>

#include "cuguest/objects/array.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// 0 for formats other than plain numbers of one size per channel.
std::size_t ElementBytes(CUarray_format format, unsigned channels);

// "8 x 4 elements of 1 float, 128 bytes".
std::string ShapeText(const Array::Description& shape);

Array::Description ToDescription(CUarray array, const CUDA_ARRAY3D_DESCRIPTOR& shape);

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_OBJECTS_MEMORY_ARRAY_SHAPE_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CUDA arrays and mipmapped arrays. Their elements are host memory, row by row with
// nothing in between. They live in a context; which one cannot be asked.

#ifndef CUDASIM_DRIVER_MEMORY_ARRAY_H_
#define CUDASIM_DRIVER_MEMORY_ARRAY_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "driver/context/context.h"

namespace cudasim::driver {

// What one element is made of. `bytes` is 0 for a format that this simulation has not.
struct ElementFormat {
  unsigned channels = 0;
  size_t channel_bytes = 0;
  size_t bytes() const { return channels * channel_bytes; }
};
ElementFormat ElementFormatOf(CUarray_format format, unsigned channels);

struct Array {
  Incarnation incarnation;
  CUDA_ARRAY3D_DESCRIPTOR shape = {};
  std::shared_ptr<unsigned char> bytes;

  size_t RowBytes() const;
  size_t Rows() const { return shape.Height != 0 ? shape.Height : 1; }
  size_t Slices() const { return shape.Depth != 0 ? shape.Depth : 1; }
};

struct MipmappedArray {
  Incarnation incarnation;
  std::vector<CUarray> levels;  // arrays that live as long as this does
};

// The array, or a level of a mipmapped one. INVALID_HANDLE for null,
// CONTEXT_IS_DESTROYED once its context is gone. Panics for a destroyed array, for what
// never was one, and if its context is a primary that came back.
CUresult FindArray(CUarray handle, Array* array);
CUresult FindMipmappedArray(CUmipmappedArray handle, MipmappedArray* array);

// The same, for work with the elements: a gone context panics, too.
Array UseArray(CUarray handle);
MipmappedArray UseMipmappedArray(CUmipmappedArray handle);

// Whether it was not destroyed.
bool IsThere(CUarray handle);

// Panics if there is a mipmapped array.
void DropArraysOf(std::uint64_t context_id);

// Arrays and mipmapped arrays; levels are not counted.
size_t CountArrays();

// INVALID_VALUE unless a device of 9.0 has such an array; NOT_SUPPORTED, counted, for one that it
// has and this simulation has not.
CUresult CheckArrayShape(const CUDA_ARRAY3D_DESCRIPTOR& shape);

// How many levels a mipmapped array can have.
unsigned MaxLevels(const CUDA_ARRAY3D_DESCRIPTOR& shape);

// The shape of a level; 0 is the whole.
CUDA_ARRAY3D_DESCRIPTOR ShapeOfLevel(const CUDA_ARRAY3D_DESCRIPTOR& shape, unsigned level);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_MEMORY_ARRAY_H_

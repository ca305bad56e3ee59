// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that are linked into a test program with their symbols, as a runtime program has
// them. `extern "C"`, so that the simulation knows them by their plain names.

#include "test/runtime/kernels.h"

extern "C" __global__ void bridge_scale(float* values, unsigned count, float factor) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] *= factor;
}

extern "C" __global__ void bridge_sample(cudaTextureObject_t texture, float* texels, unsigned width,
                                         unsigned height) {
  const unsigned x = threadIdx.x;
  const unsigned y = threadIdx.y;
  if (x < width && y < height) texels[y * width + x] = tex2D<float>(texture, x, y);
}

extern "C" __global__ void bridge_paint(cudaSurfaceObject_t surface, unsigned width,
                                        unsigned height) {
  const unsigned x = threadIdx.x;
  const unsigned y = threadIdx.y;
  if (x < width && y < height) surf2Dwrite<float>(100.0F * y + x, surface, x * sizeof(float), y);
}

const void* ScaleSymbol() { return reinterpret_cast<const void*>(&bridge_scale); }
const void* SampleSymbol() { return reinterpret_cast<const void*>(&bridge_sample); }
const void* PaintSymbol() { return reinterpret_cast<const void*>(&bridge_paint); }

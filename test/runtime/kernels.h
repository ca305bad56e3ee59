// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The symbols of kernels.cu: what `&kernel` is in the code of a runtime program.

#ifndef CUGUEST_TEST_RUNTIME_KERNELS_H_
#define CUGUEST_TEST_RUNTIME_KERNELS_H_

// bridge_scale(float* values, unsigned count, float factor): values *= factor
const void* ScaleSymbol();
// bridge_sample(cudaTextureObject_t texture, float* texels, unsigned width, unsigned height):
// texels = texture, in one block of width x height
const void* SampleSymbol();
// bridge_paint(cudaSurfaceObject_t surface, unsigned width, unsigned height):
// surface = 100 y + x, in one block of width x height
const void* PaintSymbol();

#endif  // CUGUEST_TEST_RUNTIME_KERNELS_H_

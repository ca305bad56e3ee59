// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a kernel does with texture and surface objects.

// texels[i] = what `texture` has at at[i]; a channel that it has not is 0.
extern "C" __global__ void sample(cudaTextureObject_t texture, unsigned n, const float2* at,
                                  float4* texels) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) texels[i] = tex2D<float4>(texture, at[i].x, at[i].y);
}

// Writes first, first + 1, ... through `surface`, row by row, one thread each. The grid
// may be larger than the surface.
extern "C" __global__ void paint(cudaSurfaceObject_t surface, unsigned width, unsigned height,
                                 float first) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
  const float value = first + static_cast<float>(y * width + x);
  if (x < width && y < height) surf2Dwrite(value, surface, x * sizeof(float), y);
}

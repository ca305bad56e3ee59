// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texture and surface objects, and what a kernel does with them.
//
// Note [An object is a number in its context]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Textures and surfaces of one context share the numbers 1, 2, 3, ...; a new one gets
// the lowest that is free. Nothing says whose a number is, so with another context
// current, and in its kernels, it names the other context's object of that number:
// destroying a texture of A with B current succeeds and destroys B's, if there is one
// (measured on an H200, driver 580.159.04).

#ifndef CUDASIM_DRIVER_MEMORY_TEXTURE_H_
#define CUDASIM_DRIVER_MEMORY_TEXTURE_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "driver/context/context.h"

namespace cudasim::driver {

struct Texture {
  bool is_surface = false;
  CUDA_RESOURCE_DESC resource = {};
  CUDA_TEXTURE_DESC sampling = {};
  bool has_view = false;
  CUDA_RESOURCE_VIEW_DESC view = {};
};

// False if the context has no such object.
bool FindTexture(const Incarnation& incarnation, CUtexObject object, Texture* texture);

void DropTexturesOf(std::uint64_t context_id);

// Textures and surfaces.
size_t CountTextures();

// See Sim in cudasim/sim.h.
CUresult ReadTexture(CUtexObject object, float x, float y, float texel[4]);
CUresult ReadSurface(CUsurfObject object, size_t x, size_t y, void* data, size_t bytes);
CUresult WriteSurface(CUsurfObject object, size_t x, size_t y, const void* data, size_t bytes);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_MEMORY_TEXTURE_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 4
/// \file
/// Texture and surface objects, by the handle that the other API has.
///
///   cuTexObjectCreate(&texture, &resource, &description, nullptr);
///   sample<<<grid, block>>>(runtime::TextureToRuntime(texture), out);

#ifndef CUGUEST_RUNTIME_TEXTURE_H_
#define CUGUEST_RUNTIME_TEXTURE_H_

#include <cuda.h>

#include <type_traits>

#include "cuguest/runtime/binding.h"

CUGUEST_BEGIN_RUNTIME_NAMESPACE

/// The functions below have the noun in their names, because to the compiler a texture object, a
/// surface object and a CUdeviceptr are the same 64-bit number. 0, which is no object, stays 0.
/// Stack, count, last error: not touched. Nothing is called or checked. Threads: any. Cost: none.
/// Source:  <texture_types.h>, <surface_types.h>.
static_assert(std::is_same_v<cudaTextureObject_t, CUtexObject>);
static_assert(std::is_same_v<cudaSurfaceObject_t, CUsurfObject>);

[[nodiscard]] constexpr CUtexObject TextureToDriver(cudaTextureObject_t texture) noexcept {
  return texture;
}
[[nodiscard]] constexpr cudaTextureObject_t TextureToRuntime(CUtexObject texture) noexcept {
  return texture;
}
[[nodiscard]] constexpr CUsurfObject SurfaceToDriver(cudaSurfaceObject_t surface) noexcept {
  return surface;
}
[[nodiscard]] constexpr cudaSurfaceObject_t SurfaceToRuntime(CUsurfObject surface) noexcept {
  return surface;
}

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_RUNTIME_TEXTURE_H_

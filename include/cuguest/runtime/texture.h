// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// runtime/texture.h                                                     tier: 4
// -----------------------------------------------------------------------------
/// \file
/// Texture and surface objects.
///
///   cuTexObjectCreate(&texture, &resource, &description, nullptr);
///   sample<<<grid, block>>>(runtime::TextureToRuntime(texture), out);
///
/// Note [Texture and surface references]
/// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
/// The programming guide's tables also list texture *references* (CUtexref,
/// `texture<...>`) and surface references (CUsurfref, `surface<...>`). The toolkit removed
/// them with CUDA 12 (CUDA 12.0 release notes): the runtime has no functions for them and
/// nvcc no syntax; what <cuda.h> still declares of them, marked deprecated, has nothing to be
/// converted to. What replaces them is here: an object that is passed to the kernel as a
/// parameter, made over an array, a mipmapped array or linear memory by cudaCreateTextureObject
/// or cuTexObjectCreate.
///
/// Note [Whose a texture object is]
/// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
/// It lives in the context that was current when it was made, until it is destroyed (by either API,
/// once) or that context ends, and it does not keep its array or memory alive: destroy the object
/// first. No conversion transfers ownership.
///
/// The number means something in that context only. Each context counts from 1 again, textures
/// and surfaces together: with another context current the same number may be another object,
/// which a kernel then reads, and a destroy destroys. So use it, launch with it and destroy it
/// inside a ContextGuard of its context.
/// Source: cudasim/test/texture_facts_test.cc.

#ifndef CUGUEST_RUNTIME_TEXTURE_H_
#define CUGUEST_RUNTIME_TEXTURE_H_

#include <cuda.h>

#include <type_traits>

#include "cuguest/runtime/binding.h"

CUGUEST_BEGIN_RUNTIME_NAMESPACE

/// The functions below
///
/// To the compiler a texture object, a surface object and a CUdeviceptr are all the same
/// 64-bit number; so these carry the noun in their names.
///
/// Stack, count, last error: not touched. Nothing is called, and nothing is checked: 0, which
/// is no object, stays 0.
/// Threads: any. Cost: none.
/// Source:  <texture_types.h>, <surface_types.h>; test/runtime/texture_test.cc samples through
///          objects of each API what the other's copies have filled.
static_assert(std::is_same_v<cudaTextureObject_t, CUtexObject>);
static_assert(std::is_same_v<cudaSurfaceObject_t, CUsurfObject>);

[[nodiscard]] CUGUEST_HIDE constexpr CUtexObject TextureToDriver(
    cudaTextureObject_t texture) noexcept {
  return texture;
}
[[nodiscard]] CUGUEST_HIDE constexpr cudaTextureObject_t TextureToRuntime(
    CUtexObject texture) noexcept {
  return texture;
}
[[nodiscard]] CUGUEST_HIDE constexpr CUsurfObject SurfaceToDriver(
    cudaSurfaceObject_t surface) noexcept {
  return surface;
}
[[nodiscard]] CUGUEST_HIDE constexpr cudaSurfaceObject_t SurfaceToRuntime(
    CUsurfObject surface) noexcept {
  return surface;
}

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_RUNTIME_TEXTURE_H_

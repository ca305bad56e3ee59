// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texture and surface objects: the driver's, described in other words. Enumerations that
// are converted by a cast have the driver's numbers.

#include <cuda.h>

#include <algorithm>
#include <iterator>

#include "runtime/api.h"
#include "runtime/arguments.h"
#include "runtime/array.h"
#include "runtime/context.h"
#include "runtime/driver.h"

namespace cudasim::runtime {
namespace {

using cudasim::runtime::ToDriver;
using cudasim::runtime::ToRuntime;

cudaError_t ToDriver(const cudaResourceDesc& resource, CUDA_RESOURCE_DESC* result) {
  *result = {};
  result->resType = static_cast<CUresourcetype>(resource.resType);
  result->flags = resource.flags;
  ElementFormat element;
  cudaError_t code = cudaSuccess;
  switch (resource.resType) {
    case cudaResourceTypeArray:
      result->res.array.hArray = ToDriver(resource.res.array.array);
      return cudaSuccess;
    case cudaResourceTypeMipmappedArray:
      result->res.mipmap.hMipmappedArray = ToDriver(resource.res.mipmap.mipmap);
      return cudaSuccess;
    case cudaResourceTypeLinear:
      code = ToDriver(resource.res.linear.desc, &element);
      result->res.linear = {ToAddress(resource.res.linear.devPtr), element.format, element.channels,
                            resource.res.linear.sizeInBytes};
      return code;
    case cudaResourceTypePitch2D:
      code = ToDriver(resource.res.pitch2D.desc, &element);
      result->res.pitch2D = {ToAddress(resource.res.pitch2D.devPtr),
                             element.format,
                             element.channels,
                             resource.res.pitch2D.width,
                             resource.res.pitch2D.height,
                             resource.res.pitch2D.pitchInBytes};
      return code;
  }
  return cudaErrorInvalidValue;
}

cudaResourceDesc ToRuntime(const CUDA_RESOURCE_DESC& resource) {
  cudaResourceDesc result = {};
  result.resType = static_cast<cudaResourceType>(resource.resType);
  result.flags = resource.flags;
  const auto& linear = resource.res.linear;
  const auto& pitch = resource.res.pitch2D;
  switch (result.resType) {
    case cudaResourceTypeArray:
      result.res.array.array = ToRuntime(resource.res.array.hArray);
      break;
    case cudaResourceTypeMipmappedArray:
      result.res.mipmap.mipmap = ToRuntime(resource.res.mipmap.hMipmappedArray);
      break;
    case cudaResourceTypeLinear:
      result.res.linear = {ToPointer(linear.devPtr),
                           ToRuntime(ElementFormat{linear.format, linear.numChannels}),
                           linear.sizeInBytes};
      break;
    case cudaResourceTypePitch2D:
      result.res.pitch2D = {ToPointer(pitch.devPtr),
                            ToRuntime(ElementFormat{pitch.format, pitch.numChannels}), pitch.width,
                            pitch.height, pitch.pitchInBytes};
      break;
  }
  return result;
}

struct TextureFlag {
  unsigned flag;
  int cudaTextureDesc::*member;
};
constexpr TextureFlag kTextureFlags[] = {
    {CU_TRSF_NORMALIZED_COORDINATES, &cudaTextureDesc::normalizedCoords},
    {CU_TRSF_SRGB, &cudaTextureDesc::sRGB},
    {CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION, &cudaTextureDesc::disableTrilinearOptimization},
    {CU_TRSF_SEAMLESS_CUBEMAP, &cudaTextureDesc::seamlessCubemap},
};

CUDA_TEXTURE_DESC ToDriver(const cudaTextureDesc& texture) {
  CUDA_TEXTURE_DESC result = {};
  for (int i = 0; i < 3; ++i) {
    result.addressMode[i] = static_cast<CUaddress_mode>(texture.addressMode[i]);
  }
  result.filterMode = static_cast<CUfilter_mode>(texture.filterMode);
  if (texture.readMode == cudaReadModeElementType) result.flags |= CU_TRSF_READ_AS_INTEGER;
  for (const TextureFlag& row : kTextureFlags) {
    if (texture.*row.member != 0) result.flags |= row.flag;
  }
  result.maxAnisotropy = texture.maxAnisotropy;
  result.mipmapFilterMode = static_cast<CUfilter_mode>(texture.mipmapFilterMode);
  result.mipmapLevelBias = texture.mipmapLevelBias;
  result.minMipmapLevelClamp = texture.minMipmapLevelClamp;
  result.maxMipmapLevelClamp = texture.maxMipmapLevelClamp;
  std::copy(std::begin(texture.borderColor), std::end(texture.borderColor), result.borderColor);
  return result;
}

cudaTextureDesc ToRuntime(const CUDA_TEXTURE_DESC& texture) {
  cudaTextureDesc result = {};
  for (int i = 0; i < 3; ++i) {
    result.addressMode[i] = static_cast<cudaTextureAddressMode>(texture.addressMode[i]);
  }
  result.filterMode = static_cast<cudaTextureFilterMode>(texture.filterMode);
  const bool reads_elements = (texture.flags & CU_TRSF_READ_AS_INTEGER) != 0;
  result.readMode = reads_elements ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
  for (const TextureFlag& row : kTextureFlags) {
    result.*row.member = (texture.flags & row.flag) != 0 ? 1 : 0;
  }
  result.maxAnisotropy = texture.maxAnisotropy;
  result.mipmapFilterMode = static_cast<cudaTextureFilterMode>(texture.mipmapFilterMode);
  result.mipmapLevelBias = texture.mipmapLevelBias;
  result.minMipmapLevelClamp = texture.minMipmapLevelClamp;
  result.maxMipmapLevelClamp = texture.maxMipmapLevelClamp;
  std::copy(std::begin(texture.borderColor), std::end(texture.borderColor), result.borderColor);
  return result;
}

CUDA_RESOURCE_VIEW_DESC ToDriver(const cudaResourceViewDesc& view) {
  CUDA_RESOURCE_VIEW_DESC result = {};
  result.format = static_cast<CUresourceViewFormat>(view.format);
  result.width = view.width;
  result.height = view.height;
  result.depth = view.depth;
  result.firstMipmapLevel = view.firstMipmapLevel;
  result.lastMipmapLevel = view.lastMipmapLevel;
  result.firstLayer = view.firstLayer;
  result.lastLayer = view.lastLayer;
  return result;
}

cudaResourceViewDesc ToRuntime(const CUDA_RESOURCE_VIEW_DESC& view) {
  cudaResourceViewDesc result = {};
  result.format = static_cast<cudaResourceViewFormat>(view.format);
  result.width = view.width;
  result.height = view.height;
  result.depth = view.depth;
  result.firstMipmapLevel = view.firstMipmapLevel;
  result.lastMipmapLevel = view.lastMipmapLevel;
  result.firstLayer = view.firstLayer;
  result.lastLayer = view.lastLayer;
  return result;
}

// Only narrow integers are fractions of something.
bool CanBeNormalized(const cudaResourceDesc& resource) {
  cudaChannelFormatDesc channel = {};
  switch (resource.resType) {
    case cudaResourceTypeArray:
      if (GetChannelDesc(&channel, resource.res.array.array) != cudaSuccess) return true;
      break;
    case cudaResourceTypeLinear:
      channel = resource.res.linear.desc;
      break;
    case cudaResourceTypePitch2D:
      channel = resource.res.pitch2D.desc;
      break;
    default:
      return true;
  }
  return channel.x < 32 && channel.f != cudaChannelFormatKindFloat;
}

}  // namespace

cudaError_t CreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                const cudaTextureDesc* texture, const cudaResourceViewDesc* view) {
  if (object == nullptr || resource == nullptr) return cudaErrorInvalidValue;
  cudaError_t code = BindContext();
  if (code != cudaSuccess) return code;
  if (texture == nullptr) return cudaErrorInvalidResourceHandle;
  CUDA_RESOURCE_DESC wanted;
  code = ToDriver(*resource, &wanted);
  if (code != cudaSuccess) return code;
  const bool normalizes = texture->readMode == cudaReadModeNormalizedFloat;
  if (normalizes && !CanBeNormalized(*resource)) return cudaErrorInvalidNormSetting;
  const CUDA_TEXTURE_DESC sampled = ToDriver(*texture);
  const CUDA_RESOURCE_VIEW_DESC seen =
      view != nullptr ? ToDriver(*view) : CUDA_RESOURCE_VIEW_DESC{};
  return ToError(
      Driver().cuTexObjectCreate(object, &wanted, &sampled, view != nullptr ? &seen : nullptr));
}

cudaError_t DestroyTextureObject(cudaTextureObject_t object) {
  return object == 0 ? cudaSuccess : ToError(Driver().cuTexObjectDestroy(object));
}

cudaError_t GetTextureObjectResourceDesc(cudaResourceDesc* resource, cudaTextureObject_t object) {
  if (resource == nullptr) return cudaErrorInvalidValue;
  CUDA_RESOURCE_DESC found = {};
  const CUresult code = Driver().cuTexObjectGetResourceDesc(&found, object);
  if (code == CUDA_SUCCESS) *resource = ToRuntime(found);
  return ToError(code);
}

cudaError_t GetTextureObjectTextureDesc(cudaTextureDesc* texture, cudaTextureObject_t object) {
  if (texture == nullptr) return cudaErrorInvalidValue;
  CUDA_TEXTURE_DESC found = {};
  const CUresult code = Driver().cuTexObjectGetTextureDesc(&found, object);
  if (code == CUDA_SUCCESS) *texture = ToRuntime(found);
  return ToError(code);
}

cudaError_t GetTextureObjectResourceViewDesc(cudaResourceViewDesc* view,
                                             cudaTextureObject_t object) {
  if (view == nullptr) return cudaErrorInvalidValue;
  CUDA_RESOURCE_VIEW_DESC found = {};
  const CUresult code = Driver().cuTexObjectGetResourceViewDesc(&found, object);
  if (code == CUDA_SUCCESS) *view = ToRuntime(found);
  return ToError(code);
}

cudaError_t CreateSurfaceObject(cudaSurfaceObject_t* object, const cudaResourceDesc* resource) {
  if (object == nullptr || resource == nullptr) return cudaErrorInvalidValue;
  cudaError_t code = BindContext();
  if (code != cudaSuccess) return code;
  CUDA_RESOURCE_DESC wanted;
  code = ToDriver(*resource, &wanted);
  return code != cudaSuccess ? code : ToError(Driver().cuSurfObjectCreate(object, &wanted));
}

cudaError_t DestroySurfaceObject(cudaSurfaceObject_t object) {
  return object == 0 ? cudaSuccess : ToError(Driver().cuSurfObjectDestroy(object));
}

cudaError_t GetSurfaceObjectResourceDesc(cudaResourceDesc* resource, cudaSurfaceObject_t object) {
  if (resource == nullptr) return cudaErrorInvalidValue;
  CUDA_RESOURCE_DESC found = {};
  const CUresult code = Driver().cuSurfObjectGetResourceDesc(&found, object);
  if (code == CUDA_SUCCESS) *resource = ToRuntime(found);
  return ToError(code);
}

}  // namespace cudasim::runtime

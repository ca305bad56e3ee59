// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/memory/texture.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>

#include "driver/api.h"
#include "driver/context/stack.h"
#include "driver/memory/array.h"
#include "driver/panic.h"

namespace cudasim::driver {
namespace {

constexpr size_t kBaseAlignment = 512;         // the attribute TEXTURE_ALIGNMENT
constexpr size_t kTexturePitchAlignment = 32;  // and TEXTURE_PITCH_ALIGNMENT

using Textures = std::map<CUtexObject, Texture>;

struct TextureTable {
  std::mutex mutex;
  std::map<std::uint64_t, Textures> by_incarnation;
};

TextureTable& TheTextures() {
  static auto& table = *new TextureTable;
  return table;
}

CUtexObject LowestFree(const Textures& textures) {
  CUtexObject number = 1;
  for (const auto& entry : textures) {
    if (entry.first != number) break;
    ++number;
  }
  return number;
}

CUresult Add(const Incarnation& incarnation, const Texture& texture, CUtexObject* object) {
  TextureTable& table = TheTextures();
  const std::lock_guard<std::mutex> lock(table.mutex);
  if (!incarnation.IsAlive()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  Textures& textures = table.by_incarnation[incarnation.id];
  *object = LowestFree(textures);
  textures.emplace(*object, texture);
  return CUDA_SUCCESS;
}

// A number that names nothing, or an object of the other kind, is no error.
CUresult Destroy(CUtexObject object, bool is_surface) {
  Incarnation incarnation;
  const CUresult code = CurrentAlive(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  TextureTable& table = TheTextures();
  const std::lock_guard<std::mutex> lock(table.mutex);
  Textures& textures = table.by_incarnation[incarnation.id];
  const auto found = textures.find(object);
  if (found != textures.end() && found->second.is_surface == is_surface) textures.erase(found);
  return CUDA_SUCCESS;
}

// What a getter looks at.
CUresult FindAsked(const void* out, CUtexObject object, bool is_surface, Texture* texture) {
  Incarnation incarnation;
  const CUresult code = CurrentAlive(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  const bool found = FindTexture(incarnation, object, texture) && texture->is_surface == is_surface;
  return found && out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Once the array is destroyed nothing is written; a real driver may write a null array.
CUresult GetResource(CUDA_RESOURCE_DESC* resource, CUtexObject object, bool is_surface) {
  Texture texture;
  const CUresult code = FindAsked(resource, object, is_surface, &texture);
  if (code != CUDA_SUCCESS) return code;
  const bool has_array = texture.resource.resType == CU_RESOURCE_TYPE_ARRAY;
  if (!has_array || IsThere(texture.resource.res.array.hArray)) *resource = texture.resource;
  return CUDA_SUCCESS;
}

// An array must be of the context itself; of memory and mipmapped arrays that is not
// asked.
CUresult CheckArray(CUarray handle, const Incarnation& incarnation) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool own = UseArray(handle).incarnation.id == incarnation.id;
  return own ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

// The memory need not be there, nor be large enough.
bool IsMemory(CUdeviceptr address, CUarray_format format, unsigned channels) {
  return address != 0 && address % kBaseAlignment == 0 &&
         ElementFormatOf(format, channels).bytes() != 0;
}

CUresult CheckResource(const CUDA_RESOURCE_DESC& resource, const Incarnation& incarnation) {
  if (resource.flags != 0) return CUDA_ERROR_INVALID_VALUE;
  bool valid = false;
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      return CheckArray(resource.res.array.hArray, incarnation);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: {
      const CUmipmappedArray array = resource.res.mipmap.hMipmappedArray;
      valid = array != nullptr && !UseMipmappedArray(array).levels.empty();
      break;
    }
    case CU_RESOURCE_TYPE_LINEAR: {
      const auto& linear = resource.res.linear;
      valid = IsMemory(linear.devPtr, linear.format, linear.numChannels);
      break;
    }
    case CU_RESOURCE_TYPE_PITCH2D: {
      const auto& plane = resource.res.pitch2D;
      valid = IsMemory(plane.devPtr, plane.format, plane.numChannels) &&
              plane.pitchInBytes % kTexturePitchAlignment == 0;
      break;
    }
  }
  return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// How many coordinates have an address mode that is looked at.
int Dimensions(const CUDA_RESOURCE_DESC& resource) {
  if (resource.resType == CU_RESOURCE_TYPE_LINEAR) return 1;
  if (resource.resType != CU_RESOURCE_TYPE_ARRAY) return 2;
  const CUDA_ARRAY3D_DESCRIPTOR shape = UseArray(resource.res.array.hArray).shape;
  const bool layered = (shape.Flags & CUDA_ARRAY3D_LAYERED) != 0;
  if (shape.Height == 0) return 1;
  return shape.Depth == 0 || layered ? 2 : 3;
}

bool IsCubemap(const CUDA_RESOURCE_DESC& resource) {
  return resource.resType == CU_RESOURCE_TYPE_ARRAY &&
         (UseArray(resource.res.array.hArray).shape.Flags & CUDA_ARRAY3D_CUBEMAP) != 0;
}

bool IsFilter(CUfilter_mode mode) {
  return mode == CU_TR_FILTER_MODE_POINT || mode == CU_TR_FILTER_MODE_LINEAR;
}

// The filter need not fit the format, nor the address mode the coordinates.
bool IsSampling(const CUDA_TEXTURE_DESC& sampling, const CUDA_RESOURCE_DESC& resource) {
  constexpr unsigned kFlags = 0x3f;  // with two that are not documented
  const unsigned flags = kFlags | (IsCubemap(resource) ? CU_TRSF_SEAMLESS_CUBEMAP : 0);
  const auto* modes = sampling.addressMode;
  return (sampling.flags & ~flags) == 0 && IsFilter(sampling.filterMode) &&
         IsFilter(sampling.mipmapFilterMode) &&
         std::all_of(modes, modes + Dimensions(resource),
                     [](CUaddress_mode mode) { return mode <= CU_TR_ADDRESS_MODE_BORDER; }) &&
         std::all_of(std::begin(sampling.reserved), std::end(sampling.reserved),
                     [](int field) { return field == 0; });
}

size_t BytesOfView(CUresourceViewFormat format) {
  if (format >= CU_RES_VIEW_FORMAT_UINT_1X8 && format <= CU_RES_VIEW_FORMAT_SINT_4X8) {
    return size_t{1} << ((format - CU_RES_VIEW_FORMAT_UINT_1X8) % 3);
  }
  if (format >= CU_RES_VIEW_FORMAT_UINT_1X16 && format <= CU_RES_VIEW_FORMAT_SINT_4X16) {
    return size_t{2} << ((format - CU_RES_VIEW_FORMAT_UINT_1X16) % 3);
  }
  if (format >= CU_RES_VIEW_FORMAT_UINT_1X32 && format <= CU_RES_VIEW_FORMAT_SINT_4X32) {
    return size_t{4} << ((format - CU_RES_VIEW_FORMAT_UINT_1X32) % 3);
  }
  if (format >= CU_RES_VIEW_FORMAT_FLOAT_1X16 && format <= CU_RES_VIEW_FORMAT_FLOAT_4X16) {
    return size_t{2} << (format - CU_RES_VIEW_FORMAT_FLOAT_1X16);
  }
  if (format >= CU_RES_VIEW_FORMAT_FLOAT_1X32 && format <= CU_RES_VIEW_FORMAT_FLOAT_4X32) {
    return size_t{4} << (format - CU_RES_VIEW_FORMAT_FLOAT_1X32);
  }
  return 0;
}

// Of a plain array: other channels of the same size together, and the same extent. A
// view of anything else is not looked at.
bool IsView(const CUDA_RESOURCE_VIEW_DESC& view, const CUDA_RESOURCE_DESC& resource) {
  if (resource.resType != CU_RESOURCE_TYPE_ARRAY) return true;
  const CUDA_ARRAY3D_DESCRIPTOR shape = UseArray(resource.res.array.hArray).shape;
  return BytesOfView(view.format) == ElementFormatOf(shape.Format, shape.NumChannels).bytes() &&
         view.width == shape.Width && view.height == shape.Height && view.depth == shape.Depth &&
         view.firstLayer <= view.lastLayer;
}

}  // namespace

bool FindTexture(const Incarnation& incarnation, CUtexObject object, Texture* texture) {
  TextureTable& table = TheTextures();
  const std::lock_guard<std::mutex> lock(table.mutex);
  const auto textures = table.by_incarnation.find(incarnation.id);
  if (textures == table.by_incarnation.end()) return false;
  const auto found = textures->second.find(object);
  if (found == textures->second.end()) return false;
  *texture = found->second;
  return true;
}

void DropTexturesOf(std::uint64_t context_id) {
  TextureTable& table = TheTextures();
  const std::lock_guard<std::mutex> lock(table.mutex);
  table.by_incarnation.erase(context_id);
}

size_t CountTextures() {
  TextureTable& table = TheTextures();
  const std::lock_guard<std::mutex> lock(table.mutex);
  size_t count = 0;
  for (const auto& entry : table.by_incarnation) count += entry.second.size();
  return count;
}

CUresult TexObjectCreate(CUtexObject* object, const CUDA_RESOURCE_DESC* resource,
                         const CUDA_TEXTURE_DESC* sampling, const CUDA_RESOURCE_VIEW_DESC* view) {
  Incarnation incarnation;
  CUresult code = CurrentReady(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  if (object == nullptr || resource == nullptr || sampling == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  code = CheckResource(*resource, incarnation);
  if (code != CUDA_SUCCESS) return code;
  Texture texture;
  texture.resource = *resource;
  texture.sampling = *sampling;
  texture.has_view = view != nullptr;
  if (texture.has_view) texture.view = *view;
  const bool valid =
      IsSampling(*sampling, *resource) && (!texture.has_view || IsView(*view, *resource));
  return valid ? Add(incarnation, texture, object) : CUDA_ERROR_INVALID_VALUE;
}

CUresult TexObjectDestroy(CUtexObject object) { return Destroy(object, /*is_surface=*/false); }

CUresult TexObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUtexObject object) {
  return GetResource(resource, object, /*is_surface=*/false);
}

// The border color is not written (measured on an H200, driver 580.159.04).
CUresult TexObjectGetTextureDesc(CUDA_TEXTURE_DESC* sampling, CUtexObject object) {
  Texture texture;
  const CUresult code = FindAsked(sampling, object, /*is_surface=*/false, &texture);
  if (code != CUDA_SUCCESS) return code;
  std::copy(std::begin(sampling->borderColor), std::end(sampling->borderColor),
            texture.sampling.borderColor);
  *sampling = texture.sampling;
  return CUDA_SUCCESS;
}

// Nothing is written if there is none.
CUresult TexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* view, CUtexObject object) {
  Texture texture;
  const CUresult code = FindAsked(view, object, /*is_surface=*/false, &texture);
  if (code == CUDA_SUCCESS && texture.has_view) *view = texture.view;
  return code;
}

// Also of an array without CUDA_ARRAY3D_SURFACE_LDST.
CUresult SurfObjectCreate(CUsurfObject* object, const CUDA_RESOURCE_DESC* resource) {
  Incarnation incarnation;
  CUresult code = CurrentReady(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  const bool valid = resource != nullptr && resource->resType == CU_RESOURCE_TYPE_ARRAY;
  if (!valid) return CUDA_ERROR_INVALID_VALUE;
  code = CheckResource(*resource, incarnation);
  if (code != CUDA_SUCCESS) return code;
  if (object == nullptr) PanicNull();
  Texture surface;
  surface.is_surface = true;
  surface.resource = *resource;
  return Add(incarnation, surface, object);
}

CUresult SurfObjectDestroy(CUsurfObject object) { return Destroy(object, /*is_surface=*/true); }

CUresult SurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUsurfObject object) {
  return GetResource(resource, object, /*is_surface=*/true);
}

}  // namespace cudasim::driver

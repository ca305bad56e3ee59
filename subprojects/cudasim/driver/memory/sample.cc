// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a kernel reads through a texture, one texel at a time, and does through a surface.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>

#include "driver/context/device.h"
#include "driver/context/stack.h"
#include "driver/launch/launch.h"
#include "driver/memory/array.h"
#include "driver/memory/memory.h"
#include "driver/memory/texture.h"
#include "driver/not_modelled.h"
#include "driver/panic.h"

namespace cudasim::driver {
namespace {

// A kernel's context, or outside one the current one.
Incarnation IncarnationToLookIn() {
  if (ThisKernel() != nullptr) return ThisKernel()->incarnation;
  Incarnation incarnation;
  if (CurrentAlive(&incarnation) == CUDA_SUCCESS) return incarnation;
  Panic("a texture or surface was used outside a kernel and with no living context current");
}

Texture FindOrPanic(CUtexObject object, bool is_surface) {
  Texture texture;
  if (!FindTexture(IncarnationToLookIn(), object, &texture) || texture.is_surface != is_surface) {
    Panic(
        "a kernel used the %s %llu, which its context does not have; a real one reads whatever "
        "has that number there (measured on an H200, driver 580.159.04)",
        is_surface ? "surface" : "texture", object);
  }
  return texture;
}

// Rows of texels.
struct Plane {
  const unsigned char* first = nullptr;
  long width = 0;
  long height = 0;
  size_t pitch = 0;
  CUarray_format format = CU_AD_FORMAT_FLOAT;
  ElementFormat element;
  std::shared_ptr<unsigned char> array;  // kept while it is read
};

Plane PlaneOfArray(CUarray handle) {
  if (!IsThere(handle)) {
    Panic(
        "a kernel used a texture or surface whose array was destroyed; a real one reads whatever "
        "is there now");
  }
  const Array array = UseArray(handle);
  Plane plane;
  plane.first = array.bytes.get();
  plane.width = static_cast<long>(array.shape.Width);
  plane.height = static_cast<long>(array.Rows());
  plane.pitch = array.RowBytes();
  plane.format = array.shape.Format;
  plane.element = ElementFormatOf(array.shape.Format, array.shape.NumChannels);
  plane.array = array.bytes;
  return plane;
}

void PanicUnlessReadable(CUdeviceptr address, size_t bytes) {
  if (bytes == 0 || Memory::Reaches(address, bytes, Memory::kRead)) return;
  Panic("a kernel read a texture of memory that is not there");
}

Plane PlaneOfMemory(CUdeviceptr address, CUarray_format format, unsigned channels, size_t width,
                    size_t height, size_t pitch) {
  Plane plane;
  plane.first = static_cast<const unsigned char*>(ToPointer(address));
  plane.width = static_cast<long>(width);
  plane.height = static_cast<long>(height);
  plane.pitch = pitch;
  plane.format = format;
  plane.element = ElementFormatOf(format, channels);
  if (width != 0 && height != 0) {
    PanicUnlessReadable(address, (height - 1) * pitch + width * plane.element.bytes());
  }
  return plane;
}

Plane PlaneOf(const Texture& texture) {
  const auto& resource = texture.resource.res;
  switch (texture.resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      return PlaneOfArray(resource.array.hArray);
    case CU_RESOURCE_TYPE_LINEAR: {
      const auto& linear = resource.linear;
      const size_t element = ElementFormatOf(linear.format, linear.numChannels).bytes();
      return PlaneOfMemory(linear.devPtr, linear.format, linear.numChannels,
                           linear.sizeInBytes / element, 1, linear.sizeInBytes);
    }
    default:
      break;
  }
  const auto& pitched = resource.pitch2D;
  return PlaneOfMemory(pitched.devPtr, pitched.format, pitched.numChannels, pitched.width,
                       pitched.height, pitched.pitchInBytes);
}

template <typename T>
T Load(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

bool CanRead(CUarray_format format) {
  return format == CU_AD_FORMAT_FLOAT || format == CU_AD_FORMAT_SIGNED_INT32 ||
         format == CU_AD_FORMAT_UNSIGNED_INT32;
}

float ReadChannel(CUarray_format format, const unsigned char* from) {
  if (format == CU_AD_FORMAT_FLOAT) return Load<float>(from);
  if (format == CU_AD_FORMAT_SIGNED_INT32) return static_cast<float>(Load<std::int32_t>(from));
  return static_cast<float>(Load<std::uint32_t>(from));
}

// Coordinates beyond the edge are those of the edge, in each address mode but the border's: the
// others need normalised coordinates (measured on an H200, driver 580.159.04).
void ReadTexel(const Plane& plane, long column, long row, float texel[4]) {
  const long x = std::clamp(column, 0L, plane.width - 1);
  const long y = std::clamp(row, 0L, plane.height - 1);
  for (unsigned i = 0; i < plane.element.channels; ++i) {
    const size_t offset = static_cast<size_t>(y) * plane.pitch +
                          static_cast<size_t>(x) * plane.element.bytes() +
                          i * plane.element.channel_bytes;
    texel[i] = ReadChannel(plane.format, plane.first + offset);
  }
}

// Not modelled: reading textures with linear filtering, normalised coordinates, borders, sRGB or a
// view, of mipmapped arrays, or of channels of 8 or 16 bits.
bool CanRead(const Texture& texture) {
  const CUDA_TEXTURE_DESC& sampling = texture.sampling;
  const CUresourcetype type = texture.resource.resType;
  const bool is_view = (sampling.flags & CU_TRSF_SRGB) != 0 || texture.has_view;
  if (is_view || type == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY) return false;
  const auto is_border = [](CUaddress_mode mode) { return mode == CU_TR_ADDRESS_MODE_BORDER; };
  return type == CU_RESOURCE_TYPE_LINEAR ||
         (sampling.filterMode == CU_TR_FILTER_MODE_POINT &&
          (sampling.flags & CU_TRSF_NORMALIZED_COORDINATES) == 0 &&
          std::none_of(std::begin(sampling.addressMode), std::end(sampling.addressMode),
                       is_border));
}

// Where a surface's bytes are, or nullptr.
unsigned char* FindInSurface(CUsurfObject object, size_t x, size_t y, size_t bytes) {
  const Texture surface = FindOrPanic(object, /*is_surface=*/true);
  const Plane plane = PlaneOfArray(surface.resource.res.array.hArray);
  const bool inside =
      y < static_cast<size_t>(plane.height) && x <= plane.pitch && bytes <= plane.pitch - x;
  return inside ? plane.array.get() + y * plane.pitch + x : nullptr;
}

}  // namespace

CUresult ReadTexture(CUtexObject object, float x, float y, float texel[4]) {
  const Texture texture = FindOrPanic(object, /*is_surface=*/false);
  std::fill(texel, texel + 4, 0.0f);
  const Plane plane = CanRead(texture) ? PlaneOf(texture) : Plane();
  if (!CanRead(texture) || !CanRead(plane.format)) {
    CountUnmodelled("Sim::ReadTexture");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (plane.width == 0 || plane.height == 0) return CUDA_SUCCESS;
  const long column = std::lround(std::floor(x));
  const bool is_fetch = texture.resource.resType == CU_RESOURCE_TYPE_LINEAR;
  // tex1Dfetch reads zeros outside.
  if (is_fetch && (column < 0 || column >= plane.width)) return CUDA_SUCCESS;
  ReadTexel(plane, column, is_fetch ? 0 : std::lround(std::floor(y)), texel);
  return CUDA_SUCCESS;
}

CUresult ReadSurface(CUsurfObject object, size_t x, size_t y, void* data, size_t bytes) {
  const unsigned char* from = FindInSurface(object, x, y, bytes);
  if (from == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
  std::memcpy(data, from, bytes);
  return CUDA_SUCCESS;
}

CUresult WriteSurface(CUsurfObject object, size_t x, size_t y, const void* data, size_t bytes) {
  unsigned char* to = FindInSurface(object, x, y, bytes);
  if (to == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
  std::memcpy(to, data, bytes);
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver

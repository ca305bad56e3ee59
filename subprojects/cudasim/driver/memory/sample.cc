// SPDX-License-Identifier: Apache-2.0
//
// What a kernel reads through a texture, and does through a surface. The numbers were
// measured on an H200, driver 580.159.04.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "driver/context/device.h"
#include "driver/context/stack.h"
#include "driver/launch/running_kernel.h"
#include "driver/memory/array.h"
#include "driver/memory/memory.h"
#include "driver/memory/texture.h"
#include "driver/panic.h"

namespace cudasim::driver {
namespace {

// A kernel's context, or outside one the current one.
Life LifeToLookIn() {
  if (ThisKernel() != nullptr) return ThisKernel()->life;
  Life life;
  if (CurrentAlive(&life) == CUDA_SUCCESS) return life;
  Panic("a texture or surface was used outside a kernel and with no living context current");
}

Texture FindOrPanic(CUtexObject object, bool is_surface) {
  Texture texture;
  if (!FindTexture(LifeToLookIn(), object, &texture) || texture.is_surface != is_surface) {
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

CUarray LevelOf(const Texture& texture) {
  if ((texture.sampling.flags & CU_TRSF_NORMALIZED_COORDINATES) == 0) {
    Panic("unnormalised coordinates in a mipmapped array: a real kernel reads something else");
  }
  const auto levels = UseMipmappedArray(texture.resource.res.mipmap.hMipmappedArray).levels;
  const float level = std::max(texture.sampling.minMipmapLevelClamp, 0.0f);
  if (level != std::floor(level)) Panic("texels between two levels are not simulated");
  return levels[std::min(static_cast<size_t>(level), levels.size() - 1)];
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
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      return PlaneOfArray(LevelOf(texture));
    case CU_RESOURCE_TYPE_LINEAR: {
      const auto& linear = resource.linear;
      const size_t element = ElementFormatOf(linear.format, linear.numChannels).bytes();
      return PlaneOfMemory(linear.devPtr, linear.format, linear.numChannels,
                           linear.sizeInBytes / element, 1, linear.sizeInBytes);
    }
    case CU_RESOURCE_TYPE_PITCH2D:
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

float HalfToFloat(std::uint16_t half) {
  const int exponent = half >> 10 & 0x1f;
  const float fraction = static_cast<float>(half & 0x3ff) / 1024;
  float value = std::ldexp(exponent == 0 ? fraction : 1 + fraction, std::max(exponent, 1) - 15);
  if (exponent == 0x1f) value = fraction == 0 ? INFINITY : NAN;
  return (half & 0x8000) != 0 ? -value : value;
}

enum class Kind { kUnsigned, kSigned, kHalf, kFloat };

Kind KindOf(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_SIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT32:
      return Kind::kSigned;
    case CU_AD_FORMAT_HALF:
      return Kind::kHalf;
    case CU_AD_FORMAT_FLOAT:
      return Kind::kFloat;
    default:
      return format >= CU_AD_FORMAT_SNORM_INT8X1 && format <= CU_AD_FORMAT_SNORM_INT16X4
                 ? Kind::kSigned
                 : Kind::kUnsigned;
  }
}

float LoadInteger(const unsigned char* from, size_t bytes, Kind kind) {
  const bool is_signed = kind == Kind::kSigned;
  switch (bytes) {
    case 1:
      return is_signed ? Load<std::int8_t>(from) : Load<std::uint8_t>(from);
    case 2:
      return is_signed ? Load<std::int16_t>(from) : Load<std::uint16_t>(from);
    default:
      return is_signed ? static_cast<float>(Load<std::int32_t>(from))
                       : static_cast<float>(Load<std::uint32_t>(from));
  }
}

float Largest(size_t bytes, Kind kind) {
  const float all = bytes == 1 ? 255 : 65535;
  return kind == Kind::kSigned ? (all - 1) / 2 : all;
}

// Integers of 32 bits are not normalised, whatever is asked.
bool IsNormalized(const Plane& plane, const CUDA_TEXTURE_DESC& sampling) {
  const Kind kind = KindOf(plane.format);
  const bool integer = kind == Kind::kUnsigned || kind == Kind::kSigned;
  return integer && plane.element.channel_bytes < 4 &&
         (sampling.flags & CU_TRSF_READ_AS_INTEGER) == 0;
}

float ReadChannel(const Plane& plane, const unsigned char* from, bool normalized) {
  const Kind kind = KindOf(plane.format);
  if (kind == Kind::kHalf) return HalfToFloat(Load<std::uint16_t>(from));
  if (kind == Kind::kFloat) return Load<float>(from);
  const float value = LoadInteger(from, plane.element.channel_bytes, kind);
  return normalized ? std::max(value / Largest(plane.element.channel_bytes, kind), -1.0f) : value;
}

// The border color as the format can hold it.
float BorderChannel(const Plane& plane, float color, bool normalized) {
  const Kind kind = KindOf(plane.format);
  if (kind == Kind::kHalf || kind == Kind::kFloat || color == 0) return color;
  if (!normalized) Panic("a border color other than 0 for integers is not simulated");
  const float largest = Largest(plane.element.channel_bytes, kind);
  const float least = kind == Kind::kSigned ? -1 : 0;
  return std::round(std::clamp(color, least, 1.0f) * largest) / largest;
}

// -1: the border.
long Wrap(long index, long size, CUaddress_mode mode) {
  const auto modulo = [](long value, long by) { return (value % by + by) % by; };
  switch (mode) {
    case CU_TR_ADDRESS_MODE_WRAP:
      return modulo(index, size);
    case CU_TR_ADDRESS_MODE_MIRROR: {
      const long place = modulo(index, 2 * size);
      return place < size ? place : 2 * size - 1 - place;
    }
    case CU_TR_ADDRESS_MODE_BORDER:
      return index >= 0 && index < size ? index : -1;
    case CU_TR_ADDRESS_MODE_CLAMP:
      break;
  }
  return std::clamp(index, 0L, size - 1);
}

// Wrapping and mirroring take normalised coordinates, and clamp without.
CUaddress_mode ModeOf(const CUDA_TEXTURE_DESC& sampling, int dimension) {
  const CUaddress_mode mode = sampling.addressMode[dimension];
  const bool normalized = (sampling.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  return normalized || mode == CU_TR_ADDRESS_MODE_BORDER ? mode : CU_TR_ADDRESS_MODE_CLAMP;
}

void ReadTexel(const Plane& plane, const CUDA_TEXTURE_DESC& sampling, long column, long row,
               float texel[4]) {
  const long x = Wrap(column, plane.width, ModeOf(sampling, 0));
  const long y = plane.height == 1 ? 0 : Wrap(row, plane.height, ModeOf(sampling, 1));
  const bool normalized = IsNormalized(plane, sampling);
  const bool border = x < 0 || y < 0;
  for (unsigned i = 0; i < plane.element.channels; ++i) {
    if (border) {
      texel[i] = BorderChannel(plane, sampling.borderColor[i], normalized);
      continue;
    }
    const size_t offset = static_cast<size_t>(y) * plane.pitch +
                          static_cast<size_t>(x) * plane.element.bytes() +
                          i * plane.element.channel_bytes;
    texel[i] = ReadChannel(plane, plane.first + offset, normalized);
  }
}

// The weight of the next texel: to the nearest 1/256.
float Fraction(float at, long index) {
  return std::round((at - static_cast<float>(index)) * 256) / 256;
}

void ReadFiltered(const Plane& plane, const CUDA_TEXTURE_DESC& sampling, float x, float y,
                  float texel[4]) {
  const Kind kind = KindOf(plane.format);
  if (kind != Kind::kFloat && kind != Kind::kHalf && !IsNormalized(plane, sampling)) {
    Panic("linear filtering of integers: a real kernel reads nothing that is defined");
  }
  const long column = std::lround(std::floor(x - 0.5f));
  const long row = std::lround(std::floor(y - 0.5f));
  const float right = Fraction(x - 0.5f, column);
  const float below = Fraction(y - 0.5f, row);
  for (int corner = 0; corner < 4; ++corner) {
    const bool is_right = (corner & 1) != 0;
    const bool is_below = (corner & 2) != 0;
    const float weight = (is_right ? right : 1 - right) * (is_below ? below : 1 - below);
    float part[4] = {};
    ReadTexel(plane, sampling, column + is_right, row + is_below, part);
    for (int i = 0; i < 4; ++i) texel[i] += weight * part[i];
  }
}

void PanicIfNotSimulated(const Texture& texture) {
  if ((texture.sampling.flags & CU_TRSF_SRGB) != 0) Panic("sRGB textures are not simulated");
  if (texture.has_view && texture.resource.resType == CU_RESOURCE_TYPE_ARRAY) {
    Panic("reading through a resource view is not simulated");
  }
}

// Elements by their number, and zeros outside, as tex1Dfetch does.
void Fetch(const Plane& plane, const CUDA_TEXTURE_DESC& sampling, float x, float texel[4]) {
  const long index = std::lround(std::floor(x));
  if (index >= 0 && index < plane.width) ReadTexel(plane, sampling, index, 0, texel);
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

void ReadTexture(CUtexObject object, float x, float y, float texel[4]) {
  const Texture texture = FindOrPanic(object, /*is_surface=*/false);
  PanicIfNotSimulated(texture);
  const Plane plane = PlaneOf(texture);
  const CUDA_TEXTURE_DESC& sampling = texture.sampling;
  std::fill(texel, texel + 4, 0.0f);
  if (plane.width == 0 || plane.height == 0) return;
  if (texture.resource.resType == CU_RESOURCE_TYPE_LINEAR) {
    Fetch(plane, sampling, x, texel);
    return;
  }
  if ((sampling.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0) {
    x *= static_cast<float>(plane.width);
    y *= static_cast<float>(plane.height);
  }
  if (sampling.filterMode == CU_TR_FILTER_MODE_LINEAR) {
    ReadFiltered(plane, sampling, x, y, texel);
  } else {
    ReadTexel(plane, sampling, std::lround(std::floor(x)), std::lround(std::floor(y)), texel);
  }
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

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/memory/array.h"

#include <algorithm>

#include "driver/api.h"

namespace cudasim::driver {
namespace {

constexpr unsigned kShapeFlags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST |
                                 CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER;
constexpr unsigned kFlagsNotModelled =
    CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_VIDEO_ENCODE_DECODE;

struct Limits {
  size_t width, height, depth;

  bool Allow(const CUDA_ARRAY3D_DESCRIPTOR& shape) const {
    return shape.Width <= width && shape.Height <= height && shape.Depth <= depth;
  }
};

// The device attributes MAXIMUM_TEXTURE* and MAXIMUM_SURFACE* of an H200, driver
// 580.159.04, which are what is enforced there.
constexpr Limits kLine = {131072, 0, 0};
constexpr Limits kSurfaceLine = {32768, 0, 0};
constexpr Limits kPlane = {131072, 65536, 0};
constexpr Limits kGatherPlane = {32768, 32768, 0};
constexpr Limits kVolume = {16384, 16384, 16384};
constexpr Limits kDeepVolume = {8192, 8192, 32768};
constexpr Limits kLayers = {32768, 32768, 2048};
constexpr Limits kCubemapLayers = {32768, 32768, 2046};

bool IsLayered(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  return (shape.Flags & CUDA_ARRAY3D_LAYERED) != 0;
}
bool IsCubemap(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  return (shape.Flags & CUDA_ARRAY3D_CUBEMAP) != 0;
}

bool IsCubemapShape(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  const bool faces = IsLayered(shape) ? shape.Depth % 6 == 0 && shape.Depth > 0 : shape.Depth == 6;
  return faces && shape.Width == shape.Height && kCubemapLayers.Allow(shape);
}

bool IsPlainShape(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  const bool surface = (shape.Flags & CUDA_ARRAY3D_SURFACE_LDST) != 0;
  if (shape.Depth != 0) {
    return shape.Height != 0 && (kVolume.Allow(shape) || kDeepVolume.Allow(shape));
  }
  if (shape.Height != 0) return kPlane.Allow(shape);
  return (surface ? kSurfaceLine : kLine).Allow(shape);
}

bool IsSize(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  if (shape.Width == 0) return false;
  if ((shape.Flags & CUDA_ARRAY3D_TEXTURE_GATHER) != 0) {
    const bool plane = shape.Height != 0 && !IsLayered(shape) && !IsCubemap(shape);
    return plane && kGatherPlane.Allow(shape);
  }
  if (IsCubemap(shape)) return IsCubemapShape(shape);
  if (IsLayered(shape)) return shape.Depth != 0 && kLayers.Allow(shape);
  return IsPlainShape(shape);
}

// Formats that a real driver has: block-compressed, with one number of channels each,
// and the packed one.
bool IsFormatModelled(CUarray_format format) {
  const bool blocks = format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_BC7_UNORM_SRGB;
  return !blocks && format != CU_AD_FORMAT_UNORM_INT_101010_2;
}

size_t Shrink(size_t size, unsigned level) {
  return size == 0 ? 0 : std::max<size_t>(size >> level, 1);
}

bool HasDepth(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  return !IsLayered(shape) && !IsCubemap(shape);
}

}  // namespace

CUresult CheckArrayShape(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  // Not modelled: arrays of block-compressed and packed formats, sparse and deferred ones, and
  // those of video.
  const bool has_flags = (shape.Flags & kFlagsNotModelled) != 0;
  if (has_flags || !IsFormatModelled(shape.Format)) return NotModelled();
  const bool is_shape = (shape.Flags & ~kShapeFlags) == 0 && IsSize(shape) &&
                        ElementFormatOf(shape.Format, shape.NumChannels).bytes() != 0;
  return is_shape ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

unsigned MaxLevels(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  const size_t depth = HasDepth(shape) ? shape.Depth : 0;
  size_t longest = std::max({shape.Width, shape.Height, depth});
  unsigned levels = 1;
  for (; longest > 1; longest >>= 1) ++levels;
  return levels;
}

CUDA_ARRAY3D_DESCRIPTOR ShapeOfLevel(const CUDA_ARRAY3D_DESCRIPTOR& shape, unsigned level) {
  CUDA_ARRAY3D_DESCRIPTOR smaller = shape;
  smaller.Width = Shrink(shape.Width, level);
  smaller.Height = Shrink(shape.Height, level);
  if (HasDepth(shape)) smaller.Depth = Shrink(shape.Depth, level);
  return smaller;
}

}  // namespace cudasim::driver

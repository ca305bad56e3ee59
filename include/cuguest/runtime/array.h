// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 4
/// \file
/// CUDA arrays and mipmapped arrays, and the formats of their elements.
///
///   cudaArray_t picture = runtime::ToRuntime(driver_array);
///   cudaMemcpy2DToArray(picture, ...);
///
///   absl::StatusOr<CUDA_ARRAY_DESCRIPTOR> shape =
///       runtime::ToDriver(cudaCreateChannelDesc(32, 32, 32, 32, cudaChannelFormatKindFloat));
///   if (!shape.ok()) return shape.status();
///   shape->Width = 640;  // of four CU_AD_FORMAT_FLOAT

#ifndef CUGUEST_RUNTIME_ARRAY_H_
#define CUGUEST_RUNTIME_ARRAY_H_

#include <cuda.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/runtime/binding.h"
#include "cuguest/runtime/internal/handle_cast.h"

CUGUEST_BEGIN_RUNTIME_NAMESPACE

/// The handles are one value with two types: null stays null.
/// Stack, count, last error: not touched. Nothing is called or checked. Threads: any. Cost: none.
/// Source:  CUDA Runtime API, "Interactions with the CUDA Driver API".
[[nodiscard]] inline CUarray ToDriver(cudaArray_t array) noexcept {
  return impl::CastToDriver<CUarray>(array);
}
[[nodiscard]] inline cudaArray_t ToRuntime(CUarray array) noexcept {
  return impl::CastToRuntime<cudaArray_t>(array);
}
[[nodiscard]] inline CUmipmappedArray ToDriver(cudaMipmappedArray_t array) noexcept {
  return impl::CastToDriver<CUmipmappedArray>(array);
}
[[nodiscard]] inline cudaMipmappedArray_t ToRuntime(CUmipmappedArray array) noexcept {
  return impl::CastToRuntime<cudaMipmappedArray_t>(array);
}

namespace impl {

struct FormatRow {
  CUarray_format format;
  cudaChannelFormatKind kind;
  int bits;           // of each channel
  unsigned channels;  // 0: 1, 2 or 4
};

inline constexpr FormatRow kFormats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, cudaChannelFormatKindUnsigned, 8, 0},
    {CU_AD_FORMAT_UNSIGNED_INT16, cudaChannelFormatKindUnsigned, 16, 0},
    {CU_AD_FORMAT_UNSIGNED_INT32, cudaChannelFormatKindUnsigned, 32, 0},
    {CU_AD_FORMAT_SIGNED_INT8, cudaChannelFormatKindSigned, 8, 0},
    {CU_AD_FORMAT_SIGNED_INT16, cudaChannelFormatKindSigned, 16, 0},
    {CU_AD_FORMAT_SIGNED_INT32, cudaChannelFormatKindSigned, 32, 0},
    {CU_AD_FORMAT_HALF, cudaChannelFormatKindFloat, 16, 0},
    {CU_AD_FORMAT_FLOAT, cudaChannelFormatKindFloat, 32, 0},
    {CU_AD_FORMAT_UNORM_INT8X1, cudaChannelFormatKindUnsignedNormalized8X1, 8, 1},
    {CU_AD_FORMAT_UNORM_INT8X2, cudaChannelFormatKindUnsignedNormalized8X2, 8, 2},
    {CU_AD_FORMAT_UNORM_INT8X4, cudaChannelFormatKindUnsignedNormalized8X4, 8, 4},
    {CU_AD_FORMAT_UNORM_INT16X1, cudaChannelFormatKindUnsignedNormalized16X1, 16, 1},
    {CU_AD_FORMAT_UNORM_INT16X2, cudaChannelFormatKindUnsignedNormalized16X2, 16, 2},
    {CU_AD_FORMAT_UNORM_INT16X4, cudaChannelFormatKindUnsignedNormalized16X4, 16, 4},
    {CU_AD_FORMAT_SNORM_INT8X1, cudaChannelFormatKindSignedNormalized8X1, 8, 1},
    {CU_AD_FORMAT_SNORM_INT8X2, cudaChannelFormatKindSignedNormalized8X2, 8, 2},
    {CU_AD_FORMAT_SNORM_INT8X4, cudaChannelFormatKindSignedNormalized8X4, 8, 4},
    {CU_AD_FORMAT_SNORM_INT16X1, cudaChannelFormatKindSignedNormalized16X1, 16, 1},
    {CU_AD_FORMAT_SNORM_INT16X2, cudaChannelFormatKindSignedNormalized16X2, 16, 2},
    {CU_AD_FORMAT_SNORM_INT16X4, cudaChannelFormatKindSignedNormalized16X4, 16, 4},
};

// The number of channels from x on, if all have as many bits as x; otherwise 0.
inline unsigned ChannelsOf(const cudaChannelFormatDesc& desc) {
  const int bits[] = {desc.x, desc.y, desc.z, desc.w};
  unsigned channels = 0;
  while (channels < 4 && bits[channels] == desc.x) ++channels;
  for (unsigned i = channels; i < 4; ++i) {
    if (bits[i] != 0) return 0;
  }
  return channels;
}

inline bool Fits(const FormatRow& row, unsigned channels) {
  return row.channels != 0 ? row.channels == channels
                           : channels == 1 || channels == 2 || channels == 4;
}

}  // namespace impl

/// A channel descriptor as the driver has it: Format and NumChannels. Width and Height are 0.
/// Formats: integers, floats and halves with 1, 2 or 4 equal channels, and the normalised ones of 8
/// and 16 bits. Not the block-compressed and planar ones.
/// Errors: kInvalidArgument  a format that is left out, or that no array can have: three channels,
///                           unequal ones, an unknown size
[[nodiscard]] inline absl::StatusOr<CUDA_ARRAY_DESCRIPTOR> ToDriver(
    const cudaChannelFormatDesc& desc) {
  const unsigned channels = impl::ChannelsOf(desc);
  for (const impl::FormatRow& row : impl::kFormats) {
    if (row.kind == desc.f && row.bits == desc.x && impl::Fits(row, channels)) {
      return CUDA_ARRAY_DESCRIPTOR{0, 0, row.format, channels};
    }
  }
  return absl::InvalidArgumentError(
      "convert a channel descriptor: no array format has channels of " + std::to_string(desc.x) +
      ", " + std::to_string(desc.y) + ", " + std::to_string(desc.z) + " and " +
      std::to_string(desc.w) + " bits and cudaChannelFormatKind " +
      std::to_string(static_cast<int>(desc.f)) + "; an array has 1, 2 or 4 channels of one size");
}

/// Of Format and NumChannels, which are all that is read.
[[nodiscard]] inline absl::StatusOr<cudaChannelFormatDesc> ToRuntime(
    const CUDA_ARRAY_DESCRIPTOR& array) {
  for (const impl::FormatRow& row : impl::kFormats) {
    if (row.format != array.Format || !impl::Fits(row, array.NumChannels)) continue;
    const auto bits = [&](unsigned channel) { return channel < array.NumChannels ? row.bits : 0; };
    return cudaChannelFormatDesc{bits(0), bits(1), bits(2), bits(3), row.kind};
  }
  return absl::InvalidArgumentError("convert an array format: CUarray_format " +
                                    std::to_string(static_cast<unsigned>(array.Format)) + " with " +
                                    std::to_string(array.NumChannels) +
                                    " channels has no channel descriptor here");
}

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_RUNTIME_ARRAY_H_

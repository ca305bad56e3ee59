// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/array.h"

#include "runtime/api.h"
#include "runtime/driver.h"

namespace cudasim::runtime {
namespace {

struct FormatRow {
  CUarray_format format;
  int bits;
  cudaChannelFormatKind kind;
  unsigned channels = 0;  // 0: any number

  bool Has(unsigned count) const { return count != 0 && (channels == 0 || channels == count); }
};

constexpr FormatRow kFormats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, 8, cudaChannelFormatKindUnsigned},
    {CU_AD_FORMAT_UNSIGNED_INT16, 16, cudaChannelFormatKindUnsigned},
    {CU_AD_FORMAT_UNSIGNED_INT32, 32, cudaChannelFormatKindUnsigned},
    {CU_AD_FORMAT_SIGNED_INT8, 8, cudaChannelFormatKindSigned},
    {CU_AD_FORMAT_SIGNED_INT16, 16, cudaChannelFormatKindSigned},
    {CU_AD_FORMAT_SIGNED_INT32, 32, cudaChannelFormatKindSigned},
    {CU_AD_FORMAT_HALF, 16, cudaChannelFormatKindFloat},
    {CU_AD_FORMAT_FLOAT, 32, cudaChannelFormatKindFloat},
    {CU_AD_FORMAT_UNORM_INT8X1, 8, cudaChannelFormatKindUnsignedNormalized8X1, 1},
    {CU_AD_FORMAT_UNORM_INT8X2, 8, cudaChannelFormatKindUnsignedNormalized8X2, 2},
    {CU_AD_FORMAT_UNORM_INT8X4, 8, cudaChannelFormatKindUnsignedNormalized8X4, 4},
    {CU_AD_FORMAT_UNORM_INT16X1, 16, cudaChannelFormatKindUnsignedNormalized16X1, 1},
    {CU_AD_FORMAT_UNORM_INT16X2, 16, cudaChannelFormatKindUnsignedNormalized16X2, 2},
    {CU_AD_FORMAT_UNORM_INT16X4, 16, cudaChannelFormatKindUnsignedNormalized16X4, 4},
    {CU_AD_FORMAT_SNORM_INT8X1, 8, cudaChannelFormatKindSignedNormalized8X1, 1},
    {CU_AD_FORMAT_SNORM_INT8X2, 8, cudaChannelFormatKindSignedNormalized8X2, 2},
    {CU_AD_FORMAT_SNORM_INT8X4, 8, cudaChannelFormatKindSignedNormalized8X4, 4},
    {CU_AD_FORMAT_SNORM_INT16X1, 16, cudaChannelFormatKindSignedNormalized16X1, 1},
    {CU_AD_FORMAT_SNORM_INT16X2, 16, cudaChannelFormatKindSignedNormalized16X2, 2},
    {CU_AD_FORMAT_SNORM_INT16X4, 16, cudaChannelFormatKindSignedNormalized16X4, 4},
};

// x, then y, z and w, all as wide as x or absent from some channel on; 3 do not exist.
unsigned CountChannels(const cudaChannelFormatDesc& channel) {
  const int bits[] = {channel.x, channel.y, channel.z, channel.w, 0};
  unsigned count = 0;
  while (bits[count] != 0) {
    if (bits[count] != channel.x) return 0;
    ++count;
  }
  for (unsigned i = count; i < 4; ++i) {
    if (bits[i] != 0) return 0;
  }
  return count == 3 ? 0 : count;
}

cudaError_t Describe(const cudaChannelFormatDesc* channel, cudaExtent extent, unsigned flags,
                     CUDA_ARRAY3D_DESCRIPTOR* description) {
  if (channel == nullptr) return cudaErrorInvalidValue;
  ElementFormat element;
  const cudaError_t code = ToDriver(*channel, &element);
  // The flags of the two APIs have the same numbers.
  *description = {extent.width,   extent.height,    extent.depth,
                  element.format, element.channels, flags};
  return code;
}

cudaError_t FindDescription(cudaArray_const_t array, CUDA_ARRAY3D_DESCRIPTOR* description) {
  if (array == nullptr) return cudaErrorInvalidResourceHandle;
  return ToError(Driver().cuArray3DGetDescriptor(description, ToDriver(array)));
}

ElementFormat ElementOf(const CUDA_ARRAY3D_DESCRIPTOR& description) {
  return {description.Format, description.NumChannels};
}

}  // namespace

cudaError_t ToDriver(const cudaChannelFormatDesc& channel, ElementFormat* element) {
  element->channels = CountChannels(channel);
  for (const FormatRow& row : kFormats) {
    if (row.bits != channel.x || row.kind != channel.f || !row.Has(element->channels)) continue;
    element->format = row.format;
    return cudaSuccess;
  }
  return cudaErrorInvalidChannelDescriptor;
}

cudaChannelFormatDesc ToRuntime(const ElementFormat& element) {
  for (const FormatRow& row : kFormats) {
    if (row.format != element.format) continue;
    const auto bits = [&](unsigned channel) { return channel < element.channels ? row.bits : 0; };
    return {bits(0), bits(1), bits(2), bits(3), row.kind};
  }
  return {0, 0, 0, 0, cudaChannelFormatKindNone};
}

cudaError_t ElementBytes(cudaArray_const_t array, size_t* bytes) {
  CUDA_ARRAY3D_DESCRIPTOR description = {};
  const cudaError_t code = FindDescription(array, &description);
  const cudaChannelFormatDesc channel = ToRuntime(ElementOf(description));
  *bytes = static_cast<size_t>(channel.x) / 8 * description.NumChannels;
  return code;
}

cudaError_t MallocArray(cudaArray_t* array, const cudaChannelFormatDesc* channel, size_t width,
                        size_t height, unsigned flags) {
  return Malloc3DArray(array, channel, cudaExtent{width, height, 0}, flags);
}

cudaError_t Malloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* channel,
                          cudaExtent extent, unsigned flags) {
  if (array == nullptr) return cudaErrorInvalidValue;
  CUDA_ARRAY3D_DESCRIPTOR description = {};
  const cudaError_t code = Describe(channel, extent, flags, &description);
  if (code != cudaSuccess) return code;
  CUarray created = nullptr;
  const CUresult result = Driver().cuArray3DCreate(&created, &description);
  if (result == CUDA_SUCCESS) *array = ToRuntime(created);
  return ToError(result);
}

cudaError_t MallocMipmappedArray(cudaMipmappedArray_t* array, const cudaChannelFormatDesc* channel,
                                 cudaExtent extent, unsigned levels, unsigned flags) {
  if (array == nullptr) return cudaErrorInvalidValue;
  CUDA_ARRAY3D_DESCRIPTOR description = {};
  const cudaError_t code = Describe(channel, extent, flags, &description);
  if (code != cudaSuccess) return code;
  CUmipmappedArray created = nullptr;
  const CUresult result = Driver().cuMipmappedArrayCreate(&created, &description, levels);
  if (result == CUDA_SUCCESS) *array = ToRuntime(created);
  return ToError(result);
}

cudaError_t GetMipmappedArrayLevel(cudaArray_t* array, cudaMipmappedArray_const_t mipmapped,
                                   unsigned level) {
  if (mipmapped == nullptr) return cudaErrorInvalidResourceHandle;
  if (array == nullptr) return cudaErrorInvalidValue;
  CUarray found = nullptr;
  const CUresult code = Driver().cuMipmappedArrayGetLevel(&found, ToDriver(mipmapped), level);
  if (code == CUDA_SUCCESS) *array = ToRuntime(found);
  return ToError(code);
}

cudaError_t FreeArray(cudaArray_t array) {
  return array == nullptr ? cudaSuccess : ToError(Driver().cuArrayDestroy(ToDriver(array)));
}

cudaError_t FreeMipmappedArray(cudaMipmappedArray_t array) {
  return array == nullptr ? cudaSuccess
                          : ToError(Driver().cuMipmappedArrayDestroy(ToDriver(array)));
}

// Each of the three may be null.
cudaError_t ArrayGetInfo(cudaChannelFormatDesc* channel, cudaExtent* extent, unsigned* flags,
                         cudaArray_t array) {
  CUDA_ARRAY3D_DESCRIPTOR description = {};
  const cudaError_t code = FindDescription(array, &description);
  if (code != cudaSuccess) return code;
  if (channel != nullptr) *channel = ToRuntime(ElementOf(description));
  if (extent != nullptr) *extent = {description.Width, description.Height, description.Depth};
  if (flags != nullptr) *flags = description.Flags;
  return cudaSuccess;
}

cudaError_t GetChannelDesc(cudaChannelFormatDesc* channel, cudaArray_const_t array) {
  if (channel == nullptr) return cudaErrorInvalidValue;
  CUDA_ARRAY3D_DESCRIPTOR description = {};
  const cudaError_t code = FindDescription(array, &description);
  if (code == cudaSuccess) *channel = ToRuntime(ElementOf(description));
  return code;
}

}  // namespace cudasim::runtime

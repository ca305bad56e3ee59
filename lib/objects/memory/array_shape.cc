// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/objects/memory/array_shape.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cuguest/objects/driver.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

struct Format {
  CUarray_format format;
  std::size_t bytes;  // per channel
  const char* name;
};
constexpr Format kFormats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, 1, "uint8"},
    {CU_AD_FORMAT_UNSIGNED_INT16, 2, "uint16"},
    {CU_AD_FORMAT_UNSIGNED_INT32, 4, "uint32"},
    {CU_AD_FORMAT_SIGNED_INT8, 1, "int8"},
    {CU_AD_FORMAT_SIGNED_INT16, 2, "int16"},
    {CU_AD_FORMAT_SIGNED_INT32, 4, "int32"},
    {CU_AD_FORMAT_HALF, 2, "half"},
    {CU_AD_FORMAT_FLOAT, 4, "float"},
};

// nullptr for one that packs its channels, or has planes of several sizes.
const Format* FindFormat(CUarray_format format) {
  for (const Format& known : kFormats) {
    if (known.format == format) return &known;
  }
  return nullptr;
}

// 0 of more than an address space has, which only what somebody asks for can be.
std::size_t BytesOfAll(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  std::size_t bytes = internal::ElementBytes(shape.Format, shape.NumChannels);
  for (const std::size_t size : {shape.Width, std::max<std::size_t>(shape.Height, 1),
                                 std::max<std::size_t>(shape.Depth, 1)}) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) return 0;
  }
  return bytes;
}

std::string ArrayText(CUarray array) {
  return absl::StrCat("array 0x", absl::Hex(reinterpret_cast<std::uintptr_t>(array)));
}

}  // namespace

namespace internal {

std::size_t ElementBytes(CUarray_format format, unsigned channels) {
  const Format* const known = FindFormat(format);
  return known != nullptr ? known->bytes * channels : 0;
}

std::string ShapeText(const Array::Description& shape) {
  std::string text = absl::StrCat(shape.width);
  if (shape.height != 0) absl::StrAppend(&text, " x ", shape.height);
  if (shape.depth != 0) absl::StrAppend(&text, " x ", shape.depth);
  const Format* const known = FindFormat(shape.format);
  absl::StrAppend(&text, " elements of ", shape.channels, " ",
                  known != nullptr
                      ? known->name
                      : absl::StrCat("format 0x", absl::Hex(static_cast<int>(shape.format))));
  if (shape.bytes != 0) absl::StrAppend(&text, ", ", shape.bytes, " bytes");
  if (shape.flags != 0) absl::StrAppend(&text, ", flags 0x", absl::Hex(shape.flags));
  return text;
}

Array::Description ToDescription(CUarray array, const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  Array::Description description;
  description.array = array;
  description.width = shape.Width;
  description.height = shape.Height;
  description.depth = shape.Depth;
  description.format = shape.Format;
  description.channels = shape.NumChannels;
  description.flags = shape.Flags;
  description.bytes = BytesOfAll(shape);
  return description;
}

}  // namespace internal

std::string Array::Description::ToString() const {
  return absl::StrCat(ArrayText(array), ": ", internal::ShapeText(*this));
}

absl::StatusOr<Array::Description> Array::Describe(CUarray array) {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  CUDA_ARRAY3D_DESCRIPTOR shape = {};
  CUGUEST_RETURN_IF_CUDA_ERROR(driver->Array3DGetDescriptor(&shape, array), "describe an array",
                               ArrayText(array));
  return internal::ToDescription(array, shape);
}

CUGUEST_END_NAMESPACE

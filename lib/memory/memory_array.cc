// SPDX-License-Identifier: Apache-2.0

#include "cuguest/memory.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cuguest/driver.h"
#include "cuguest/error.h"
#include "lib/core/status_macros.h"

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

std::string ArrayText(CUarray array) {
  return absl::StrCat("array 0x", absl::Hex(reinterpret_cast<std::uintptr_t>(array)));
}

std::string FormatText(CUarray_format format) {
  const Format* known = FindFormat(format);
  if (known != nullptr) return known->name;
  return absl::StrCat("format 0x", absl::Hex(static_cast<int>(format)));
}

}  // namespace

std::string ArrayDescription::ToString() const {
  std::string text = absl::StrCat(ArrayText(array), ": ", width);
  if (height != 0) absl::StrAppend(&text, " x ", height);
  if (depth != 0) absl::StrAppend(&text, " x ", depth);
  absl::StrAppend(&text, " elements of ", channels, " ", FormatText(format));
  if (bytes != 0) absl::StrAppend(&text, ", ", bytes, " bytes");
  if (flags != 0) absl::StrAppend(&text, ", flags 0x", absl::Hex(flags));
  return text;
}

absl::StatusOr<ArrayDescription> Describe(CUarray array) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  CUDA_ARRAY3D_DESCRIPTOR shape = {};
  const CUresult code = driver->Array3DGetDescriptor(&shape, array);
  if (code != CUDA_SUCCESS) return ToStatus(code, "describe an array", ArrayText(array));
  const Format* format = FindFormat(shape.Format);
  const std::size_t element = format != nullptr ? format->bytes * shape.NumChannels : 0;
  const std::size_t elements =
      shape.Width * std::max<std::size_t>(shape.Height, 1) * std::max<std::size_t>(shape.Depth, 1);
  ArrayDescription description;
  description.array = array;
  description.width = shape.Width;
  description.height = shape.Height;
  description.depth = shape.Depth;
  description.format = shape.Format;
  description.channels = shape.NumChannels;
  description.flags = shape.Flags;
  description.bytes = elements * element;
  return description;
}

CUGUEST_END_NAMESPACE

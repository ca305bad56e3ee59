// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/texture_object.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "cuguest/objects/driver.h"
#include "lib/objects/memory/array_shape.h"
#include "lib/objects/memory/in_context.h"
#include "lib/objects/memory/resource.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::MemoryRange;
using internal::OwnedObject;
using internal::PointerText;

struct Place {
  CUdeviceptr address = 0;
  std::size_t pitch = 0;
};

// Where memory lies that a resource names; at 0 if it names none.
Place PlaceOf(const CUDA_RESOURCE_DESC& resource) {
  if (resource.resType == CU_RESOURCE_TYPE_LINEAR) return {resource.res.linear.devPtr, 0};
  if (resource.resType != CU_RESOURCE_TYPE_PITCH2D) return {};
  return {resource.res.pitch2D.devPtr, resource.res.pitch2D.pitchInBytes};
}

// Of the current context's device; 1 if that cannot be told.
std::size_t Alignment(const ObjectDriver& driver, CUdevice_attribute attribute) {
  CUdevice device = 0;
  int alignment = 0;
  const bool is_known = driver.CtxGetDevice(&device) == CUDA_SUCCESS &&
                        driver.DeviceGetAttribute(&alignment, attribute, device) == CUDA_SUCCESS;
  return is_known && alignment > 0 ? static_cast<std::size_t>(alignment) : 1;
}

// What the driver does not say: why it refused the memory. Empty if that is not why.
std::string AlignmentText(const ObjectDriver& driver, const Place& place) {
  const std::size_t of_base = Alignment(driver, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  if (place.address % of_base != 0) {
    return absl::StrCat("the address is not aligned to ", of_base,
                        " bytes, as the device needs it for textures");
  }
  const std::size_t of_pitch = Alignment(driver, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT);
  if (place.pitch % of_pitch == 0) return "";
  return absl::StrCat("the pitch of ", place.pitch, " bytes is not a multiple of ", of_pitch,
                      ", as the device needs it for textures");
}

std::string MemoryText(const MemoryRange& memory, const TextureObject::Texels& texels) {
  CUDA_ARRAY3D_DESCRIPTOR shape = {};
  shape.Width = texels.width;
  shape.Height = texels.height;
  shape.Format = texels.format;
  shape.NumChannels = texels.channels;
  std::string text = absl::StrCat("create a texture object of ",
                                  internal::ShapeText(internal::ToDescription(nullptr, shape)));
  if (texels.height != 0) absl::StrAppend(&text, ", pitch ", texels.pitch);
  absl::StrAppend(&text, ", in ", memory.bytes, " bytes at ", PointerText(memory.pointer));
  return text;
}

// What the driver does not look at. `element` is the size of one texel.
absl::Status CheckTexels(const MemoryRange& memory, const TextureObject::Texels& texels,
                         std::size_t element) {
  if (texels.width == 0 || texels.channels == 0 || memory.bytes == 0) {
    return absl::InvalidArgumentError(absl::StrCat(MemoryText(memory, texels), ": no texels"));
  }
  if (element == 0) {
    return absl::UnimplementedError(
        absl::StrCat(MemoryText(memory, texels), ": texels of this format have no size here"));
  }
  std::size_t row = 0;
  std::size_t before = 0;  // the last row
  std::size_t needed = 0;
  const std::size_t rows_before = texels.height == 0 ? 0 : texels.height - 1;
  const bool overflows = __builtin_mul_overflow(texels.width, element, &row) ||
                         __builtin_mul_overflow(rows_before, texels.pitch, &before) ||
                         __builtin_add_overflow(before, row, &needed);
  if (!overflows && rows_before != 0 && texels.pitch < row) {
    return absl::InvalidArgumentError(
        absl::StrCat(MemoryText(memory, texels), ": rows of ", row, " bytes overlap"));
  }
  if (!overflows && needed <= memory.bytes) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat(MemoryText(memory, texels), ": they reach beyond its end",
                   overflows ? "" : absl::StrCat(", since they need ", needed, " bytes")));
}

// `text` says what is made of what.
template <typename Text>
absl::StatusOr<OwnedObject> CreateTexture(const ContextRef& context,
                                          const CUDA_RESOURCE_DESC& resource,
                                          const CUDA_TEXTURE_DESC& sampling,
                                          const CUDA_RESOURCE_VIEW_DESC* view, const Text& text) {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  CUGUEST_RETURN_IF_ERROR(driver->Require(&ObjectDriver::TexObjectCreate).status());
  CUGUEST_RETURN_IF_ERROR(driver->Require(&ObjectDriver::TexObjectDestroy).status());
  const auto create = [&](unsigned long long* handle) {
    return driver->TexObjectCreate(handle, &resource, &sampling, view);
  };
  const auto reason = [&](CUresult code) {
    const std::string alignment = code == CUDA_ERROR_INVALID_VALUE
                                      ? AlignmentText(*driver, PlaceOf(resource))
                                      : std::string();
    return alignment.empty() ? internal::ResourceReason(code, context) : alignment;
  };
  return internal::CreateIn(context, OwnedObject::Kind::kTexture, create, text, reason);
}

}  // namespace

absl::StatusOr<TextureObject> TextureObject::Create(const Array& array,
                                                    const CUDA_TEXTURE_DESC& sampling,
                                                    const CUDA_RESOURCE_VIEW_DESC* view) {
  const auto text = [&] {
    return absl::StrCat("create a texture object of ", array.description().ToString());
  };
  if (array.empty()) return absl::InvalidArgumentError(text() + ": the array is empty");
  CUGUEST_ASSIGN_OR_RETURN(
      OwnedObject object,
      CreateTexture(array.context(), internal::ResourceOf(array.get()), sampling, view, text));
  return TextureObject(std::move(object));
}

absl::StatusOr<TextureObject> TextureObject::OfMemory(const ContextRef& context,
                                                      const MemoryRange& memory,
                                                      const TextureObject::Texels& texels,
                                                      const CUDA_TEXTURE_DESC& sampling) {
  const std::size_t element = internal::ElementBytes(texels.format, texels.channels);
  CUGUEST_RETURN_IF_ERROR(CheckTexels(memory, texels, element));
  CUDA_RESOURCE_DESC resource = {};
  if (texels.height == 0) {
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear = {memory.pointer, texels.format, texels.channels, texels.width * element};
  } else {
    resource.resType = CU_RESOURCE_TYPE_PITCH2D;
    resource.res.pitch2D = {memory.pointer, texels.format, texels.channels,
                            texels.width,   texels.height, texels.pitch};
  }
  const auto text = [&] { return MemoryText(memory, texels); };
  if (memory.context.get() != nullptr && memory.context != context) {  // entered, and so looked at
    CUGUEST_RETURN_IF_CUDA_ERROR(
        memory.context.Check(), text(),
        absl::StrCat("memory of ", internal::ContextText(memory.context.get())));
  }
  CUGUEST_ASSIGN_OR_RETURN(OwnedObject object,
                           CreateTexture(context, resource, sampling, nullptr, text));
  return TextureObject(std::move(object));
}

absl::StatusOr<TextureObject> TextureObject::Create(const ContextRef& context,
                                                    const CUDA_RESOURCE_DESC& resource,
                                                    const CUDA_TEXTURE_DESC& sampling,
                                                    const CUDA_RESOURCE_VIEW_DESC* view) {
  const auto text = [&] {
    return absl::StrCat("create a texture object of a resource of type ",
                        static_cast<int>(resource.resType));
  };
  CUGUEST_ASSIGN_OR_RETURN(OwnedObject object,
                           CreateTexture(context, resource, sampling, view, text));
  return TextureObject(std::move(object));
}

CUGUEST_END_NAMESPACE

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What Array, TextureObject and SurfaceObject have in common.                          tier: 3

#include "cuguest/objects/internal/owned_object.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "cuguest/objects/driver.h"
#include "cuguest/status.h"
#include "lib/core/driver_access.h"
#include "lib/objects/memory/in_context.h"
#include "lib/objects/object_driver.h"
#include "lib/share/owed.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

using Kind = OwnedObject::Kind;

constexpr char kKept[] = "it was not destroyed, and is still owned";

CUresult DestroyObject(const ObjectDriver& driver, Kind kind, unsigned long long handle) noexcept {
  switch (kind) {
    case Kind::kArray:  // Round trip: Array::Create() has the number from a CUarray
      return driver.ArrayDestroy(reinterpret_cast<CUarray>(handle));
    case Kind::kTexture:
      return driver.TexObjectDestroy(handle);
    case Kind::kSurface:
      return driver.SurfObjectDestroy(handle);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

const char* NameOf(Kind kind) noexcept {
  switch (kind) {
    case Kind::kArray:
      return "an Array";
    case Kind::kTexture:
      return "a TextureObject";
    case Kind::kSurface:
      return "a SurfaceObject";
  }
  return "";
}

std::string DestroyText(Kind kind, unsigned long long handle, const ContextRef& context) {
  const char* const name = kind == Kind::kArray     ? "array 0x"
                           : kind == Kind::kTexture ? "texture object 0x"
                                                    : "surface object 0x";
  return absl::StrCat("destroy ", name, absl::Hex(handle), " of ", ContextText(context.get()));
}

}  // namespace

absl::Status OwnedObject::Release() {
  if (handle_ == 0) return absl::OkStatus();
  const unsigned long long handle = handle_;
  const ContextRef context = context_;
  const EndOutcome outcome = TryDestroy();
  CUGUEST_RETURN_IF_CUDA_ERROR(outcome.code, DestroyText(kind_, handle, context), outcome.reason);
  return absl::OkStatus();
}

void OwnedObject::End() noexcept {
  constexpr auto kEnd = [](OwnedObject& object) noexcept {
    return object.handle_ != 0 ? object.TryDestroy().code : CUDA_SUCCESS;
  };
  EndOrOwe(*this, NameOf(kind_), kEnd, &OwnedObject::Leak);
}

EndOutcome OwnedObject::TryDestroy() noexcept {
  CUresult code = CUDA_SUCCESS;
  const ObjectDriver* const driver = TryObjectDriver(&code);
  if (driver == nullptr) {
    // The process is ending, and the driver takes everything back.
    return {code == CUDA_ERROR_DEINITIALIZED ? CUDA_SUCCESS : code, kKept};
  }
  const EndOutcome ended = EndIn(context_, [&] { return DestroyObject(*driver, kind_, handle_); });
  if (ended.code == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
    static_cast<void>(Leak());
    return {ended.code, "it is gone with its context"};
  }
  if (ended.code == CUDA_SUCCESS || ended.code == CUDA_ERROR_DEINITIALIZED) {
    static_cast<void>(Leak());
    return {CUDA_SUCCESS, ""};
  }
  return {ended.code, *ended.reason != '\0' ? ended.reason : kKept};
}

CUGUEST_END_INTERNAL_NAMESPACE

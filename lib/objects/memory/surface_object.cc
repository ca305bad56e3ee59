// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/surface_object.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "cuguest/objects/driver.h"
#include "cuguest/objects/memory.h"
#include "lib/objects/memory/in_context.h"
#include "lib/objects/memory/resource.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::OwnedObject;

absl::StatusOr<OwnedObject> CreateSurface(const ContextRef& context,
                                          const Array::Description& array) {
  const auto text = [&] { return absl::StrCat("create a surface object of ", array.ToString()); };
  if (array.array == nullptr) return absl::InvalidArgumentError(text() + ": the array is empty");
  if ((array.flags & CUDA_ARRAY3D_SURFACE_LDST) == 0) {
    return absl::FailedPreconditionError(
        text() + ": it was made without CUDA_ARRAY3D_SURFACE_LDST, which a surface needs");
  }
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  CUGUEST_RETURN_IF_ERROR(driver->Require(&ObjectDriver::SurfObjectCreate).status());
  CUGUEST_RETURN_IF_ERROR(driver->Require(&ObjectDriver::SurfObjectDestroy).status());
  const CUDA_RESOURCE_DESC resource = internal::ResourceOf(array.array);
  const auto create = [&](unsigned long long* handle) {
    return driver->SurfObjectCreate(handle, &resource);
  };
  const auto reason = [&](CUresult code) { return internal::ResourceReason(code, context); };
  return internal::CreateIn(context, OwnedObject::Kind::kSurface, create, text, reason);
}

}  // namespace

absl::StatusOr<SurfaceObject> SurfaceObject::Create(const Array& array) {
  CUGUEST_ASSIGN_OR_RETURN(OwnedObject object, CreateSurface(array.context(), array.description()));
  return SurfaceObject(std::move(object));
}

absl::StatusOr<SurfaceObject> SurfaceObject::Create(const ContextRef& context, CUarray array) {
  if (array == nullptr) return Create(Array());
  CUGUEST_ASSIGN_OR_RETURN(const Array::Description description, Array::Describe(array));
  CUGUEST_ASSIGN_OR_RETURN(OwnedObject object, CreateSurface(context, description));
  return SurfaceObject(std::move(object));
}

CUGUEST_END_NAMESPACE

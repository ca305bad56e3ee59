// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 3
//
// Not for embedders. What Array (array.h), TextureObject (texture_object.h) and SurfaceObject
// (surface_object.h) have in common.

#ifndef CUGUEST_OBJECTS_INTERNAL_OWNED_OBJECT_H_
#define CUGUEST_OBJECTS_INTERNAL_OWNED_OBJECT_H_

#include <cuda.h>

#include <utility>

#include "absl/status/status.h"
#include "cuguest/context_ref.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

struct EndOutcome;  // lib/objects/memory/in_context.h

// Destroyed in the incarnation of the context that it was made in, and with that.
class CUGUEST_API OwnedObject {
 public:
  enum class Kind : unsigned char { kArray, kTexture, kSurface };

  CUGUEST_HIDE OwnedObject() noexcept = default;
  CUGUEST_HIDE OwnedObject(Kind kind, unsigned long long handle, const ContextRef& context) noexcept
      : handle_(handle), context_(context), kind_(kind) {}
  CUGUEST_HIDE OwnedObject(OwnedObject&& other) noexcept
      : handle_(std::exchange(other.handle_, 0)),
        context_(std::exchange(other.context_, ContextRef())),
        kind_(other.kind_) {}
  CUGUEST_HIDE OwnedObject& operator=(OwnedObject other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(context_, other.context_);
    std::swap(kind_, other.kind_);
    return *this;
  }
  CUGUEST_HIDE ~OwnedObject() { End(); }

  // A CUarray, CUtexObject or CUsurfObject; 0 if there is none.
  CUGUEST_HIDE unsigned long long handle() const noexcept { return handle_; }
  CUGUEST_HIDE const ContextRef& context() const noexcept { return context_; }

  absl::Status Release();
  CUGUEST_HIDE unsigned long long Leak() noexcept {
    context_ = ContextRef();
    return std::exchange(handle_, 0);
  }

 private:
  EndOutcome TryDestroy() noexcept;
  void End() noexcept;

  unsigned long long handle_ = 0;
  ContextRef context_;
  Kind kind_ = Kind::kArray;
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_OBJECTS_INTERNAL_OWNED_OBJECT_H_

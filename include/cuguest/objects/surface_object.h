// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// `SurfaceObject` owns a surface object: what a kernel writes an array through. It is created and
/// destroyed in its own context, whatever is current at the time.
///
///   shape.Flags = CUDA_ARRAY3D_SURFACE_LDST;
///   absl::StatusOr<Array> picture = Array::Create(context, shape);
///   if (!picture.ok()) return picture.status();
///   absl::StatusOr<SurfaceObject> surface = SurfaceObject::Create(*picture);
///   if (!surface.ok()) return surface.status();
///   return paint.Launch(grid, stream, surface->get());
///
/// where `paint` is a TypedKernel<void(CUsurfObject)>. As a texture object it is a number in its
/// context: see Note [A number in its context].

#ifndef CUGUEST_OBJECTS_SURFACE_OBJECT_H_
#define CUGUEST_OBJECTS_SURFACE_OBJECT_H_

#include <cuda.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/objects/array.h"
#include "cuguest/objects/internal/owned_object.h"

CUGUEST_BEGIN_NAMESPACE

/// A surface object goes with its context: when that is destroyed or reset, or its last reference
/// is released. An object whose context was destroyed or reset makes no driver calls any more; this
/// is as exact as ContextRef::IsAlive. It does not keep its array alive.
/// Requires: the array outlives the surface object, and the work that writes through it.
/// Stack:   as it was. Count: none: it does not keep its context alive.
/// Threads: distinct. Not from a stream callback (kPermissionDenied; a destructor there owes), and
///          not from a static or thread_local destructor: see Note [No driver calls after main].
/// Errors:  those of ObjectDriver::Get(), and as follows; if Create() fails, nothing is held.
///          kFailedPrecondition  the context was destroyed or reset, or the ContextRef is empty
///          kDataLoss            an earlier sticky error
///          kUnimplemented       an adopted driver (Driver::Adopt) without surface objects
/// Cost:    Create() and Release() make six driver calls if the context is current, else eight.
/// Captures: Create() invalidates none, in any mode, on any thread.
/// Source:  CUDA Driver API, cuSurfObjectCreate; docs/guarantees.md.
class [[nodiscard]] SurfaceObject {
 public:
  /// Of an array, in its context.
  /// Errors: kInvalidArgument     an empty array
  ///         kFailedPrecondition  the array was made without CUDA_ARRAY3D_SURFACE_LDST, which the
  ///                              CUDA documentation requires and the driver does not check
  [[nodiscard]] CUGUEST_API static absl::StatusOr<SurfaceObject> Create(const Array& array);

  /// Of another owner's array, which belongs to `context`.
  /// Requires: the array is alive.
  /// Errors: as above, and
  ///         kInvalidArgument     null
  ///         kFailedPrecondition  an array of another context (CUDA_ERROR_PEER_ACCESS_NOT_ENABLED)
  /// Cost:   one driver call more: that of Describe().
  [[nodiscard]] CUGUEST_API static absl::StatusOr<SurfaceObject> Create(const ContextRef& context,
                                                                        CUarray array);

  CUGUEST_HIDE SurfaceObject() noexcept = default;  // empty

  /// As Release(), its result dropped. Allocates host memory only where it owes
  /// (Incident::Kind::kOwed).
  CUGUEST_HIDE ~SurfaceObject() = default;
  CUGUEST_HIDE SurfaceObject(SurfaceObject&&) noexcept = default;
  CUGUEST_HIDE SurfaceObject& operator=(SurfaceObject&&) noexcept = default;

  /// For kernels that run in context(). 0, which is no object, if empty.
  [[nodiscard]] CUGUEST_HIDE CUsurfObject get() const noexcept { return object_.handle(); }
  [[nodiscard]] CUGUEST_HIDE bool empty() const noexcept { return get() == 0; }

  /// The incarnation of the context that it was created in; empty if the object is.
  [[nodiscard]] CUGUEST_HIDE const ContextRef& context() const noexcept {
    return object_.context();
  }

  /// Destroys it now. Succeeds if empty, and at process exit.
  /// Requires: work with the object is done.
  /// Errors: kFailedPrecondition  CUDA_ERROR_CONTEXT_IS_DESTROYED: gone with its context; now empty
  ///         the driver's code    it is still owned, and Release() may be tried again
  CUGUEST_HIDE absl::Status Release() { return object_.Release(); }

  /// Gives up ownership without a driver call.
  [[nodiscard]] CUGUEST_HIDE CUsurfObject Leak() noexcept { return object_.Leak(); }

 private:
  CUGUEST_HIDE explicit SurfaceObject(internal::OwnedObject object) noexcept
      : object_(std::move(object)) {}

  internal::OwnedObject object_;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_SURFACE_OBJECT_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// `TextureObject` owns a texture object: what a kernel reads an array, or memory, through. It is
/// created and destroyed in its own context, whatever is current at the time.
///
///   CUDA_TEXTURE_DESC sampling = {};                     // clamped, unfiltered, in elements
///   absl::StatusOr<TextureObject> texture = TextureObject::Create(picture, sampling);
///   if (!texture.ok()) return texture.status();
///   return sharpen.Launch(shape, stream, texture->get(), DevicePtr<float>(out));
///
/// where `sharpen` is a TypedKernel<void(CUtexObject, DevicePtr<float>)>.

#ifndef CUGUEST_OBJECTS_TEXTURE_OBJECT_H_
#define CUGUEST_OBJECTS_TEXTURE_OBJECT_H_

#include <cuda.h>

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/objects/array.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/objects/internal/memory_range.h"
#include "cuguest/objects/internal/owned_object.h"

CUGUEST_BEGIN_NAMESPACE

/// A texture object goes with its context: when that is destroyed or reset, or its last reference
/// is released. An object whose context was destroyed or reset makes no driver calls any more; this
/// is as exact as ContextRef::IsAlive. It keeps nothing alive.
/// Requires: the array or the memory outlives the texture object, and the work that reads through
///           it.
/// Stack:   as it was. Count: none: it does not keep its context alive.
/// Threads: distinct. Not from a stream callback (kPermissionDenied; a destructor there owes), and
///          not from a static or thread_local destructor: see Note [No driver calls after main].
/// Errors:  those of ObjectDriver::Get(), and as follows; if Create() fails, nothing is held.
///          kFailedPrecondition  the context was destroyed or reset, or the ContextRef is empty
///          kDataLoss            an earlier sticky error
///          kUnimplemented       an adopted driver (Driver::Adopt) without texture objects
/// Cost:    Create() and Release() make six driver calls if the context is current, else eight.
/// Captures: Create() invalidates none, in any mode, on any thread.
/// Source:  CUDA Driver API, cuTexObjectCreate; docs/guarantees.md.
class [[nodiscard]] TextureObject {
 public:
  /// How the memory is laid out: elements as those of an array, in rows if there is a height.
  struct Texels {
    CUGUEST_HIDE Texels() = default;

    CUarray_format format = CU_AD_FORMAT_FLOAT;
    unsigned channels = 1;
    std::size_t width = 0;
    std::size_t height = 0;  ///< 0: one dimension
    std::size_t pitch = 0;   ///< bytes from one row to the next; not used without a height
  };

  /// Of an array, in its context. `view`, if any, is what cuTexObjectCreate takes.
  /// Errors: kInvalidArgument  an empty array; or the driver refuses `sampling` or `view`. It
  ///                           hardly checks them: what else the CUDA documentation forbids (a
  ///                           filter that does not fit the format) goes unnoticed
  [[nodiscard]] CUGUEST_API static absl::StatusOr<TextureObject> Create(
      const Array& array, const CUDA_TEXTURE_DESC& sampling,
      const CUDA_RESOURCE_VIEW_DESC* view = nullptr);

  /// Of memory, in `context`, which need not own it. The driver does not check that the memory is
  /// there and long enough; this function does, as far as the view tells.
  /// Errors: as above, and
  ///         kOutOfRange          the texels reach beyond the end of `memory`
  ///         kInvalidArgument     no texels; rows that overlap; an address or pitch that is not
  ///                              aligned to the device's CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT or
  ///                              _TEXTURE_PITCH_ALIGNMENT: the message names the alignment
  ///         kUnimplemented       a format not of plain numbers of one size: use the form below
  ///         kFailedPrecondition  the context that owns the memory was destroyed or reset
  /// Cost:   one driver call more for memory of another context.
  template <typename T>
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<TextureObject> Create(
      const ContextRef& context, const DeviceView<T>& memory, const Texels& texels,
      const CUDA_TEXTURE_DESC& sampling) {
    return OfMemory(context, internal::RangeAccess::Of(memory), texels, sampling);
  }

  /// Of any resource that cuTexObjectCreate takes, in `context`: for other owners' arrays, which
  /// must belong to `context`, and for mipmapped arrays.
  /// Errors: kInvalidArgument     the driver refuses the resource, `sampling` or `view`
  ///         kFailedPrecondition  an array of another context (CUDA_ERROR_PEER_ACCESS_NOT_ENABLED)
  [[nodiscard]] CUGUEST_API static absl::StatusOr<TextureObject> Create(
      const ContextRef& context, const CUDA_RESOURCE_DESC& resource,
      const CUDA_TEXTURE_DESC& sampling, const CUDA_RESOURCE_VIEW_DESC* view = nullptr);

  CUGUEST_HIDE TextureObject() noexcept = default;  // empty

  /// As Release(), its result dropped. Allocates host memory only where it owes
  /// (Incident::Kind::kOwed).
  CUGUEST_HIDE ~TextureObject() = default;
  CUGUEST_HIDE TextureObject(TextureObject&&) noexcept = default;
  CUGUEST_HIDE TextureObject& operator=(TextureObject&&) noexcept = default;

  /// For kernels that run in context(): see Note [A number in its context]. 0 (no object) if empty.
  [[nodiscard]] CUGUEST_HIDE CUtexObject get() const noexcept { return object_.handle(); }
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
  [[nodiscard]] CUGUEST_HIDE CUtexObject Leak() noexcept { return object_.Leak(); }

 private:
  CUGUEST_HIDE explicit TextureObject(internal::OwnedObject object) noexcept
      : object_(std::move(object)) {}

  CUGUEST_API static absl::StatusOr<TextureObject> OfMemory(const ContextRef& context,
                                                            const internal::MemoryRange& memory,
                                                            const Texels& texels,
                                                            const CUDA_TEXTURE_DESC& sampling);

  internal::OwnedObject object_;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_TEXTURE_OBJECT_H_

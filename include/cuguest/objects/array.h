// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// `Array` owns a CUDA array: memory without an address, for texture and surface objects. It is
/// created and destroyed in its own context, whatever is current at the time.
///
///   CUDA_ARRAY3D_DESCRIPTOR shape = {};
///   shape.Width = 640;
///   shape.Height = 480;
///   shape.Format = CU_AD_FORMAT_FLOAT;
///   shape.NumChannels = 1;
///   absl::StatusOr<Array> picture = Array::Create(context, shape);
///   if (!picture.ok()) return picture.status();
///   absl::Status status = Upload(*picture, HostSpan<const float>(pixels));  // all of it
///
/// There is no owner of a mipmapped array: a context that is destroyed or reset around one corrupts
/// the heap (docs/guarantees.md), which an owner cannot prevent.

#ifndef CUGUEST_OBJECTS_ARRAY_H_
#define CUGUEST_OBJECTS_ARRAY_H_

#include <cuda.h>

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/objects/host_span.h"
#include "cuguest/objects/internal/owned_object.h"
#include "cuguest/objects/stream.h"

CUGUEST_BEGIN_NAMESPACE

/// An array goes with its context: when that is destroyed or reset, or its last reference is
/// released. An Array whose context was destroyed or reset makes no driver calls any more, because
/// the driver crashes on the handle of an array whose context came back; this is as exact as
/// ContextRef::IsAlive.
/// Requires: an array outlives its texture and surface objects, which do not keep it alive, and the
///           work that uses them.
/// Stack:   as it was. Count: none: it does not keep its context alive.
/// Threads: distinct. Not from a stream callback (kPermissionDenied; a destructor there owes), and
///          not from a static or thread_local destructor: see Note [No driver calls after main].
/// Errors:  those of ObjectDriver::Get(), and as follows; if Create() fails, nothing is held.
///          kFailedPrecondition  the context was destroyed or reset, or the ContextRef is empty
///          kDataLoss            an earlier sticky error
///          kUnimplemented       an adopted driver (Driver::Adopt) without arrays
/// Cost:    Create() and Release() make six driver calls if the context is current, else eight.
/// Source:  CUDA Driver API, cuArray3DCreate, cuArrayDestroy; docs/guarantees.md.
class [[nodiscard]] Array {
 public:
  /// What the driver knows of a CUDA array. Its memory has no address: copies, and texture and
  /// surface objects, read and write its elements. The driver reports neither which context an
  /// array belongs to nor how much its device has set aside for it.
  struct Description {
    CUGUEST_HIDE Description() = default;

    CUarray array = nullptr;
    std::size_t width = 0;  ///< elements; a height or depth of 0 is a dimension that it has not
    std::size_t height = 0;
    std::size_t depth = 0;  ///< or layers, or faces, by the flags
    CUarray_format format = CU_AD_FORMAT_UNSIGNED_INT8;
    unsigned channels = 0;
    unsigned flags = 0;  ///< CUDA_ARRAY3D_*

    /// Of all elements; 0 for formats other than plain numbers of one size per channel.
    std::size_t bytes = 0;

    [[nodiscard]] CUGUEST_API std::string ToString() const;  ///< one line
  };

  /// Of any array. Levels of a mipmapped array are arrays too.
  /// Requires: the handle is alive: for an array that was destroyed, or went with its context, the
  ///           driver reads freed memory.
  /// Stack:   never touched; no context is needed.
  /// Threads: any; not from a stream callback: kPermissionDenied. Invalidates no capture.
  /// Errors:  those of ObjectDriver::Get(), and kInvalidArgument: null.
  /// Cost:    one driver call.
  /// Source:  CUDA Driver API, cuArray3DGetDescriptor; docs/guarantees.md.
  [[nodiscard]] CUGUEST_API static absl::StatusOr<Description> Describe(CUarray array);

  /// Which part of an array is copied, and how the memory at the other end is laid out.
  struct Part {
    CUGUEST_HIDE Part() = default;

    /// Where it begins, in elements, rows and slices (layers, faces).
    std::size_t x = 0;
    std::size_t y = 0;
    std::size_t z = 0;

    /// How much it is; 0: up to the end of the array.
    std::size_t width = 0;
    std::size_t height = 0;
    std::size_t depth = 0;

    /// In memory: bytes from one row to the next, rows from one slice to the next; 0: packed.
    std::size_t pitch = 0;
    std::size_t rows = 0;
  };

  /// Creates an array as cuArray3DCreate does, not initialised: of one, two or three dimensions,
  /// layered or a cubemap, with its flags (CUDA_ARRAY3D_*). Invalidates no capture, in any mode, on
  /// any thread. It may wait for the device. The array belongs to `context`, even to a green
  /// context: which context the driver creates it in then was not measured.
  /// Errors: kInvalidArgument    no array can have this shape, which the message contains
  ///         kResourceExhausted  out of memory
  [[nodiscard]] CUGUEST_API static absl::StatusOr<Array> Create(
      const ContextRef& context, const CUDA_ARRAY3D_DESCRIPTOR& shape);

  CUGUEST_HIDE Array() noexcept = default;  // empty

  /// As Release(), its result dropped. Allocates host memory only where it owes
  /// (Incident::Kind::kOwed).
  CUGUEST_HIDE ~Array() = default;
  CUGUEST_HIDE Array(Array&& other) noexcept
      : object_(std::move(other.object_)), shape_(std::exchange(other.shape_, {})) {}
  CUGUEST_HIDE Array& operator=(Array&& other) noexcept {
    object_ = std::move(other.object_);
    shape_ = std::exchange(other.shape_, {});
    return *this;
  }

  /// nullptr if empty. Valid until the array is destroyed; moving the object leaves it valid.
  [[nodiscard]] CUGUEST_HIDE CUarray get() const noexcept { return shape_.array; }
  [[nodiscard]] CUGUEST_HIDE bool empty() const noexcept { return get() == nullptr; }

  /// What Describe() returns of it, without a driver call.
  [[nodiscard]] CUGUEST_HIDE const Description& description() const noexcept { return shape_; }

  /// The incarnation of the context that it was created in; empty if the array is.
  [[nodiscard]] CUGUEST_HIDE const ContextRef& context() const noexcept {
    return object_.context();
  }

  /// Destroys it now. Succeeds if empty, and at process exit.
  /// Requires: work with the array is done.
  /// Errors: kFailedPrecondition  CUDA_ERROR_CONTEXT_IS_DESTROYED: gone with its context; now empty
  ///         the driver's code    it is still owned, and Release() may be tried again
  CUGUEST_API absl::Status Release();

  /// Gives up ownership without a driver call.
  [[nodiscard]] CUGUEST_HIDE CUarray Leak() noexcept {
    static_cast<void>(object_.Leak());
    return std::exchange(shape_, {}).array;
  }

 private:
  CUGUEST_HIDE Array(internal::OwnedObject object, const Description& shape) noexcept
      : object_(std::move(object)), shape_(shape) {}

  internal::OwnedObject object_;
  Description shape_;
};

namespace internal {

CUGUEST_API absl::Status CopyToArray(const Array& to, const CopyEnd& from, const Array::Part& part,
                                     const StreamRef* stream = nullptr);
CUGUEST_API absl::Status CopyFromArray(const CopyEnd& to, const Array& from,
                                       const Array::Part& part, const StreamRef* stream = nullptr);

}  // namespace internal

/// Copy(), Upload(), Download() of arrays and their Async forms
///
/// Copies between memory, of the device or the host, and an array or the part of it that `part`
/// names. Where neither a pitch nor rows are given the memory has as many bytes as the part; else
/// at least as many as lead to the end of its last row. An element of the memory is one of the
/// array, or a part of one (a channel, a byte). The memory and the stream may belong to another
/// device, also without peer access. See Note [Where a copy runs] (without a stream, in the array's
/// context), Note [When a copy is done] and, for captures, Note [While something captures].
/// Stack:   as it was.
/// Threads: any; not from a stream callback: kPermissionDenied.
/// Errors:  those of Copy() in copy.h, and
///          kOutOfRange       the array does not have the part; the message contains both
///          kInvalidArgument  the memory has another size than the part needs, or its elements do
///                            not fit the array's; a pitch shorter than a row, or fewer rows than a
///                            slice, or 2^32 and more where there are several; an empty array
///          kUnimplemented    the array's format is none of plain numbers of one size per channel
///                            (use cuMemcpy3D); an adopted driver without the function
/// Cost:    driver calls: eight if the array's context is current, else ten; with a stream four if
///          its context is current, else six. One more for each end that another context owns.
/// Source:  CUDA Driver API, cuMemcpy3D; docs/guarantees.md.
template <typename T>
CUGUEST_HIDE absl::Status Copy(const Array& to, const DeviceView<T>& from,
                               const Array::Part& part = {}) {
  return internal::CopyToArray(to, internal::EndOf(from), part);
}
template <typename T>
CUGUEST_HIDE absl::Status Copy(const DeviceView<T>& to, const Array& from,
                               const Array::Part& part = {}) {
  return internal::CopyFromArray(internal::WrittenEnd(to), from, part);
}
template <typename T>
CUGUEST_HIDE absl::Status Upload(const Array& to, const HostSpan<T>& from,
                                 const Array::Part& part = {}) {
  return internal::CopyToArray(to, internal::EndOf(from), part);
}
template <typename T>
CUGUEST_HIDE absl::Status Download(const Array& from, const HostSpan<T>& to,
                                   const Array::Part& part = {}) {
  static_assert(!std::is_const_v<T>, "a span of const is only read");
  return internal::CopyFromArray(internal::EndOf(to), from, part);
}

template <typename T>
CUGUEST_HIDE absl::Status CopyAsync(const Array& to, const DeviceView<T>& from,
                                    const StreamRef& stream, const Array::Part& part = {}) {
  return internal::CopyToArray(to, internal::EndOf(from), part, &stream);
}
template <typename T>
CUGUEST_HIDE absl::Status CopyAsync(const DeviceView<T>& to, const Array& from,
                                    const StreamRef& stream, const Array::Part& part = {}) {
  return internal::CopyFromArray(internal::WrittenEnd(to), from, part, &stream);
}
template <typename T>
CUGUEST_HIDE absl::Status UploadAsync(const Array& to, const HostSpan<T>& from,
                                      const StreamRef& stream, const Array::Part& part = {}) {
  return internal::CopyToArray(to, internal::EndOf(from), part, &stream);
}
template <typename T>
CUGUEST_HIDE absl::Status DownloadAsync(const Array& from, const HostSpan<T>& to,
                                        const StreamRef& stream, const Array::Part& part = {}) {
  static_assert(!std::is_const_v<T>, "a span of const is only read");
  return internal::CopyFromArray(internal::EndOf(to), from, part, &stream);
}

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_ARRAY_H_

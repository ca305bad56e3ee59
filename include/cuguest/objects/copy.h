// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// Copies and fills that find the right context by themselves, whatever is current: between device
/// memory of any contexts and devices, and between it and the host.
///
///   absl::Status status = Upload(view, values);                      // done when it returns
///   if (status.ok()) status = CopyAsync(other_view, view, stream);   // done in the stream
///   if (status.ok()) status = Zero(scratch);
///   absl::StatusOr<std::vector<float>> back = Download(view);

#ifndef CUGUEST_OBJECTS_COPY_H_
#define CUGUEST_OBJECTS_COPY_H_

#include <cuda.h>

#include <cstddef>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/export.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/objects/host_span.h"
#include "cuguest/objects/internal/memory_range.h"
#include "cuguest/objects/stream.h"

CUGUEST_BEGIN_NAMESPACE

namespace internal {

// One end of a copy: in host memory, or on a device.
struct CopyEnd {
  CUdeviceptr address;
  std::size_t count;         // elements
  std::size_t size;          // of an element
  const MemoryRange* range;  // nullptr: host memory
};

template <typename T>
CUGUEST_HIDE CopyEnd EndOf(const DeviceView<T>& view) noexcept {
  return {view.get(), view.size(), sizeof(T), &RangeAccess::Of(view)};
}
template <typename T>
CUGUEST_HIDE CopyEnd EndOf(const HostSpan<T>& span) noexcept {
  return {internal::AddressOf(span.data()), span.size(), sizeof(T), nullptr};
}
template <typename T>
CUGUEST_HIDE CopyEnd WrittenEnd(const DeviceView<T>& view) noexcept {
  static_assert(!std::is_const_v<T>, "a view of const is only read");
  return internal::EndOf(view);
}

// Without a stream it is done when the call returns.
CUGUEST_API absl::Status CopyElements(const CopyEnd& to, const CopyEnd& from,
                                      const StreamRef* stream = nullptr);

// In the order of the stream, and done when it returns.
CUGUEST_API absl::Status CopyElementsAndWait(const CopyEnd& to, const CopyEnd& from,
                                             const StreamRef& stream);

struct FillValue {
  unsigned bits;
  std::size_t size;
};

template <typename T>
CUGUEST_HIDE FillValue ValueOf(const T& value) noexcept {
  static_assert((sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4) && alignof(T) == sizeof(T),
                "the driver fills with elements of 1, 2 or 4 bytes, aligned to their size");
  FillValue result{0, sizeof(T)};
  __builtin_memcpy(&result.bits, &value, sizeof(T));
  return result;
}

CUGUEST_API absl::Status FillElements(const CopyEnd& to, const FillValue& value,
                                      const StreamRef* stream = nullptr);

template <typename T>
using NotDeduced = std::common_type_t<T>;

}  // namespace internal

/// Copy(), Upload(), Download(), Fill(), Zero() and their Async forms
///
/// Copy() is between device memory, the destination first, as in cuMemcpy. Upload() is from the
/// host and Download() to it, the view first. Both ends have the same number of elements. Copying
/// nothing succeeds, without a driver call. See Note [Where a copy runs], Note [When a copy is
/// done] and Note [While something captures]. An asynchronous upload from a temporary container,
/// which may be gone before the device has read it, does not compile (see Note [Temporary
/// containers]).
/// Requires: the ends do not overlap: the order of copying is not promised.
/// Stack:   as it was.
/// Threads: any; not from a stream callback: kPermissionDenied.
/// Errors:  those of ObjectDriver::Get(), and
///          kInvalidArgument     the ends differ in their number of elements; the host's is null;
///                               freed memory (as far as the driver notices: its address may be in
///                               use again, and in a capture it looks when the graph is
///                               instantiated); memory that the device it runs on has no access
///                               to, see Note [Where a copy runs]; a fill of memory that the
///                               stream's device may not write, also in a capture; an empty
///                               StreamRef
///          kFailedPrecondition  CUDA_ERROR_CONTEXT_IS_DESTROYED: a context that owns memory, or
///                               the stream's, was destroyed or reset; pool or virtual memory, and
///                               no context on its device or of the other end; or a capture
///          kDataLoss            an earlier sticky error
///          Nothing was copied then, except that a sticky error may come in the middle of a copy.
/// Cost:    driver calls: eight if the context it runs in is current, else ten, and two to eight
///          more for pool and virtual memory; with a stream four if its context is current, else
///          six. One more for each end that another context owns, for a Download() to managed or
///          virtual memory, and for a fill on a stream of another context than the memory's (two if
///          that is on another device, twelve in a capture). Text is made on failure only.
/// Source:  CUDA Driver API, cuMemcpyHtoD and its like, cuMemsetD8 and its like.

template <typename T>
CUGUEST_HIDE absl::Status Copy(const DeviceView<T>& to,
                               const internal::NotDeduced<DeviceView<const T>>& from) {
  return internal::CopyElements(internal::WrittenEnd(to), internal::EndOf(from));
}
template <typename T>
CUGUEST_HIDE absl::Status CopyAsync(const DeviceView<T>& to,
                                    const internal::NotDeduced<DeviceView<const T>>& from,
                                    const StreamRef& stream) {
  return internal::CopyElements(internal::WrittenEnd(to), internal::EndOf(from), &stream);
}

/// Copies from the host.
template <typename T>
CUGUEST_HIDE absl::Status Upload(const DeviceView<T>& to,
                                 const internal::NotDeduced<HostSpan<const T>>& from) {
  return internal::CopyElements(internal::WrittenEnd(to), internal::EndOf(from));
}
template <typename T>
CUGUEST_HIDE absl::Status UploadAsync(const DeviceView<T>& to,
                                      const internal::NotDeduced<HostSpan<const T>>& from,
                                      const StreamRef& stream) {
  return internal::CopyElements(internal::WrittenEnd(to), internal::EndOf(from), &stream);
}
template <typename T, typename Host, typename = internal::IfEndsTooEarly<T, Host>>
absl::Status UploadAsync(const DeviceView<T>& to, Host&& from, const StreamRef& stream) = delete;

/// Copies to the host.
template <typename T>
CUGUEST_HIDE absl::Status Download(
    const DeviceView<T>& from, const internal::NotDeduced<HostSpan<std::remove_const_t<T>>>& to) {
  return internal::CopyElements(internal::EndOf(to), internal::EndOf(from));
}
template <typename T>
CUGUEST_HIDE absl::Status DownloadAsync(
    const DeviceView<T>& from, const internal::NotDeduced<HostSpan<std::remove_const_t<T>>>& to,
    const StreamRef& stream) {
  return internal::CopyElements(internal::EndOf(to), internal::EndOf(from), &stream);
}
/// Behind what was submitted to `stream`, and done when it returns: DownloadAsync() and
/// StreamRef::Synchronize(). Refused, and nothing is submitted, while the stream captures.
/// Cost: that of both, and two driver calls.
template <typename T>
CUGUEST_HIDE absl::Status Download(const DeviceView<T>& from,
                                   const internal::NotDeduced<HostSpan<std::remove_const_t<T>>>& to,
                                   const StreamRef& stream) {
  return internal::CopyElementsAndWait(internal::EndOf(to), internal::EndOf(from), stream);
}
namespace internal {
template <typename T, typename... Stream>
CUGUEST_HIDE absl::StatusOr<std::vector<std::remove_const_t<T>>> DownloadAll(
    const DeviceView<T>& from, const Stream&... stream) {
  static_assert(!std::is_same_v<std::remove_const_t<T>, bool>,
                "a std::vector<bool> has no elements to copy to: give a HostSpan<bool>");
  std::vector<std::remove_const_t<T>> values(from.size());
  absl::Status copied = ::cuguest::Download(from, values, stream...);
  if (!copied.ok()) return copied;
  return values;
}
}  // namespace internal

/// All elements of `from`, in a vector of their own; behind what was submitted to a stream, if one
/// is given.
template <typename T>
[[nodiscard]] CUGUEST_HIDE absl::StatusOr<std::vector<std::remove_const_t<T>>> Download(
    const DeviceView<T>& from) {
  return internal::DownloadAll(from);
}
template <typename T>
[[nodiscard]] CUGUEST_HIDE absl::StatusOr<std::vector<std::remove_const_t<T>>> Download(
    const DeviceView<T>& from, const StreamRef& stream) {
  return internal::DownloadAll(from, stream);
}

/// Every element becomes `value`. T has 1, 2 or 4 bytes.
template <typename T>
CUGUEST_HIDE absl::Status Fill(const DeviceView<T>& to, const internal::NotDeduced<T>& value) {
  return internal::FillElements(internal::WrittenEnd(to), internal::ValueOf(value));
}
template <typename T>
CUGUEST_HIDE absl::Status FillAsync(const DeviceView<T>& to, const internal::NotDeduced<T>& value,
                                    const StreamRef& stream) {
  return internal::FillElements(internal::WrittenEnd(to), internal::ValueOf(value), &stream);
}

/// Every byte becomes 0.
template <typename T>
CUGUEST_HIDE absl::Status Zero(const DeviceView<T>& to) {
  return internal::FillElements(internal::WrittenEnd(to), internal::FillValue{0, 1});
}
template <typename T>
CUGUEST_HIDE absl::Status ZeroAsync(const DeviceView<T>& to, const StreamRef& stream) {
  return internal::FillElements(internal::WrittenEnd(to), internal::FillValue{0, 1}, &stream);
}

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_COPY_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// `PitchedView<T>` is a picture in memory that a device can reach: rows of elements, each a pitch
/// of bytes behind the one before it, as decoders hand out their frames. One copy moves all rows.
///
///   absl::Status Take(CUdeviceptr frame, std::size_t pitch, const DeviceView<char>& mine) {
///     CUGUEST_ASSIGN_OR_RETURN(
///         const PitchedView<const char> from,
///         PitchedView<const char>::Borrow(frame, width, height, pitch));  // of any context
///     CUGUEST_ASSIGN_OR_RETURN(const PitchedView<char> to,
///                              PitchedView<char>::Of(mine, width, height));
///     return Copy(to, from);

#ifndef CUGUEST_OBJECTS_PITCHED_VIEW_H_
#define CUGUEST_OBJECTS_PITCHED_VIEW_H_

#include <cuda.h>

#include <cstddef>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/export.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/objects/host_span.h"
#include "cuguest/objects/internal/memory_range.h"
#include "cuguest/objects/stream.h"

CUGUEST_BEGIN_NAMESPACE

namespace internal {

struct Rows {
  std::size_t width;  // elements
  std::size_t height;
  std::size_t pitch;  // bytes
};

// One end of a copy of rows. A host's has the elements that there are, and a pitch of 0 if they are
// packed.
struct RowsEnd {
  CopyEnd memory;
  Rows rows;
};

// `rows` with its pitch, of memory at `pointer`; and of a view that has `range`.
CUGUEST_API absl::StatusOr<MemoryRange> BorrowRows(CUdeviceptr pointer, const ElementType& type,
                                                   Rows* rows, bool read_only);
CUGUEST_API absl::StatusOr<MemoryRange> RowsOf(const MemoryRange& range, const ElementType& type,
                                               Rows* rows);
// The part `part` of `rows` from `x` and `y` on, which gets their pitch.
CUGUEST_API absl::StatusOr<MemoryRange> PartOfRows(const MemoryRange& range,
                                                   const ElementType& type, const Rows& rows,
                                                   std::size_t x, std::size_t y, Rows* part);
// Without a stream it is done when the call returns.
CUGUEST_API absl::Status CopyRows(const RowsEnd& to, const RowsEnd& from,
                                  const StreamRef* stream = nullptr);

}  // namespace internal

/// It keeps nothing alive, as a DeviceView. Of no elements, no rows or both it is empty: 0, and
/// nullptr.
/// Stack:   never touched, but see Describe() in memory.h.
/// Threads: value.
template <typename T>
class PitchedView {
 public:
  /// `height` rows of `width` elements from `pointer` on, `pitch` bytes apart; 0: the rows are
  /// packed. Of the last row only its elements have to be there. Whose memory it may be, and of
  /// which kind, is as for DeviceView::Borrow.
  /// Errors: those of DeviceView::Borrow, and
  ///         kInvalidArgument  the pitch is smaller than a row, whose bytes would then be the next
  ///                           row's too, or not a multiple of T's alignment; rows that reach
  ///                           beyond the end of the address space
  /// Cost:   that of DeviceView::Borrow.
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<PitchedView> Borrow(CUdeviceptr pointer,
                                                                       std::size_t width,
                                                                       std::size_t height,
                                                                       std::size_t pitch) {
    internal::Rows rows{width, height, pitch};
    absl::StatusOr<internal::MemoryRange> range =
        internal::BorrowRows(pointer, kElements, &rows, std::is_const_v<T>);
    if (!range.ok()) return range.status();
    return PitchedView(*range, rows);
  }
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<PitchedView> Borrow(T* pointer,
                                                                       std::size_t width,
                                                                       std::size_t height,
                                                                       std::size_t pitch) {
    return Borrow(internal::AddressOf(pointer), width, height, pitch);
  }

  /// The same of a view's memory, from its first element on. Calls no driver.
  /// Errors: kInvalidArgument  as Borrow(); the view has fewer bytes
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<PitchedView> Of(const DeviceView<T>& view,
                                                                   std::size_t width,
                                                                   std::size_t height,
                                                                   std::size_t pitch = 0) {
    internal::Rows rows{width, height, pitch};
    absl::StatusOr<internal::MemoryRange> range =
        internal::RowsOf(internal::RangeAccess::Of(view), kElements, &rows);
    if (!range.ok()) return range.status();
    return PitchedView(*range, rows);
  }

  CUGUEST_HIDE constexpr PitchedView() noexcept = default;  // empty

  template <typename U, typename = std::enable_if_t<std::is_same_v<const U, T>>,
            CUGUEST_HIDE_TEMPLATE>
  CUGUEST_HIDE PitchedView(const PitchedView<U>& other) noexcept
      : range_(other.range_), rows_(other.rows_) {}

  /// As those of a DeviceView.
  [[nodiscard]] CUGUEST_HIDE CUdeviceptr get() const noexcept { return range_.pointer; }
  [[nodiscard]] CUGUEST_HIDE T* data() const noexcept {
    return reinterpret_cast<T*>(range_.pointer);
  }
  [[nodiscard]] CUGUEST_HIDE bool empty() const noexcept { return range_.bytes == 0; }
  [[nodiscard]] CUGUEST_HIDE const ContextRef& context() const noexcept { return range_.context; }
  [[nodiscard]] CUGUEST_HIDE Device device() const noexcept { return range_.device; }

  /// Elements of a row; rows; bytes from one row to the next.
  [[nodiscard]] CUGUEST_HIDE std::size_t width() const noexcept { return rows_.width; }
  [[nodiscard]] CUGUEST_HIDE std::size_t height() const noexcept { return rows_.height; }
  [[nodiscard]] CUGUEST_HIDE std::size_t pitch() const noexcept { return rows_.pitch; }

  /// The part of `width` elements and `height` rows from element `x` of row `y` on. Calls no
  /// driver.
  /// Errors: kOutOfRange  the view does not have it; the text has all numbers
  [[nodiscard]] CUGUEST_HIDE absl::StatusOr<PitchedView> Subview(std::size_t x, std::size_t y,
                                                                 std::size_t width,
                                                                 std::size_t height) const {
    internal::Rows part{width, height, 0};
    absl::StatusOr<internal::MemoryRange> range =
        internal::PartOfRows(range_, kElements, rows_, x, y, &part);
    if (!range.ok()) return range.status();
    return PitchedView(*range, part);
  }

 private:
  template <typename U>
  friend class PitchedView;
  friend struct internal::RangeAccess;

  CUGUEST_HIDE static constexpr internal::ElementType kElements = {sizeof(T), alignof(T)};

  CUGUEST_HIDE PitchedView(const internal::MemoryRange& range, const internal::Rows& rows) noexcept
      : range_(range), rows_(rows) {}

  internal::MemoryRange range_;
  internal::Rows rows_ = {};
};

namespace internal {

template <typename T>
CUGUEST_HIDE RowsEnd RowsEndOf(const PitchedView<T>& view) noexcept {
  const Rows rows{view.width(), view.height(), view.pitch()};
  return {{view.get(), rows.width * rows.height, sizeof(T), &RangeAccess::Of(view)}, rows};
}
template <typename T>
CUGUEST_HIDE RowsEnd WrittenRows(const PitchedView<T>& view) noexcept {
  static_assert(!std::is_const_v<T>, "a view of const is only read");
  return internal::RowsEndOf(view);
}
// As many as of `view`.
template <typename T, typename U>
CUGUEST_HIDE RowsEnd HostRows(const HostSpan<T>& span, std::size_t pitch,
                              const PitchedView<U>& view) noexcept {
  return {internal::EndOf(span), {view.width(), view.height(), pitch}};
}

}  // namespace internal

/// Copy(), Upload(), Download() and their Async forms
///
/// As those of copy.h, of pictures of the same width and height, whose pitches may differ; what is
/// between the rows is neither read nor written. `pitch` is the host's, in bytes: with 0 its rows
/// are packed, and it has as many elements as the view; with another it may have more than the
/// picture.
/// Stack:   as it was.
/// Threads: any; not from a stream callback: kPermissionDenied.
/// Errors:  those of copy.h, and
///          kInvalidArgument  the pictures, or a packed host span, are of other sizes; the host's
///                            pitch is smaller than a row; its span too short
///          kUnimplemented    an adopted driver (Driver::Adopt) without cuMemcpy3D
/// Cost:    that of copy.h, however many rows there are.
/// Source:  CUDA Driver API, cuMemcpy3D; docs/guarantees.md.

template <typename T>
CUGUEST_HIDE absl::Status Copy(const PitchedView<T>& to,
                               const internal::NotDeduced<PitchedView<const T>>& from) {
  return internal::CopyRows(internal::WrittenRows(to), internal::RowsEndOf(from));
}
template <typename T>
CUGUEST_HIDE absl::Status CopyAsync(const PitchedView<T>& to,
                                    const internal::NotDeduced<PitchedView<const T>>& from,
                                    const StreamRef& stream) {
  return internal::CopyRows(internal::WrittenRows(to), internal::RowsEndOf(from), &stream);
}

/// Copies from the host.
template <typename T>
CUGUEST_HIDE absl::Status Upload(const PitchedView<T>& to,
                                 const internal::NotDeduced<HostSpan<const T>>& from,
                                 std::size_t pitch = 0) {
  return internal::CopyRows(internal::WrittenRows(to), internal::HostRows(from, pitch, to));
}
template <typename T>
CUGUEST_HIDE absl::Status UploadAsync(const PitchedView<T>& to,
                                      const internal::NotDeduced<HostSpan<const T>>& from,
                                      const StreamRef& stream, std::size_t pitch = 0) {
  return internal::CopyRows(internal::WrittenRows(to), internal::HostRows(from, pitch, to),
                            &stream);
}
template <typename T, typename Host, typename = internal::IfEndsTooEarly<T, Host>>
absl::Status UploadAsync(const PitchedView<T>& to, Host&& from, const StreamRef& stream,
                         std::size_t pitch = 0) = delete;

/// Copies to the host.
template <typename T>
CUGUEST_HIDE absl::Status Download(const PitchedView<T>& from,
                                   const internal::NotDeduced<HostSpan<std::remove_const_t<T>>>& to,
                                   std::size_t pitch = 0) {
  return internal::CopyRows(internal::HostRows(to, pitch, from), internal::RowsEndOf(from));
}
template <typename T>
CUGUEST_HIDE absl::Status DownloadAsync(
    const PitchedView<T>& from, const internal::NotDeduced<HostSpan<std::remove_const_t<T>>>& to,
    const StreamRef& stream, std::size_t pitch = 0) {
  return internal::CopyRows(internal::HostRows(to, pitch, from), internal::RowsEndOf(from),
                            &stream);
}

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_PITCHED_VIEW_H_

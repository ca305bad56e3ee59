// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 3
/// \file
/// `DeviceView<T>` is a span of memory that a device can reach: an address, a number of elements,
/// and whose it is. `Borrow` makes one of another owner's pointer, which it checks first.
///
///   absl::Status Scale(float* values, size_t count) {          // whose pointer?
///     absl::StatusOr<DeviceView<float>> view = DeviceView<float>::Borrow(values, count);
///     if (!view.ok()) return view.status();                    // host memory, too short, ...
///     ContextGuard guard(view->context());

#ifndef CUGUEST_OBJECTS_DEVICE_VIEW_H_
#define CUGUEST_OBJECTS_DEVICE_VIEW_H_

#include <cuda.h>

#include <cstddef>
#include <type_traits>

#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/export.h"
#include "cuguest/objects/internal/memory_range.h"

CUGUEST_BEGIN_NAMESPACE

/// It keeps nothing alive. If a context owns the memory, the copies and fills of copy.h notice that
/// it was destroyed or reset. A view of const T is only read; a DeviceView<T> converts to one.
/// Requires: the memory's owner keeps it for as long as the view is used.
/// Stack:   never touched, but see Describe() in memory.h.
/// Threads: value.
template <typename T>
class DeviceView {
  static_assert(sizeof(T) != 0, "elements of no bytes cannot be counted");
  static_assert(std::is_trivially_copyable_v<T>,
                "what is copied to and from a device byte by byte must be trivially copyable");

 public:
  CUGUEST_HIDE constexpr DeviceView() noexcept = default;  // no elements

  /// A view of `count` elements from `pointer` on: device, managed, pinned host, pool or virtual
  /// memory, of any context or device; pageable memory of the host where the devices reach it.
  /// Virtual memory may span any number of adjacent mappings, as expandable segments do, also of
  /// different devices' memory; the view is then of the first mapping's device, which must have
  /// access to each. Whether a pool on the host lets a device use its memory is not known. No
  /// elements: an empty view; the pointer is not checked.
  /// Errors: those of Describe(), and
  ///         kInvalidArgument     memory unknown to CUDA (null, plain host, freed, gone with its
  ///                              context), too short, or not aligned for T; more bytes than a
  ///                              size_t holds. The message says what is there.
  ///         kFailedPrecondition  virtual memory of which the view's device may not read some, or
  ///                              may not write some for non-const T; the text has the mapping
  /// Cost:   that of Describe(). For each further mapping two driver calls, and a third where it is
  ///         of another device's memory; mappings are of 2 MiB at least. Three more for memory that
  ///         a pool has on the host.
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<DeviceView> Borrow(CUdeviceptr pointer,
                                                                      std::size_t count) {
    absl::StatusOr<internal::MemoryRange> range =
        internal::BorrowRange(pointer, kElements, count, std::is_const_v<T>);
    if (!range.ok()) return range.status();
    return DeviceView(*range);
  }
  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<DeviceView> Borrow(T* pointer,
                                                                      std::size_t count) {
    return Borrow(internal::AddressOf(pointer), count);
  }

  template <typename U, typename = std::enable_if_t<std::is_same_v<const U, T>>,
            CUGUEST_HIDE_TEMPLATE>
  CUGUEST_HIDE DeviceView(const DeviceView<U>& other) noexcept : range_(other.range_) {}

  /// For the driver API, and for kernels and the runtime; 0 and nullptr if empty. For pinned host
  /// memory: the address on the device's side.
  [[nodiscard]] CUGUEST_HIDE CUdeviceptr get() const noexcept { return range_.pointer; }
  [[nodiscard]] CUGUEST_HIDE T* data() const noexcept {
    return reinterpret_cast<T*>(range_.pointer);
  }

  /// Elements; bytes.
  [[nodiscard]] CUGUEST_HIDE std::size_t size() const noexcept { return range_.bytes / sizeof(T); }
  [[nodiscard]] CUGUEST_HIDE std::size_t size_bytes() const noexcept { return range_.bytes; }
  [[nodiscard]] CUGUEST_HIDE bool empty() const noexcept { return range_.bytes == 0; }

  /// The incarnation of the context that the memory belongs to; empty for pool and virtual memory,
  /// which belong to device(), and for pageable memory, which belongs to the host.
  [[nodiscard]] CUGUEST_HIDE const ContextRef& context() const noexcept { return range_.context; }
  [[nodiscard]] CUGUEST_HIDE Device device() const noexcept { return range_.device; }

  /// `count` elements from element `offset` on. Calls no driver.
  /// Errors: kOutOfRange  the view does not have them; the text has all three numbers
  [[nodiscard]] CUGUEST_HIDE absl::StatusOr<DeviceView> Subview(std::size_t offset,
                                                                std::size_t count) const {
    absl::StatusOr<internal::MemoryRange> range =
        internal::Subrange(range_, kElements, offset, count);
    if (!range.ok()) return range.status();
    return DeviceView(*range);
  }

 private:
  template <typename U>
  friend class DeviceView;
  template <typename U>
  friend class DeviceBuffer;
  template <typename U>
  friend class ScratchBuffer;
  friend struct internal::RangeAccess;

  CUGUEST_HIDE static constexpr internal::ElementType kElements = {sizeof(T), alignof(T)};

  CUGUEST_HIDE explicit DeviceView(const internal::MemoryRange& range) noexcept : range_(range) {}

  internal::MemoryRange range_;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_DEVICE_VIEW_H_

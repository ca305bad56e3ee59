// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 3
/// \file
/// `DevicePtr<T>` is a device pointer as a kernel's parameter: 8 bytes, without an owner.
///
///   absl::Status status = Launch(kernel, shape, stream, DevicePtr(buffer.view()), n);
///
///   using Sum = TypedKernel<void(DevicePtr<const float>, int)>;   // converts from the view itself

#ifndef CUGUEST_OBJECTS_DEVICE_PTR_H_
#define CUGUEST_OBJECTS_DEVICE_PTR_H_

#include <cuda.h>

#include <type_traits>

#include "cuguest/export.h"
#include "cuguest/objects/device_view.h"

CUGUEST_BEGIN_NAMESPACE

/// Keeps nothing alive, checks nothing, and unlike DeviceView does not know whose memory it is.
/// Threads: value.
template <typename T>
class DevicePtr {
 public:
  CUGUEST_HIDE constexpr DevicePtr() noexcept = default;  // null

  /// Explicit, since the type does not show that the pointer is one for the device. Where it may be
  /// anything, see DeviceView::Borrow.
  /// Requires: the pointer is one for the device.
  CUGUEST_HIDE constexpr explicit DevicePtr(T* pointer) noexcept : pointer_(pointer) {}
  CUGUEST_HIDE explicit DevicePtr(CUdeviceptr pointer) noexcept
      : pointer_(reinterpret_cast<T*>(pointer)) {}

  /// Null if the view is empty.
  CUGUEST_HIDE DevicePtr(const DeviceView<T>& view) noexcept : pointer_(view.data()) {}

  /// To const.
  template <typename U, typename = std::enable_if_t<std::is_same_v<const U, T>>,
            CUGUEST_HIDE_TEMPLATE>
  CUGUEST_HIDE constexpr DevicePtr(const DevicePtr<U>& other) noexcept : pointer_(other.data()) {}
  template <typename U, typename = std::enable_if_t<std::is_same_v<const U, T>>,
            CUGUEST_HIDE_TEMPLATE>
  CUGUEST_HIDE DevicePtr(const DeviceView<U>& view) noexcept : pointer_(view.data()) {}

  /// As the driver takes it.
  /// Source: CUDA Programming Guide, "Interoperability between Runtime and Driver APIs".
  [[nodiscard]] CUGUEST_HIDE CUdeviceptr get() const noexcept {
    return reinterpret_cast<CUdeviceptr>(pointer_);
  }
  [[nodiscard]] CUGUEST_HIDE constexpr T* data() const noexcept { return pointer_; }

 private:
  T* pointer_ = nullptr;
};

template <typename T>
DevicePtr(const DeviceView<T>&) -> DevicePtr<T>;

static_assert(sizeof(DevicePtr<float>) == 8 && std::is_trivially_copyable_v<DevicePtr<float>>);

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_DEVICE_PTR_H_

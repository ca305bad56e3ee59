// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// host_span.h                                                           tier: 0
// -----------------------------------------------------------------------------
//
// `HostSpan<T>` is a pointer and a count of elements in host memory, for one end of a copy:
// C++17 has no std::span. Anything contiguous with data(), size() and a value_type converts
// to one (a vector, an array, a string, a span), and so does a C array.
//
//   std::vector<float> values(n);
//   absl::Status status = Copy(HostSpan<float>(values), view);

#ifndef CUGUEST_HOST_SPAN_H_
#define CUGUEST_HOST_SPAN_H_

#include <cstddef>
#include <type_traits>
#include <utility>

#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

// HostSpan
//
// It owns nothing. The memory may be pageable or pinned.
// Threads: a value; any thread.
template <typename T>
class HostSpan {
  static_assert(std::is_trivially_copyable_v<T>,
                "what is copied to and from a device byte by byte must be trivially copyable");

 public:
  CUGUEST_HIDE constexpr HostSpan() noexcept = default;
  CUGUEST_HIDE constexpr HostSpan(T* data, std::size_t size) noexcept : data_(data), size_(size) {}

  template <std::size_t kSize, CUGUEST_HIDE_TEMPLATE>
  CUGUEST_HIDE constexpr HostSpan(T (&array)[kSize]) noexcept : HostSpan(array, kSize) {}

  // Not of what only adds const, or changes the size of an element.
  template <typename Container, typename = typename std::remove_reference_t<Container>::value_type,
            typename Element = std::remove_pointer_t<decltype(std::declval<Container&>().data())>,
            typename = std::enable_if_t<std::is_convertible_v<Element (*)[], T (*)[]>>,
            CUGUEST_HIDE_TEMPLATE>
  CUGUEST_HIDE constexpr HostSpan(Container&& container) noexcept
      : HostSpan(container.data(), container.size()) {}

  [[nodiscard]] CUGUEST_HIDE constexpr T* data() const noexcept { return data_; }
  [[nodiscard]] CUGUEST_HIDE constexpr std::size_t size() const noexcept {
    return size_;
  }  // elements

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_HOST_SPAN_H_

// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// host_span.h                                                           tier: 0
// -----------------------------------------------------------------------------
/// \file
/// `HostSpan<T>` is a pointer and a count of elements in host memory, for one end of a copy:
/// C++17 has no std::span. Anything contiguous with data(), size() and a value_type converts
/// to one (a vector, an array, a string, a span), and so does a C array.
///
///   std::vector<float> values(n);
///   absl::Status status = Copy(HostSpan<float>(values), view);
///
/// Note [Temporary containers]
/// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
/// As of a std::span: a HostSpan<const T> takes a temporary vector, for the call that it is an
/// argument of, and a HostSpan<T> does not. What only refers to elements (a span, a string_view,
/// another HostSpan) may be a temporary for both.

#ifndef CUGUEST_HOST_SPAN_H_
#define CUGUEST_HOST_SPAN_H_

#include <cstddef>
#include <type_traits>
#include <utility>

#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

namespace internal {

// Whether a container only refers to its elements: then it is copied as cheaply as a pointer, and
// its own const is not theirs.
template <typename Container>
CUGUEST_HIDE inline constexpr bool kRefersToElements =
    std::conjunction_v<std::is_trivially_copyable<Container>,
                       std::is_same<decltype(std::declval<Container&>().data()),
                                    decltype(std::declval<const Container&>().data())>>;

}  // namespace internal

/// HostSpan
///
/// It owns nothing. The memory may be pageable or pinned.
/// Threads: a value; any thread.
template <typename T>
class HostSpan {
  static_assert(std::is_trivially_copyable_v<T>,
                "what is copied to and from a device byte by byte must be trivially copyable");

 public:
  CUGUEST_HIDE constexpr HostSpan() noexcept = default;
  CUGUEST_HIDE constexpr HostSpan(T* data, std::size_t size) noexcept : data_(data), size_(size) {}

  template <std::size_t kSize, CUGUEST_HIDE_TEMPLATE>
  CUGUEST_HIDE constexpr HostSpan(T (&array)[kSize]) noexcept : HostSpan(array, kSize) {}

  /// To const.
  template <typename U, typename = std::enable_if_t<std::is_same_v<const U, T>>,
            CUGUEST_HIDE_TEMPLATE>
  CUGUEST_HIDE constexpr HostSpan(const HostSpan<U>& other) noexcept
      : HostSpan(other.data(), other.size()) {}

  /// Not of what takes const away, or changes the size of an element.
  template <
      typename Container, typename = typename std::remove_reference_t<Container>::value_type,
      typename Element = std::remove_pointer_t<decltype(std::declval<Container&>().data())>,
      typename = std::enable_if_t<std::is_convertible_v<Element (*)[], T (*)[]>>,
      typename = std::enable_if_t<std::is_lvalue_reference_v<Container> || std::is_const_v<T> ||
                                  internal::kRefersToElements<std::remove_const_t<Container>>>,
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

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 3
/// \file
/// `HostSpan<T>` is a pointer and a count of elements in host memory, for one end of a copy: C++17
/// has no std::span. Anything contiguous with data(), size() and a value_type converts to one (a
/// vector, an array, a string, a span), and so does a C array.
///
///   std::vector<float> values(n);
///   absl::Status status = Download(view, values);
///
/// Note [Temporary containers]
/// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
/// As with std::span, a temporary vector converts to a HostSpan<const T>, for the call that it is
/// an argument of, and not to a HostSpan<T>. A temporary that only refers to elements (a span, a
/// string_view, another HostSpan, a std::ranges::borrowed_range) converts to both. Where the
/// elements are used after the call (UploadAsync(), CodeImage::Borrow(), Module::Load() of bytes,
/// an assignment to LaunchShape::attributes), any other temporary does not compile: of a view of
/// your own, give a HostSpan of its elements.

#ifndef CUGUEST_OBJECTS_HOST_SPAN_H_
#define CUGUEST_OBJECTS_HOST_SPAN_H_

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

template <typename T>
class HostSpan;

namespace internal {

// Made of any pointer and count of elements, and with a member type that views have and containers
// of their own elements do not: element_type as std::span, traits_type as std::string_view.
template <typename Container, typename Element>
using IsMadeOf = std::conjunction<std::is_trivially_copyable<Container>,
                                  std::is_constructible<Container, Element*, std::size_t>>;
template <typename Container, typename = void>
struct IsLikeSpan : std::false_type {};
template <typename Container>
struct IsLikeSpan<Container, std::void_t<typename Container::element_type>>
    : IsMadeOf<Container, typename Container::element_type> {};
template <typename Container, typename = void>
struct IsLikeStringView : std::false_type {};
template <typename Container>
struct IsLikeStringView<Container, std::void_t<typename Container::traits_type>>
    : IsMadeOf<Container, const typename Container::value_type> {};

#if defined(__cpp_lib_ranges)  // <string_view> has what there is of it
template <typename Container>
struct IsBorrowedRange : std::bool_constant<std::ranges::enable_borrowed_range<Container>> {};
#else
template <typename>
struct IsBorrowedRange : std::false_type {};
#endif

template <typename T>
using Bare = std::remove_cv_t<std::remove_reference_t<T>>;

// Whether a container is known only to refer to its elements, which do not end with it.
template <typename Container>
struct RefersToElements : std::disjunction<IsLikeSpan<Container>, IsLikeStringView<Container>,
                                           IsBorrowedRange<Container>> {};
template <typename T>
struct RefersToElements<HostSpan<T>> : std::true_type {};
template <typename Char, typename Traits>
struct RefersToElements<std::basic_string_view<Char, Traits>> : std::true_type {};

// Whether the elements of a `Container&&` may go with it.
template <typename Container>
CUGUEST_HIDE inline constexpr bool kIsOwningTemporary =
    !std::is_lvalue_reference_v<Container> && !RefersToElements<Bare<Container>>::value;

// For a deleted overload, where elements of T are used after the call.
template <typename T, typename Container>
using IfEndsTooEarly =
    std::enable_if_t<std::conjunction_v<std::bool_constant<kIsOwningTemporary<Container>>,
                                        std::is_convertible<Container, HostSpan<const T>>>>;

}  // namespace internal

/// It owns nothing. The memory may be pageable or pinned.
/// Threads: value.
template <typename T>
class HostSpan {
  static_assert(sizeof(T) != 0, "elements of no bytes cannot be counted");
  static_assert(std::is_trivially_copyable_v<T>,
                "what is copied to and from a device byte by byte must be trivially copyable");

 public:
  CUGUEST_HIDE constexpr HostSpan() noexcept = default;
  CUGUEST_HIDE constexpr HostSpan(T* data, std::size_t size) noexcept : data_(data), size_(size) {}

  /// Of an array that has a name, or of a temporary one to const; not of a braced list.
  template <typename Array, typename Element = std::remove_extent_t<std::remove_reference_t<Array>>,
            typename = std::enable_if_t<std::is_array_v<std::remove_reference_t<Array>>>,
            typename = std::enable_if_t<std::is_convertible_v<Element (*)[], T (*)[]>>,
            typename = std::enable_if_t<std::is_lvalue_reference_v<Array> || std::is_const_v<T>>,
            typename = void, CUGUEST_HIDE_TEMPLATE>
  CUGUEST_HIDE constexpr HostSpan(Array&& array) noexcept
      : HostSpan(array, std::extent_v<std::remove_reference_t<Array>>) {}

  template <typename U, typename = std::enable_if_t<std::is_same_v<const U, T>>,
            CUGUEST_HIDE_TEMPLATE>
  CUGUEST_HIDE constexpr HostSpan(const HostSpan<U>& other) noexcept
      : HostSpan(other.data(), other.size()) {}

  /// Not of what takes const away, or changes the size of an element.
  template <
      typename Container, typename = typename std::remove_reference_t<Container>::value_type,
      typename Element = std::remove_pointer_t<decltype(std::declval<Container&>().data())>,
      typename = std::enable_if_t<std::is_convertible_v<Element (*)[], T (*)[]>>,
      typename = std::enable_if_t<!internal::kIsOwningTemporary<Container> || std::is_const_v<T>>,
      CUGUEST_HIDE_TEMPLATE>
  CUGUEST_HIDE constexpr HostSpan(Container&& container) noexcept
      : HostSpan(container.data(), container.size()) {}

  /// Not of what ends with the statement.
  template <typename Container, typename = internal::IfEndsTooEarly<T, Container>>
  HostSpan& operator=(Container&& container) = delete;

  [[nodiscard]] CUGUEST_HIDE constexpr T* data() const noexcept { return data_; }
  [[nodiscard]] CUGUEST_HIDE constexpr std::size_t size() const noexcept {
    return size_;
  }  // elements
  [[nodiscard]] CUGUEST_HIDE constexpr T* begin() const noexcept { return data_; }
  [[nodiscard]] CUGUEST_HIDE constexpr T* end() const noexcept { return data_ + size_; }
  [[nodiscard]] CUGUEST_HIDE constexpr T& operator[](std::size_t i) const noexcept {
    return data_[i];
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

template <typename T, std::size_t kSize>
HostSpan(T (&array)[kSize]) -> HostSpan<T>;

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_HOST_SPAN_H_

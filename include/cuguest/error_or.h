// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 0
/// \file
/// `ErrorOr<T>` is a value, or the `Error` that says why there is none: what absl::StatusOr is
/// where there is Abseil.
///
///   cuguest::ErrorOr<Kernels> kernels = Load(context);
///   if (!kernels.ok()) return kernels.error().code;
///   return kernels->Blur(image);

#ifndef CUGUEST_ERROR_OR_H_
#define CUGUEST_ERROR_OR_H_

#include <cuda.h>

#include <new>
#include <type_traits>
#include <utility>

#include "cuguest/error.h"
#include "cuguest/export.h"
#include "cuguest/internal/compiler.h"

CUGUEST_BEGIN_NAMESPACE

/// Requires: a move of T throws nothing, and neither does its destructor.
/// Threads: value.
template <typename T>
class [[nodiscard]] ErrorOr {
  static_assert(std::is_object_v<T> && !std::is_const_v<T> && !std::is_array_v<T>);
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>,
                "a move of T, and its destructor, must throw nothing");
  static_assert(!std::is_same_v<T, Error>);

  template <typename U, typename = void>
  struct HasError : std::false_type {};
  template <typename U>
  struct HasError<U, std::void_t<decltype(Error(std::declval<const U&>().error()))>>
      : std::true_type {};
  template <typename U>
  using IfValue =
      std::enable_if_t<std::is_convertible_v<U&&, T> && !std::is_same_v<std::decay_t<U>, ErrorOr> &&
                       !std::is_same_v<std::decay_t<U>, Error>>;

 public:
  /// Errors: of an `error` that is ok(), CUDA_ERROR_UNKNOWN: there is no value.
  CUGUEST_HIDE ErrorOr(const Error& error) noexcept : error_(error) {  // NOLINT: implicit
    if (error.ok()) {
      error_.code = CUDA_ERROR_UNKNOWN;
      error_.doing = "take the error of a value that is not there";
    }
  }
  /// Of a `value` that is an object of the core and not ok(), such as a SharedContext: its error.
  template <typename U, typename = IfValue<U>, CUGUEST_HIDE_TEMPLATE>
  CUGUEST_HIDE ErrorOr(U&& value) {  // NOLINT: implicit
    if constexpr (HasError<std::decay_t<U>>::value) error_ = Error(value.error());
    if (error_.ok()) ::new (&value_) T(std::forward<U>(value));
  }
  /// What `other` had stays there, moved from.
  CUGUEST_HIDE ErrorOr(ErrorOr&& other) noexcept : error_(other.error_) {
    if (ok()) ::new (&value_) T(std::move(other.value_));
  }
  CUGUEST_HIDE ErrorOr& operator=(ErrorOr&& other) noexcept {
    if (this == &other) return *this;
    Destroy();
    error_ = other.error_;
    if (ok()) ::new (&value_) T(std::move(other.value_));
    return *this;
  }
  CUGUEST_HIDE ~ErrorOr() { Destroy(); }

  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return error_.ok(); }
  /// Its code is CUDA_SUCCESS if this is ok().
  [[nodiscard]] CUGUEST_HIDE const Error& error() const noexcept { return error_; }

  /// Requires: ok(); otherwise the program ends.
  [[nodiscard]] CUGUEST_HIDE T& operator*() & noexcept { return Value(); }
  [[nodiscard]] CUGUEST_HIDE const T& operator*() const& noexcept { return Value(); }
  [[nodiscard]] CUGUEST_HIDE T&& operator*() && noexcept { return std::move(Value()); }
  [[nodiscard]] CUGUEST_HIDE T* operator->() noexcept { return &Value(); }
  [[nodiscard]] CUGUEST_HIDE const T* operator->() const noexcept { return &Value(); }

 private:
  CUGUEST_HIDE T& Value() noexcept {
    if (!ok()) internal::Trap();
    return value_;
  }
  CUGUEST_HIDE const T& Value() const noexcept { return const_cast<ErrorOr*>(this)->Value(); }
  CUGUEST_HIDE void Destroy() noexcept {
    if (ok()) value_.~T();
  }

  Error error_;
  union {
    T value_;
  };
};

namespace internal {

// How a template reads what a callback returns, and in what it returns its own value: ErrorOr, or,
// with status.h, absl::StatusOr. Of other types it has no `Or`.
template <typename Result>
struct ResultTraits {
  CUGUEST_HIDE static constexpr bool kIsResult = false;
};
template <typename T>
struct ResultTraits<ErrorOr<T>> {
  CUGUEST_HIDE static constexpr bool kIsResult = true;
  using Value = T;
  template <typename U>
  using Or = ErrorOr<U>;
  CUGUEST_HIDE static const Error& Of(const Error& error) noexcept { return error; }
  CUGUEST_HIDE static const Error& WhyNot(const ErrorOr<T>& result) noexcept {
    return result.error();
  }
};

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_ERROR_OR_H_

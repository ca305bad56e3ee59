// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the driver's handles and codes are without CUDA. Another vendor's cuda.h may make macros of
// the driver's names, so a caller passes and expects the types of that vendor. tier: 2

#ifndef CUGUEST_LIB_NO_CUDA_DRIVER_TYPES_H_
#define CUGUEST_LIB_NO_CUDA_DRIVER_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// Converts from any pointer and to any pointer. What differs in `Tag` does not convert.
template <typename Tag>
class AnyHandle {
 public:
  constexpr AnyHandle() noexcept = default;
  constexpr AnyHandle(std::nullptr_t) noexcept {}  // NOLINT: implicit
  template <typename T>
  constexpr AnyHandle(T* handle) noexcept : handle_(handle) {}  // NOLINT: implicit
  template <typename T>
  operator T*() const noexcept {  // NOLINT: implicit
    return static_cast<T*>(const_cast<void*>(handle_));
  }
  constexpr explicit operator bool() const noexcept { return handle_ != nullptr; }

  friend constexpr bool operator==(AnyHandle a, AnyHandle b) noexcept {
    return a.handle_ == b.handle_;
  }
  friend constexpr bool operator!=(AnyHandle a, AnyHandle b) noexcept { return !(a == b); }
  friend constexpr bool operator==(AnyHandle a, std::nullptr_t) noexcept { return !a; }
  friend constexpr bool operator==(std::nullptr_t, AnyHandle a) noexcept { return !a; }
  friend constexpr bool operator!=(AnyHandle a, std::nullptr_t) noexcept { return !!a; }
  friend constexpr bool operator!=(std::nullptr_t, AnyHandle a) noexcept { return !!a; }
  template <typename T>
  friend constexpr bool operator==(AnyHandle a, T* b) noexcept {
    return a.handle_ == b;
  }
  template <typename T>
  friend constexpr bool operator==(T* a, AnyHandle b) noexcept {
    return b.handle_ == a;
  }
  template <typename T>
  friend constexpr bool operator!=(AnyHandle a, T* b) noexcept {
    return a.handle_ != b;
  }
  template <typename T>
  friend constexpr bool operator!=(T* a, AnyHandle b) noexcept {
    return b.handle_ != a;
  }
  template <typename State>
  friend State AbslHashValue(State state, AnyHandle handle) {
    return State::combine(static_cast<State&&>(state), handle.handle_);
  }

 private:
  const void* handle_ = nullptr;
};

template <typename T>
using IfEnum = std::enable_if_t<std::is_enum_v<T>>;

// A code of `Own`. Converts to any other enumeration, compares with each and is assigned from each,
// but converts from its own alone: so `ok ? code : theirs` has one type, theirs.
template <typename Own>
class AnyCode {
 public:
  constexpr AnyCode() noexcept = default;
  constexpr AnyCode(Own code) noexcept : code_(static_cast<int>(code)) {}  // NOLINT: implicit
  constexpr explicit AnyCode(int code) noexcept : code_(code) {}
  template <typename Other, typename = IfEnum<Other>>
  constexpr AnyCode& operator=(Other code) noexcept {
    code_ = static_cast<int>(code);
    return *this;
  }
  template <typename Other, typename = IfEnum<Other>,
            typename = std::enable_if_t<!std::is_same_v<Other, Own>>>
  constexpr operator Other() const noexcept {  // NOLINT: implicit
    return static_cast<Other>(code_);
  }
  constexpr operator int() const noexcept { return code_; }  // NOLINT: implicit

  friend constexpr bool operator==(AnyCode a, AnyCode b) noexcept { return a.code_ == b.code_; }
  friend constexpr bool operator!=(AnyCode a, AnyCode b) noexcept { return a.code_ != b.code_; }
  template <typename Other, typename = IfEnum<Other>>
  friend constexpr bool operator==(AnyCode a, Other b) noexcept {
    return a.code_ == static_cast<int>(b);
  }
  template <typename Other, typename = IfEnum<Other>>
  friend constexpr bool operator==(Other a, AnyCode b) noexcept {
    return b == a;
  }
  template <typename Other, typename = IfEnum<Other>>
  friend constexpr bool operator!=(AnyCode a, Other b) noexcept {
    return !(a == b);
  }
  template <typename Other, typename = IfEnum<Other>>
  friend constexpr bool operator!=(Other a, AnyCode b) noexcept {
    return !(b == a);
  }

 private:
  int code_ = 0;
};

// The same of a code that a caller gives: it converts from any enumeration, too.
template <typename Own>
class AnyOption : public AnyCode<Own> {
 public:
  constexpr AnyOption() noexcept = default;
  template <typename Other, typename = IfEnum<Other>>
  constexpr AnyOption(Other code) noexcept  // NOLINT: implicit
      : AnyCode<Own>(static_cast<Own>(code)) {}
};

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_NO_CUDA_DRIVER_TYPES_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Strings behind each other in one array, which a table names by their offsets: a pointer takes 8
// bytes, and in a shared object 24 more for its relocation. tier: 0

#ifndef CUGUEST_LIB_CORE_STRING_POOL_H_
#define CUGUEST_LIB_CORE_STRING_POOL_H_

#include <cstddef>
#include <cstdint>

#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// With the terminating zero; 0 of nullptr.
constexpr std::size_t BytesOf(const char* string) noexcept {
  if (string == nullptr) return 0;
  std::size_t length = 0;
  while (string[length] != '\0') ++length;
  return length + 1;
}

template <std::size_t kBytes>
class StringPool {
 public:
  static_assert(kBytes <= UINT16_MAX);
  static constexpr std::uint16_t kNone = UINT16_MAX;  // of nullptr

  constexpr std::uint16_t Add(const char* string) noexcept {
    if (string == nullptr) return kNone;
    const std::size_t begin = used_;
    do text_[used_++] = *string;
    while (*string++ != '\0');
    return static_cast<std::uint16_t>(begin);
  }
  constexpr void AddByte(char byte) noexcept { text_[used_++] = byte; }
  constexpr const char* At(std::uint16_t offset) const noexcept {
    return offset == kNone ? nullptr : Known(offset);
  }
  // Of one that is not kNone.
  constexpr const char* Known(std::uint16_t offset) const noexcept { return text_ + offset; }
  constexpr std::size_t used() const noexcept { return used_; }

 private:
  char text_[kBytes] = {};
  std::size_t used_ = 0;
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CORE_STRING_POOL_H_

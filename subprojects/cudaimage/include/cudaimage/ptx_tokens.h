// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The words of PTX text.

#ifndef CUDAIMAGE_PTX_TOKENS_H_
#define CUDAIMAGE_PTX_TOKENS_H_

#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>

#include "namespace.h"

CUDAIMAGE_BEGIN_NAMESPACE

// Words (".entry", "k", "32", "1.5") and single marks ("(", "{"), without comments. A "." begins a
// word unless it is in a number. A string is one token, so that what is in it is no word.
class PtxTokens {
 public:
  explicit PtxTokens(std::string_view text) : rest_(text) {}

  static bool IsWord(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '.' ||
           c == '%';
  }

  // Empty at the end.
  std::string_view Next() {
    SkipBlank();
    if (rest_.empty()) return {};
    std::size_t length = 1;
    if (rest_[0] == '"') {
      length = Past("\"", 1);
    } else if (IsWord(rest_[0])) {
      const bool is_number = std::isdigit(static_cast<unsigned char>(rest_[0])) != 0;
      while (length < rest_.size() && IsWord(rest_[length]) &&
             (is_number || rest_[length] != '.')) {
        ++length;
      }
    }
    const std::string_view token = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return token;
  }

  std::string_view Peek() const { return PtxTokens(*this).Next(); }

 private:
  void SkipBlank() {
    while (!rest_.empty()) {
      if (std::isspace(static_cast<unsigned char>(rest_[0])) != 0) {
        rest_.remove_prefix(1);
      } else if (rest_.substr(0, 2) == "//") {
        rest_.remove_prefix(Past("\n", 2));
      } else if (rest_.substr(0, 2) == "/*") {
        rest_.remove_prefix(Past("*/", 2));
      } else {
        return;
      }
    }
  }

  std::size_t Past(std::string_view end, std::size_t from) const {
    const std::size_t at = rest_.find(end, from);
    return at == std::string_view::npos ? rest_.size() : at + end.size();
  }

  std::string_view rest_;
};

// An integer as PTX writes it: decimal, 0x and hexadecimal, 0b and binary, 0 and octal, each with a
// U behind it or without; or WARP_SZ. False of anything else.
inline bool ReadInteger(std::string_view token, unsigned long long* value) {
  if (token == "WARP_SZ") {
    *value = 32;
    return true;
  }
  if (!token.empty() && token.back() == 'U') token.remove_suffix(1);
  unsigned long long base = 10;
  if (token.size() > 1 && token[0] == '0') {
    const char sign = token[1];
    base = sign == 'x' || sign == 'X' ? 16 : sign == 'b' || sign == 'B' ? 2 : 8;
    token.remove_prefix(base == 8 ? 1 : 2);
  }
  if (token.empty()) return false;
  *value = 0;
  for (const char c : token) {
    const int lower = std::tolower(static_cast<unsigned char>(c));
    if (std::isxdigit(lower) == 0) return false;
    const auto digit = static_cast<unsigned>(lower <= '9' ? lower - '0' : lower - 'a' + 10);
    if (digit >= base || *value > (~0ULL - digit) / base) return false;
    *value = *value * base + digit;
  }
  return true;
}

// The integer that `token` is, or else begins with: 90 of "90a".
inline unsigned long long ToNumber(std::string_view token) {
  unsigned long long value = 0;
  if (ReadInteger(token, &value)) return value;
  return std::strtoull(std::string(token).c_str(), nullptr, 0);
}

CUDAIMAGE_END_NAMESPACE

#endif  // CUDAIMAGE_PTX_TOKENS_H_

// SPDX-License-Identifier: Apache-2.0
//
// The words of PTX text.

#ifndef CUDASIM_DRIVER_CODE_IMAGE_PTX_TOKENS_H_
#define CUDASIM_DRIVER_CODE_IMAGE_PTX_TOKENS_H_

#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace cudasim::driver {

// Words (".param", "k", "32") and single marks ("(", ","), without comments.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : rest_(text) {}

  static bool IsWord(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '.' ||
           c == '%';
  }

  // Empty at the end.
  std::string_view Next() {
    SkipBlank();
    if (rest_.empty()) return {};
    size_t length = 1;
    if (IsWord(rest_[0])) {
      while (length < rest_.size() && IsWord(rest_[length])) ++length;
    }
    const std::string_view token = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return token;
  }

  std::string_view Peek() const { return Tokens(*this).Next(); }

 private:
  static bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
  void SkipBlank() {
    while (!rest_.empty()) {
      if (IsSpace(rest_[0])) {
        rest_.remove_prefix(1);
      } else if (rest_.substr(0, 2) == "//") {
        SkipPast("\n");
      } else if (rest_.substr(0, 2) == "/*") {
        SkipPast("*/");
      } else {
        return;
      }
    }
  }

  void SkipPast(std::string_view end) {
    const size_t at = rest_.find(end);
    rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at + end.size());
  }

  std::string_view rest_;
};

inline unsigned long long ToNumber(std::string_view token) {
  return std::strtoull(std::string(token).c_str(), nullptr, 0);
}

// Bytes of ".u64", ".f32", ".b8" ...; 0 for any other word.
inline size_t SizeOfType(std::string_view token) {
  if (token.size() < 3 || token[0] != '.' || std::strchr("busf", token[1]) == nullptr) return 0;
  const size_t bits = ToNumber(token.substr(2));
  return bits % 8 == 0 && bits <= 128 ? bits / 8 : 0;
}

inline size_t AlignUp(size_t offset, size_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CODE_IMAGE_PTX_TOKENS_H_

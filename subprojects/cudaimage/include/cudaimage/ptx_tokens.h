// SPDX-License-Identifier: Apache-2.0
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

// Words (".entry", "k", "32") and single marks ("(", "{"), without comments. A string is one token,
// so that what is in it is no word.
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
      while (length < rest_.size() && IsWord(rest_[length])) ++length;
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

inline unsigned long long ToNumber(std::string_view token) {
  return std::strtoull(std::string(token).c_str(), nullptr, 0);
}

CUDAIMAGE_END_NAMESPACE

#endif  // CUDAIMAGE_PTX_TOKENS_H_

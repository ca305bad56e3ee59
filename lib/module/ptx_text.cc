// SPDX-License-Identifier: Apache-2.0
//
// PTX. The driver's compiler has an answer to any text, so nothing but a NUL in the middle,
// where the driver would stop reading, is looked for.

#include <cctype>
#include <string>
#include <string_view>

#include "lib/module/code_contents.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

bool IsWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '.' ||
         c == '%';
}

// Words (".entry", "k") and single marks ("(", "{"), without comments. Strings are told from
// the rest, so that what stands in one is no word.
class PtxTokens {
 public:
  explicit PtxTokens(std::string_view text) : rest_(text) {}

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

// A name is followed by the parameters, or by nothing that belongs to the entry.
bool IsName(std::string_view token) {
  return !token.empty() && IsWord(token[0]) && token[0] != '.';
}

}  // namespace

bool IsPtx(const ImageBytes& bytes) { return PtxTokens(bytes.text()).Next() == ".version"; }

absl::Status ReadPtx(const ImageBytes& bytes, CodeContents* contents) {
  const std::size_t nul = bytes.text().find('\0');
  if (nul != std::string_view::npos) {
    return Damaged(bytes, nul, "a NUL within the text of PTX, where the driver would stop reading");
  }
  PtxTokens tokens(bytes.text());
  for (std::string_view token = tokens.Next(); !token.empty(); token = tokens.Next()) {
    if (token != ".entry") continue;
    const std::string_view name = tokens.Next();
    if (IsName(name)) contents->kernels.insert(std::string(name));
  }
  return absl::OkStatus();
}

}  // namespace internal
CUGUEST_END_NAMESPACE

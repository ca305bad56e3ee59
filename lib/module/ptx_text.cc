// SPDX-License-Identifier: Apache-2.0
//
// PTX. The driver's compiler has an answer to nearly any text. Looked for is what it takes and
// should not: a NUL in the middle, where it stops reading, and a function of the module's own
// that is declared and never defined, which crashes the driver when a kernel that calls it is
// loaded (measured with 580.159.04).

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

#include "lib/module/code_contents.h"
#include "lib/module/packed_sizes.h"

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

// From behind ".entry" to the end of its head.
void ReadEntry(PtxTokens* tokens, CodeContents* contents) {
  const std::string_view name = tokens->Next();
  if (!IsName(name)) return;
  std::uint64_t sizes[3] = {};  // of .reqntid, where a size that is left out is 1
  std::string_view token = tokens->Next();
  while (!token.empty() && token != "{" && token != ";" && token != ".reqntid") {
    token = tokens->Next();
  }
  if (token == ".reqntid") {
    std::fill(std::begin(sizes), std::end(sizes), std::uint64_t{1});
    for (std::uint64_t& size : sizes) {
      size = std::strtoul(std::string(tokens->Next()).c_str(), nullptr, 0);
      token = tokens->Next();
      if (token != ",") break;
    }
  }
  while (!token.empty() && token != "{" && token != ";") token = tokens->Next();
  contents->AddKernel(std::string(name), PackSizes(sizes[0], sizes[1], sizes[2]));
}

// The functions of the module's own: without .extern, .visible or .weak.
class LocalFunctions {
 public:
  // From behind ".func" to the end of its head; `linkage` is what stands before it.
  void Read(std::string_view linkage, PtxTokens* tokens) {
    const bool local = linkage != ".extern" && linkage != ".visible" && linkage != ".weak";
    std::string_view name;
    int depth = 0;
    for (std::string_view token = tokens->Next(); !token.empty(); token = tokens->Next()) {
      if (token == "(") ++depth;
      if (token == ")") --depth;
      if (depth == 0 && name.empty() && IsName(token)) name = token;
      if (token == "{") return static_cast<void>(defined_.insert(name));
      if (token == ";" && local) declared_.insert(name);
      if (token == ";") return;
    }
  }

  // One that is nowhere defined; empty if there is none.
  std::string_view Missing() const {
    for (const std::string_view name : declared_) {
      if (defined_.count(name) == 0) return name;
    }
    return {};
  }

 private:
  std::set<std::string_view> declared_;
  std::set<std::string_view> defined_;
};

}  // namespace

bool IsPtx(const ImageBytes& bytes) { return PtxTokens(bytes.text()).Next() == ".version"; }

absl::Status ReadPtx(const ImageBytes& bytes, CodeContents* contents) {
  const std::size_t nul = bytes.text().find('\0');
  if (nul != std::string_view::npos) {
    return Damaged(bytes, nul, "a NUL within the text of PTX, where the driver would stop reading");
  }
  PtxTokens tokens(bytes.text());
  LocalFunctions functions;
  std::string_view before;
  for (std::string_view token = tokens.Next(); !token.empty(); token = tokens.Next()) {
    if (token == ".func") functions.Read(before, &tokens);
    if (token == ".entry") ReadEntry(&tokens, contents);
    before = token;
  }
  const std::string_view missing = functions.Missing();
  if (missing.empty()) return absl::OkStatus();
  const auto at = static_cast<std::uint64_t>(missing.data() - bytes.text().data());
  return Damaged(bytes, at, "function \"", std::string(missing),
                 "\" is declared and nowhere defined: if it is of another module, declare it "
                 ".extern");
}

}  // namespace internal
CUGUEST_END_NAMESPACE

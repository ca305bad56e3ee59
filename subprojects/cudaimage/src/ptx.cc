// SPDX-License-Identifier: Apache-2.0
//
// PTX. The driver's compiler has an answer to nearly any text. Looked for is what it takes and
// should not: a NUL in the middle, where it stops reading, and a function of the module's own
// that is declared and never defined, which crashes the driver when a kernel that calls it is
// loaded (measured with 580.159.04).

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

#include "cudaimage/contents.h"
#include "cudaimage/ptx_tokens.h"

CUDAIMAGE_BEGIN_NAMESPACE
namespace {

// A name is followed by the parameters, or by nothing that belongs to the entry.
bool IsName(std::string_view token) {
  return !token.empty() && PtxTokens::IsWord(token[0]) && token[0] != '.';
}

// From behind ".entry" to the end of its head.
void ReadEntry(PtxTokens* tokens, CodeContents* contents) {
  const std::string_view name = tokens->Next();
  if (!IsName(name)) return;
  std::uint32_t sizes[3] = {};  // of .reqntid, where a size that is left out is 1
  std::string_view token = tokens->Next();
  while (!token.empty() && token != "{" && token != ";" && token != ".reqntid") {
    token = tokens->Next();
  }
  if (token == ".reqntid") {
    std::fill(std::begin(sizes), std::end(sizes), std::uint32_t{1});
    for (std::uint32_t& size : sizes) {
      size = static_cast<std::uint32_t>(ToNumber(tokens->Next()));
      token = tokens->Next();
      if (token != ",") break;
    }
  }
  while (!token.empty() && token != "{" && token != ";") token = tokens->Next();
  contents->AddKernel(std::string(name), RequiredBlock{sizes[0], sizes[1], sizes[2]});
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

bool IsPtx(const Bytes& bytes) { return PtxTokens(bytes.text()).Next() == ".version"; }

Status ReadPtx(const Bytes& bytes, CodeContents* contents) {
  const std::string_view text = bytes.text().substr(0, bytes.text().find_last_not_of('\0') + 1);
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return Damaged(bytes, nul, "a NUL within the text of PTX, where the driver would stop reading");
  }
  PtxTokens tokens(text);
  LocalFunctions functions;
  std::string_view before;
  for (std::string_view token = tokens.Next(); !token.empty(); token = tokens.Next()) {
    if (token == ".func") functions.Read(before, &tokens);
    if (token == ".entry") ReadEntry(&tokens, contents);
    before = token;
  }
  const std::string_view missing = functions.Missing();
  if (missing.empty()) return Status();
  const auto at = static_cast<std::uint64_t>(missing.data() - text.data());
  return Damaged(bytes, at, "function \"", std::string(missing),
                 "\" is declared and nowhere defined: if it is of another module, declare it "
                 ".extern");
}

CUDAIMAGE_END_NAMESPACE

// SPDX-License-Identifier: Apache-2.0

#include "lib/sim/ptx.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace cuguest_sim {
namespace {

// PTX ISA 9.0 came with CUDA 13.0.
constexpr int kNewestMajor = 9;
constexpr int kNewestMinor = 0;

bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool IsWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '.' ||
         c == '%';
}

// Words (".param", "k", "32") and single marks ("(", ","), without comments.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : rest_(text) {}

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

 private:
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

size_t ToNumber(std::string_view token) {
  return static_cast<size_t>(std::strtoull(std::string(token).c_str(), nullptr, 0));
}

// Bytes of ".u64", ".f32", ".b8" ...; 0 for any other word.
size_t SizeOfType(std::string_view token) {
  if (token.size() < 3 || token[0] != '.' || std::strchr("busf", token[1]) == nullptr) return 0;
  const size_t bits = ToNumber(token.substr(2));
  return bits % 8 == 0 && bits <= 128 ? bits / 8 : 0;
}

// One parameter, from behind ".param" to its "," or ")":
//   .align 16 .b8 name[32]   or   .u64 .ptr .global .align 4 name
// Returns the mark that ended it.
std::string_view ReadParameter(Tokens* tokens, size_t offset, PtxParameter* parameter) {
  size_t element = 0;
  size_t alignment = 0;
  size_t count = 1;
  std::string_view token = tokens->Next();
  for (; token != "," && token != ")" && !token.empty(); token = tokens->Next()) {
    if (token == ".align") {
      const size_t value = ToNumber(tokens->Next());
      if (element == 0) alignment = value;  // behind .ptr it is what is pointed at
    } else if (token == "[") {
      count = ToNumber(tokens->Next());
    } else if (element == 0) {
      element = SizeOfType(token);
    }
  }
  alignment = std::max({alignment, element, size_t{1}});
  parameter->size = element * count;
  parameter->offset = (offset + alignment - 1) / alignment * alignment;
  return token;
}

bool ReadParameters(Tokens* tokens, PtxEntry* entry) {
  std::string_view token = tokens->Next();
  while (token == ".param" || token == ",") {
    if (token == ",") {
      token = tokens->Next();
      continue;
    }
    PtxParameter parameter;
    token = ReadParameter(tokens, entry->PackedSize(), &parameter);
    if (parameter.size == 0) return false;
    entry->parameters.push_back(parameter);
  }
  return token == ")";
}

CUresult CheckVersion(std::string_view text) {
  const std::string version(text);
  char* end = nullptr;
  const long major = std::strtol(version.c_str(), &end, 10);
  if (end == version.c_str() || *end != '.') return CUDA_ERROR_INVALID_PTX;
  const long minor = std::strtol(end + 1, nullptr, 10);
  const bool newer = major > kNewestMajor || (major == kNewestMajor && minor > kNewestMinor);
  return newer ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION : CUDA_SUCCESS;
}

CUresult ReadEntry(Tokens* tokens, std::vector<PtxEntry>* entries) {
  PtxEntry entry;
  entry.name = std::string(tokens->Next());
  Tokens after_name = *tokens;
  if (after_name.Next() == "(") {
    *tokens = after_name;
    if (!ReadParameters(tokens, &entry)) return CUDA_ERROR_INVALID_PTX;
  }
  if (entry.name.empty()) return CUDA_ERROR_INVALID_PTX;
  entries->push_back(entry);
  return CUDA_SUCCESS;
}

// The name that is declared behind ".visible":
//   .func (.param .b32 result) name(   or   .global .align 4 .b8 name[8]
std::string_view ReadVisibleName(Tokens* tokens) {
  std::string_view name;
  for (auto token = tokens->Next(); !token.empty(); token = tokens->Next()) {
    if (token == "(" && name == ".func") {
      while (!token.empty() && token != ")") token = tokens->Next();
    } else if (!IsWord(token[0])) {
      break;
    } else {
      name = token;
    }
  }
  return name;
}

}  // namespace

bool IsPtx(std::string_view text) { return Tokens(text).Next() == ".version"; }

// A module is ".version", ".target", and then anything.
CUresult ReadPtx(std::string_view text, Image* image) {
  Tokens tokens(text);
  if (tokens.Next() != ".version") return CUDA_ERROR_INVALID_IMAGE;
  CUresult code = CheckVersion(tokens.Next());
  if (code != CUDA_SUCCESS) return code;
  if (tokens.Next() != ".target") return CUDA_ERROR_INVALID_PTX;
  for (auto token = tokens.Next(); !token.empty(); token = tokens.Next()) {
    if (token != ".entry") continue;
    code = ReadEntry(&tokens, &image->entries);
    if (code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

std::vector<std::string> VisibleNames(std::string_view text) {
  std::vector<std::string> names;
  Tokens tokens(text);
  for (auto token = tokens.Next(); !token.empty(); token = tokens.Next()) {
    if (token == ".visible") names.emplace_back(ReadVisibleName(&tokens));
  }
  return names;
}

}  // namespace cuguest_sim

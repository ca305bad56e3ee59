// SPDX-License-Identifier: Apache-2.0

#include "driver/code/image/ptx.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "driver/code/image/ptx_tokens.h"
#include "driver/code/image/ptx_traits.h"
#include "driver/code/variable.h"

namespace cudasim::driver {
namespace {

// PTX ISA 9.0 came with CUDA 13.0.
constexpr int kNewestMajor = 9;
constexpr int kNewestMinor = 0;

// Where parameters begin in the memory that a kernel for sm_90 reads them from: more than 16
// bytes of alignment are counted from its beginning.
constexpr size_t kParameterBase = 0x210;

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
  parameter->offset = AlignUp(kParameterBase + offset, alignment) - kParameterBase;
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

// "sm_90a", "compute_50".
int VersionOfTarget(std::string_view target) {
  return static_cast<int>(ToNumber(target.substr(target.find('_') + 1)));
}

CUresult ReadEntry(Tokens* tokens, const std::vector<Variable>& shared, Image* image) {
  PtxEntry entry;
  entry.name = std::string(tokens->Next());
  if (tokens->Peek() == "(") {
    tokens->Next();
    if (!ReadParameters(tokens, &entry)) return CUDA_ERROR_INVALID_PTX;
  }
  if (entry.name.empty()) return CUDA_ERROR_INVALID_PTX;
  ReadTraits(tokens, shared, &entry.traits);
  image->entries.push_back(entry);
  return CUDA_SUCCESS;
}

// A declaration of what is somewhere else has no room here.
CUresult ReadDeclaration(std::string_view space, bool is_extern, Tokens* tokens,
                         std::vector<Variable>* shared, Image* image) {
  Variable variable;
  if (!ReadVariable(tokens, &variable)) return CUDA_ERROR_INVALID_PTX;
  variable.is_constant = space == ".const";
  if (!is_extern) (space == ".shared" ? *shared : image->variables).push_back(variable);
  return CUDA_SUCCESS;
}

// What stands outside of functions, or a function.
CUresult ReadItem(std::string_view token, std::string_view before, Tokens* tokens,
                  std::vector<Variable>* shared, Image* image) {
  if (token == ".entry") return ReadEntry(tokens, *shared, image);
  if (token == ".func") {
    SkipFunction(tokens);
    return CUDA_SUCCESS;
  }
  const bool declares = token == ".global" || token == ".const" || token == ".shared";
  return declares ? ReadDeclaration(token, before == ".extern", tokens, shared, image)
                  : CUDA_SUCCESS;
}

// The name that is declared behind ".visible":
//   .func (.param .b32 result) name(   or   .global .align 4 .b8 name[8]
std::string_view ReadVisibleName(Tokens* tokens) {
  std::string_view name;
  for (auto token = tokens->Next(); !token.empty(); token = tokens->Next()) {
    if (token == "(" && name == ".func") {
      while (!token.empty() && token != ")") token = tokens->Next();
    } else if (!Tokens::IsWord(token[0])) {
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
  const int version = VersionOfTarget(tokens.Next());
  std::vector<Variable> shared;
  std::string_view before;
  for (auto token = tokens.Next(); !token.empty(); token = tokens.Next()) {
    code = ReadItem(token, before, &tokens, &shared, image);
    if (code != CUDA_SUCCESS) return code;
    before = token;
  }
  for (PtxEntry& entry : image->entries) {
    entry.traits.ptx_version = version;
    entry.traits.constant = SizeOfConstants(image->variables);
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

}  // namespace cudasim::driver

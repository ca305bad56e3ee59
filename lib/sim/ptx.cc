// SPDX-License-Identifier: Apache-2.0

#include "lib/sim/ptx.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "lib/sim/ptx_tokens.h"
#include "lib/sim/ptx_traits.h"
#include "lib/sim/variable.h"

namespace cuguest_sim {
namespace {

// PTX ISA 9.0 came with CUDA 13.0.
constexpr int kNewestMajor = 9;
constexpr int kNewestMinor = 0;

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
  parameter->offset = AlignUp(offset, alignment);
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

// The header of a fatbin container, as cuobjdump shows it.
struct FatbinHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_size;
  std::uint64_t size;  // of what follows the header
};
constexpr char kFatbinMagic[] = "\x50\xed\x55\xba";  // little-endian
constexpr char kElfMagic[] = "\177ELF";

// The PTX in a container is text of its own, with a NUL behind it.
CUresult ReadFatbin(const void* bytes_of_image, Image* image) {
  FatbinHeader header;
  std::memcpy(&header, bytes_of_image, sizeof(header));
  const auto* bytes = static_cast<const char*>(bytes_of_image) + header.header_size;
  const std::string_view body(bytes, header.size);
  const size_t begin = body.find("\n.version");
  if (begin == std::string_view::npos) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  const std::string_view text = body.substr(begin);
  return ReadPtx(text.substr(0, text.find('\0')), image);
}

}  // namespace

CUresult ReadImage(const void* bytes, Image* image) {
  // A text that is shorter than a magic number differs in an earlier byte.
  const auto* text = static_cast<const char*>(bytes);
  if (std::strncmp(text, kElfMagic, 4) == 0) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  const bool fatbin = std::strncmp(text, kFatbinMagic, 4) == 0;
  return fatbin ? ReadFatbin(bytes, image) : ReadPtx(text, image);
}

}  // namespace cuguest_sim

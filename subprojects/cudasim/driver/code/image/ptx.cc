// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/code/image/ptx.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <string_view>

#include "cudaimage/contents.h"
#include "cudaimage/ptx.h"
#include "driver/code/variable.h"

namespace cudasim::driver {
namespace {

size_t Behind(size_t size, const Variable& variable) {
  return AlignUp(size, variable.alignment) + variable.size;
}

// Behind "{", up to its "}".
class Body {
 public:
  Body(Tokens* tokens, const std::vector<Variable>& shared, FunctionTraits* traits)
      : tokens_(tokens), shared_(shared), traits_(traits) {}

  void Read() {
    int depth = 1;
    std::string_view before;
    while (depth > 0) {
      const auto token = tokens_->Next();
      if (token.empty()) return;
      depth += token == "{" ? 1 : token == "}" ? -1 : 0;
      if (token == ".shared" || token == ".local") {
        Declare(token, before == ".extern");
      } else {
        Name(token);
      }
      before = token;
    }
  }

 private:
  void Declare(std::string_view space, bool is_extern) {
    Variable variable;
    if (!ReadVariable(tokens_, &variable) || is_extern) return;
    size_t& size = space == ".shared" ? traits_->static_shared : traits_->local;
    size = Behind(size, variable);
  }

  void Name(std::string_view token) {
    for (const Variable& variable : shared_) {
      if (variable.name != token || !named_.insert(variable.name).second) continue;
      traits_->static_shared = Behind(traits_->static_shared, variable);
    }
  }

  Tokens* const tokens_;
  const std::vector<Variable>& shared_;
  FunctionTraits* const traits_;
  std::set<std::string> named_;
};

// From behind ".func": its body, or to the ";" of a declaration.
void SkipFunction(Tokens* tokens) {
  FunctionTraits ignored;
  for (auto token = tokens->Next(); token != ";" && !token.empty(); token = tokens->Next()) {
    if (token == "{") return Body(tokens, {}, &ignored).Read();
  }
}

// PTX ISA 9.0 came with CUDA 13.0.
constexpr int kNewestMajor = 9;
constexpr int kNewestMinor = 0;

// Where parameters begin in the memory that a kernel for sm_90 reads them from: more than 16
// bytes of alignment are counted from its beginning.
constexpr size_t kParameterBase = 0x210;

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

void TakeDirectives(const cudaimage::PtxEntry& read, FunctionTraits* traits) {
  const auto& [x, y, z] = read.max_block;
  if (x != 0) traits->max_threads = std::min(x * y * z, kMaxThreadsPerBlock);
  std::copy(read.required_block.begin(), read.required_block.end(), traits->required_block);
  std::copy(read.required_cluster.begin(), read.required_cluster.end(), traits->required_cluster);
  traits->must_have_cluster = read.must_have_cluster;
  traits->max_cluster_rank = read.max_cluster_rank;
  if (read.max_registers != 0) traits->registers = std::min(traits->registers, read.max_registers);
}

// From behind ".entry" to its last brace. `shared`: what the module declares so far, of which an
// entry has what it names.
CUresult ReadEntry(Tokens* tokens, const std::vector<Variable>& shared, Image* image) {
  const cudaimage::PtxEntry read = cudaimage::ReadPtxEntry(tokens);
  if (!read.is_understood) return CUDA_ERROR_INVALID_PTX;
  PtxEntry entry;
  entry.name = std::string(read.name);
  for (const cudaimage::PtxParameter& parameter : read.parameters) {
    const size_t end = kParameterBase + entry.PackedSize();
    entry.parameters.push_back(
        {parameter.size, AlignUp(end, parameter.alignment) - kParameterBase});
  }
  TakeDirectives(read, &entry.traits);
  if (!read.has_body) return CUDA_SUCCESS;  // it is defined below, or in another module
  Body(tokens, shared, &entry.traits).Read();
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

bool IsPtx(std::string_view text) { return cudaimage::IsPtx(cudaimage::Bytes(text)); }

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

// SPDX-License-Identifier: Apache-2.0

#include "driver/code/image/ptx_traits.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

namespace cudasim::driver {
namespace {

// "64", "64, 2" or "64, 2, 1"; what is left out is 1.
void ReadDimensions(Tokens* tokens, unsigned dimensions[3]) {
  std::fill(dimensions, dimensions + 3, 1u);
  dimensions[0] = static_cast<unsigned>(ToNumber(tokens->Next()));
  for (int i = 1; i < 3 && tokens->Peek() == ","; ++i) {
    tokens->Next();
    dimensions[i] = static_cast<unsigned>(ToNumber(tokens->Next()));
  }
}

unsigned ReadCount(Tokens* tokens) { return static_cast<unsigned>(ToNumber(tokens->Next())); }

void ReadDirective(std::string_view token, Tokens* tokens, FunctionTraits* traits) {
  if (token == ".maxntid") {
    unsigned block[3];
    ReadDimensions(tokens, block);
    traits->max_threads = std::min(block[0] * block[1] * block[2], kMaxThreadsPerBlock);
  } else if (token == ".reqntid") {
    ReadDimensions(tokens, traits->required_block);
  } else if (token == ".reqnctapercluster") {
    ReadDimensions(tokens, traits->required_cluster);
  } else if (token == ".explicitcluster") {
    traits->must_have_cluster = true;
  } else if (token == ".maxclusterrank") {
    traits->max_cluster_rank = ReadCount(tokens);
  } else if (token == ".maxnreg") {
    traits->registers = std::min(traits->registers, ReadCount(tokens));
  }
}

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

}  // namespace

void ReadTraits(Tokens* tokens, const std::vector<Variable>& shared, FunctionTraits* traits) {
  for (auto token = tokens->Next(); token != ";" && !token.empty(); token = tokens->Next()) {
    if (token == "{") return Body(tokens, shared, traits).Read();
    ReadDirective(token, tokens, traits);
  }
}

void SkipFunction(Tokens* tokens) {
  FunctionTraits ignored;
  ReadTraits(tokens, {}, &ignored);
}

}  // namespace cudasim::driver

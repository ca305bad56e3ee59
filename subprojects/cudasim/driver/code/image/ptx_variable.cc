// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/code/image/ptx_variable.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "cudaimage/ptx.h"

namespace cudasim::driver {
namespace {

bool IsNumber(std::string_view token) {
  return !token.empty() && std::isdigit(static_cast<unsigned char>(token[0])) != 0;
}

// "0f40200000" and "0d4004000000000000" are the bits of a float.
unsigned long long ToBits(std::string_view token) {
  const bool is_float = token.size() > 2 && token[0] == '0' && std::strchr("fFdD", token[1]);
  return is_float ? std::strtoull(std::string(token.substr(2)).c_str(), nullptr, 16)
                  : ToNumber(token);
}

// The part of an address that a mask like 0xFF00 takes is as far right as it can be.
unsigned ShiftOf(unsigned long long mask) {
  unsigned shift = 0;
  for (; mask != 0 && (mask & 1) == 0; mask >>= 1) ++shift;
  return shift;
}

// What is behind the "=".
class PtxValue {
 public:
  PtxValue(size_t element, Variable* variable) : element_(element), variable_(variable) {}

  bool Read(Tokens* tokens) {
    for (auto token = tokens->Next(); token != ";"; token = tokens->Next()) {
      if (token.empty()) return false;
      if (token == "{" || token == "}" || token == ",") continue;
      if (!ReadElement(token, tokens)) return false;
    }
    return true;
  }

 private:
  bool ReadElement(std::string_view token, Tokens* tokens) {
    const bool negative = token == "-";
    if (negative) token = tokens->Next();
    if (!IsNumber(token)) return !negative && ReadAddress(token, /*shift=*/0, tokens);
    const unsigned long long bits = ToBits(token);
    if (tokens->Peek() == "(") {
      tokens->Next();
      return ReadAddress(tokens->Next(), ShiftOf(bits), tokens) && tokens->Next() == ")";
    }
    Append(negative ? -bits : bits);
    return true;
  }

  // "name", "name+8" or "generic(name)+8".
  bool ReadAddress(std::string_view token, unsigned shift, Tokens* tokens) {
    AddressInValue address = {variable_->value.size(), element_, shift, {}, 0};
    const bool generic = token == "generic";
    if (generic && tokens->Next() != "(") return false;
    address.name = std::string(generic ? tokens->Next() : token);
    if (generic && tokens->Next() != ")") return false;
    if (tokens->Peek() == "+") {
      tokens->Next();
      address.addend = ToNumber(tokens->Next());
    }
    variable_->addresses.push_back(address);
    Append(0);
    return true;
  }

  void Append(unsigned long long bits) {
    for (size_t i = 0; i < element_; ++i) {
      variable_->value.push_back(static_cast<unsigned char>(i < 8 ? bits >> (8 * i) : 0));
    }
  }

  const size_t element_;
  Variable* const variable_;
};

// From behind ".attribute": "(.managed)", or others in a list.
bool ReadIsManaged(Tokens* tokens) {
  bool managed = false;
  for (auto token = tokens->Next(); token != ")" && !token.empty(); token = tokens->Next()) {
    managed = managed || token == ".managed";
  }
  return managed;
}

// From behind "[": elements, or 0 for "[]".
size_t ReadDimension(Tokens* tokens) {
  const auto token = tokens->Next();
  if (token == "]") return 0;
  tokens->Next();
  return ToNumber(token);
}

}  // namespace

bool ReadVariable(Tokens* tokens, Variable* variable) {
  size_t element = 0;
  size_t count = 1;
  auto token = tokens->Next();
  for (; token != ";" && token != "=" && !token.empty(); token = tokens->Next()) {
    if (token == ".align") {
      variable->alignment = std::max<size_t>(1, ToNumber(tokens->Next()));
    } else if (token == ".attribute") {
      variable->is_managed = ReadIsManaged(tokens);
    } else if (token == "[") {
      count *= ReadDimension(tokens);
    } else if (token == ".v2" || token == ".v4") {
      count *= ToNumber(token.substr(2));
    } else if (token[0] != '.') {
      variable->name = std::string(token);
    } else {
      element = cudaimage::SizeOfPtxType(token);
    }
  }
  if (element == 0 || variable->name.empty() || token.empty()) return false;
  if (token == "=" && !PtxValue(element, variable).Read(tokens)) return false;
  variable->size = count != 0 ? element * count : variable->value.size();
  variable->alignment = std::max(variable->alignment, element);
  return variable->value.size() <= variable->size;
}

}  // namespace cudasim::driver

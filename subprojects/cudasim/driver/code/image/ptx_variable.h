// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The variables that a module's code declares, and their initial values.

#ifndef CUDASIM_DRIVER_CODE_IMAGE_PTX_VARIABLE_H_
#define CUDASIM_DRIVER_CODE_IMAGE_PTX_VARIABLE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cudaimage/ptx_tokens.h"

namespace cudasim::driver {

using cudaimage::ToNumber;
using Tokens = cudaimage::PtxTokens;

inline size_t AlignUp(size_t offset, size_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

// Bytes of an initial value that are (a part of) another variable's address.
struct AddressInValue {
  size_t offset = 0;
  size_t size = 0;
  unsigned shift = 0;  // bits of the address to the right of the part
  std::string name;
  size_t addend = 0;
};

struct Variable {
  std::string name;
  size_t size = 0;
  size_t alignment = 1;
  bool is_constant = false;
  bool is_managed = false;
  std::vector<unsigned char> value;  // the bytes that it lacks are zeros
  std::vector<AddressInValue> addresses;
};

// One declaration, from behind ".global" (or ".const", ".shared", ".local") to its ";":
//   .align 4 .b8 name[8] = {1, 2};   or   .attribute(.managed) .align 8 .u64 name = generic(x);
// Values are read as nvcc writes them: integers, 0f and 0d floats, addresses. False if it
// cannot be read.
bool ReadVariable(Tokens* tokens, Variable* variable);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CODE_IMAGE_PTX_VARIABLE_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a PTX text says of its entries: their names, their parameters, and the shapes that they can
// be launched with. Nothing is compiled.

#ifndef CUDAIMAGE_PTX_H_
#define CUDAIMAGE_PTX_H_

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "ptx_tokens.h"

CUDAIMAGE_BEGIN_NAMESPACE

// Bytes.
struct PtxParameter {
  std::size_t size = 0;
  std::size_t alignment = 1;
};

// Where a directive is not there, or a number of it is not understood, zeros.
struct PtxEntry {
  // Of x, y and z. A size that is left out is 1.
  using Sizes = std::array<unsigned, 3>;

  std::string_view name;
  std::vector<PtxParameter> parameters;
  bool is_understood = true;       // the name, and all of the parameters
  bool has_body = false;           // or is declared only
  Sizes max_block = {};            // .maxntid
  Sizes required_block = {};       // .reqntid
  Sizes required_cluster = {};     // .reqnctapercluster
  bool must_have_cluster = false;  // .explicitcluster
  unsigned max_cluster_rank = 0;   // .maxclusterrank
  unsigned max_registers = 0;      // .maxnreg
};

// One, from behind ".entry" to behind the "{" of its body or the ";" of a declaration.
PtxEntry ReadPtxEntry(PtxTokens* tokens);

// Bytes of ".u64", ".f32", ".b8" ...; 0 for any other word.
std::size_t SizeOfPtxType(std::string_view token);

CUDAIMAGE_END_NAMESPACE

#endif  // CUDAIMAGE_PTX_H_

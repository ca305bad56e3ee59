// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuRAND, of which nothing is modelled: a program that is linked with it starts.

#include <curand.h>

#include "library/entry.h"

namespace cudasim::library {

const EntryTable& Entries() {
  static constexpr EntryTable kTable = {nullptr, 0};
  return kTable;
}

// "GPU does not support requested feature": there is no other code for it.
const int kNotSupported = CURAND_STATUS_ARCH_MISMATCH;

int RefusalOf(CUresult code) {
  return code == CUDA_SUCCESS ? CURAND_STATUS_SUCCESS : CURAND_STATUS_INITIALIZATION_FAILED;
}

}  // namespace cudasim::library

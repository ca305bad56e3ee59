// SPDX-License-Identifier: Apache-2.0
//
// Reads from PTX text what a launch needs to know: the names of the entry
// functions, the sizes of their parameters, what bounds their launches; and the
// variables. Nothing is compiled.

#ifndef CUGUEST_LIB_SIM_PTX_H_
#define CUGUEST_LIB_SIM_PTX_H_

#include <cuda.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lib/sim/function_attribute.h"
#include "lib/sim/ptx_variable.h"

namespace cuguest_sim {

struct PtxParameter {
  size_t size = 0;
  size_t offset = 0;  // in a packed parameter buffer
};

struct PtxEntry {
  std::string name;
  std::vector<PtxParameter> parameters;
  FunctionTraits traits;

  // Bytes of a packed parameter buffer.
  size_t PackedSize() const {
    return parameters.empty() ? 0 : parameters.back().offset + parameters.back().size;
  }
};

// What a module is made of.
struct Image {
  std::vector<PtxEntry> entries;
  std::vector<Variable> variables;
};

// The parts of a module image: PTX text, or a fatbin container that holds some
// uncompressed (nvcc --no-compress).
//
// Errors: INVALID_IMAGE            neither
//         NO_BINARY_FOR_GPU        a cubin, or a fatbin without such PTX: a real
//                                  driver may load it, there is nothing here to run
//         INVALID_PTX              PTX that cannot be read
//         UNSUPPORTED_PTX_VERSION  newer than CUDA 13.0's
CUresult ReadImage(const void* bytes, Image* image);

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_PTX_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads from PTX text what a launch needs to know: the names of the entry
// functions, the sizes of their parameters, what bounds their launches; and the
// variables. Nothing is compiled.

#ifndef CUDASIM_DRIVER_CODE_IMAGE_PTX_H_
#define CUDASIM_DRIVER_CODE_IMAGE_PTX_H_

#include <cuda.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "driver/code/function_attribute.h"
#include "driver/code/image/ptx_variable.h"

namespace cudasim::driver {

struct PtxParameter {
  size_t size = 0;
  size_t offset = 0;  // in a packed parameter buffer
};

struct PtxEntry {
  std::string name;
  std::vector<PtxParameter> parameters;
  FunctionTraits traits;

  // Bytes of a packed parameter buffer. In damaged code the last parameter need not be the
  // one that ends last.
  size_t PackedSize() const {
    size_t size = 0;
    for (const PtxParameter& parameter : parameters) {
      size = std::max(size, parameter.offset + parameter.size);
    }
    return size;
  }
};

// What a module is made of.
struct Image {
  std::vector<PtxEntry> entries;
  std::vector<Variable> variables;
  // Why a module of it cannot be loaded in a context, where that is known no sooner.
  CUresult load_code = CUDA_SUCCESS;
};

// Whether it begins, behind blanks and comments, as PTX does.
bool IsPtx(std::string_view text);

// Errors: INVALID_IMAGE            not PTX
//         INVALID_PTX              PTX that cannot be read
//         UNSUPPORTED_PTX_VERSION  newer than CUDA 13.0's
CUresult ReadPtx(std::string_view text, Image* image);

// The functions and variables that other code can refer to.
std::vector<std::string> VisibleNames(std::string_view text);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CODE_IMAGE_PTX_H_

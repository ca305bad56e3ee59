// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files of device code.

#ifndef CUDASIM_DRIVER_CODE_FILE_H_
#define CUDASIM_DRIVER_CODE_FILE_H_

#include <cuda.h>

#include <string>

namespace cudasim::driver {

// FILE_NOT_FOUND, or OUT_OF_MEMORY for a folder.
CUresult ReadFile(const char* path, std::string* data);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CODE_FILE_H_

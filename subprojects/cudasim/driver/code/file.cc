// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/code/file.h"

#include <cstdio>

namespace cudasim::driver {

CUresult ReadFile(const char* path, std::string* data) {
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return CUDA_ERROR_FILE_NOT_FOUND;
  char buffer[4096];
  for (size_t read = sizeof(buffer); read == sizeof(buffer);) {
    read = std::fread(buffer, 1, sizeof(buffer), file);
    data->append(buffer, read);
  }
  const bool failed = std::ferror(file) != 0;
  std::fclose(file);
  return failed ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

}  // namespace cudasim::driver

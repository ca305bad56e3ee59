// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/launch/launch_parameters.h"

#include <cstring>

#include "driver/panic.h"

namespace cudasim::driver {
namespace {

struct Buffer {
  char* bytes = nullptr;
  const size_t* size = nullptr;
};

CUresult ReadExtra(void** extra, Buffer* buffer) {
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer->bytes = static_cast<char*>(extra[1]);
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      buffer->size = static_cast<const size_t*>(extra[1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult LaunchParameters::Take(void** each, void** extra, bool captures) {
  if (each != nullptr && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (extra != nullptr) return TakePacked(extra, captures);
  for (size_t i = 0; i < entry_.parameters.size(); ++i) {
    if (each == nullptr || each[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    pointers_.push_back(each[i]);
  }
  return CUDA_SUCCESS;
}

std::vector<unsigned char> LaunchParameters::Packed() const {
  std::vector<unsigned char> bytes(entry_.PackedSize());
  for (size_t i = 0; i < pointers_.size(); ++i) {
    const PtxParameter& parameter = entry_.parameters[i];
    std::memcpy(bytes.data() + parameter.offset, pointers_[i], parameter.size);
  }
  return bytes;
}

CUresult LaunchParameters::TakePacked(void** extra, bool captures) {
  Buffer buffer;
  CUresult code = ReadExtra(extra, &buffer);
  if (code != CUDA_SUCCESS) return code;
  const size_t size = buffer.size != nullptr ? *buffer.size : 0;
  const bool is_nothing = buffer.bytes == nullptr || size == 0;
  if (is_nothing) return entry_.parameters.empty() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  code = CheckSize(size, captures);
  if (code != CUDA_SUCCESS) return code;
  for (const PtxParameter& parameter : entry_.parameters) {
    pointers_.push_back(buffer.bytes + parameter.offset);
  }
  return CUDA_SUCCESS;
}

CUresult LaunchParameters::CheckSize(size_t size, bool captures) const {
  PanicIfTooShort(size);
  if (size <= entry_.PackedSize()) return CUDA_SUCCESS;
  if (!captures) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  return entry_.parameters.empty() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void LaunchParameters::PanicIfTooShort(size_t size) const {
  if (size >= entry_.PackedSize()) return;
  Panic(
      "launch of \"%s\": its parameters take %zu bytes, the packed buffer has %zu; a real driver "
      "accepts it and the kernel reads garbage (measured on an H100, driver 580.159.04)",
      entry_.name.c_str(), entry_.PackedSize(), size);
}

}  // namespace cudasim::driver

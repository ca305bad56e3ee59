// SPDX-License-Identifier: Apache-2.0

#ifndef CUDASIM_RUNTIME_POINTERS_H_
#define CUDASIM_RUNTIME_POINTERS_H_

#include <cuda.h>

#include <cstdint>

namespace cudasim::runtime {

inline CUdeviceptr ToAddress(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}
inline void* ToPointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

}  // namespace cudasim::runtime

#endif  // CUDASIM_RUNTIME_POINTERS_H_

// SPDX-License-Identifier: Apache-2.0

#ifndef CUGUEST_LIB_SIM_RUNTIME_POINTERS_H_
#define CUGUEST_LIB_SIM_RUNTIME_POINTERS_H_

#include <cuda.h>

#include <cstdint>

namespace cuguest_sim_runtime {

inline CUdeviceptr ToAddress(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}
inline void* ToPointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

}  // namespace cuguest_sim_runtime

#endif  // CUGUEST_LIB_SIM_RUNTIME_POINTERS_H_

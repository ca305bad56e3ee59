// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pointers among the arguments of the runtime's entries.

#ifndef CUDASIM_RUNTIME_ARGUMENTS_H_
#define CUDASIM_RUNTIME_ARGUMENTS_H_

#include <cuda.h>
#include <driver_types.h>

#include <cstdint>

#include "driver/panic.h"

namespace cudasim::runtime {

inline CUdeviceptr ToAddress(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}
inline void* ToPointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

inline bool IsKind(cudaMemcpyKind kind) {
  return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

[[noreturn]] inline void PanicNull(const char* call) {
  cudasim::driver::Panic(
      "%s: a null argument where a real runtime crashes (measured on an H200, driver 580.159.04)",
      call);
}

}  // namespace cudasim::runtime

#endif  // CUDASIM_RUNTIME_ARGUMENTS_H_

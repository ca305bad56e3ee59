// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 4
//
// Not for embedders. Every cast between a handle of the runtime's and one of the driver's whose
// types differ: the other headers of runtime/ have none (test/headers/casts_test.py). Streams,
// events, graphs, memory pools, functions, kernels, libraries, texture and surface objects are one
// type in both APIs, which static_asserts of handle.h, function.h and texture.h say.

#ifndef CUGUEST_RUNTIME_INTERNAL_HANDLE_CAST_H_
#define CUGUEST_RUNTIME_INTERNAL_HANDLE_CAST_H_

#include <cuda.h>

#include <cstdint>

#include "cuguest/runtime/binding.h"

CUGUEST_BEGIN_RUNTIME_NAMESPACE

namespace impl {

// Whether a handle of the one type is the same value as one of the other, by the source beside it.
template <typename Runtimes, typename Drivers>
inline constexpr bool kIsOneValue = false;

// Source: CUDA Runtime API, "Interactions with the CUDA Driver API"; test/runtime/array_test.cc.
template <>
inline constexpr bool kIsOneValue<cudaArray_t, CUarray> = true;
template <>
inline constexpr bool kIsOneValue<cudaMipmappedArray_t, CUmipmappedArray> = true;

// Source: that of kIsOneValue.
template <typename Drivers, typename Runtimes>
Drivers CastToDriver(Runtimes handle) noexcept {
  static_assert(kIsOneValue<Runtimes, Drivers>, "no source says that they are one value");
  return reinterpret_cast<Drivers>(handle);
}
// Source: that of kIsOneValue.
template <typename Runtimes, typename Drivers>
Runtimes CastToRuntime(Drivers handle) noexcept {
  static_assert(kIsOneValue<Runtimes, Drivers>, "no source says that they are one value");
  return reinterpret_cast<Runtimes>(handle);
}

// Source: CUDA Programming Guide, "Interoperability between Runtime and Driver APIs";
//         test/runtime/conversion_test.cc.
inline CUdeviceptr CastToDriver(const void* pointer) noexcept {
  return reinterpret_cast<CUdeviceptr>(pointer);
}
template <typename T>
T* CastToRuntime(CUdeviceptr pointer) noexcept {
  return reinterpret_cast<T*>(pointer);
}

// Source: <cuda.h> and <driver_types.h>, where CU_STREAM_LEGACY and CU_STREAM_PER_THREAD, and the
//         runtime's two, are these numbers; test/runtime/conversion_test.cc.
inline CUstream SpecialStream(cuuint64_t number) noexcept {
  return reinterpret_cast<CUstream>(number);
}

// No document says that an execution context (cudaExecutionContext_t, which not every runtime has)
// and a CUcontext are one value, so this asks one that is known in both APIs.
template <typename Execution>
bool IsSameValue(Execution execution, CUcontext context) noexcept {
  return reinterpret_cast<std::uintptr_t>(execution) == reinterpret_cast<std::uintptr_t>(context);
}
// Requires: IsSameValue() of another one of the device.
// Source: docs/guarantees.md; test/runtime/execution_context_test.cc.
template <typename Execution>
Execution CastComparedToRuntime(CUcontext context) noexcept {
  return reinterpret_cast<Execution>(context);
}

}  // namespace impl

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_RUNTIME_INTERNAL_HANDLE_CAST_H_

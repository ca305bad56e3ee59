// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 4
/// \file
/// Heap memory: the driver's `CUdeviceptr` is the number of the runtime's pointer.
///
///   CUdeviceptr values;                       // of cuMemAlloc
///   cublasSaxpy(handle, n, &a, runtime::ToRuntime<float>(values), 1, y, 1);

#ifndef CUGUEST_RUNTIME_POINTER_H_
#define CUGUEST_RUNTIME_POINTER_H_

#include <cuda.h>

#include "cuguest/runtime/binding.h"
#include "cuguest/runtime/internal/handle_cast.h"

CUGUEST_BEGIN_RUNTIME_NAMESPACE

/// Null is 0, and 0 is null; the alignment for `T` is not checked.
/// Stack, count, last error: not touched. Nothing is called or checked. Threads: any. Cost: none.
/// Source:  CUDA Programming Guide, "Interoperability between Runtime and Driver APIs".
[[nodiscard]] inline CUdeviceptr ToDriver(const void* pointer) noexcept {
  return impl::CastToDriver(pointer);
}
template <typename T = void>
[[nodiscard]] T* ToRuntime(CUdeviceptr pointer) noexcept {
  return impl::CastToRuntime<T>(pointer);
}

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_RUNTIME_POINTER_H_

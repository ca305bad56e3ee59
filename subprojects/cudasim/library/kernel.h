// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The work of a simulated library, on the device: kernels of the simulated driver, whose
// parameters are the operation. Order, captures, replay of graphs and sticky errors are
// the driver's.

#ifndef CUDASIM_LIBRARY_KERNEL_H_
#define CUDASIM_LIBRARY_KERNEL_H_

#include <cuda.h>

#include <cstddef>
#include <type_traits>

namespace cudasim::library {

inline constexpr size_t kOperationBytes = 240;  // as in the PTX

// Code
//
// The code that operations run by. `anywhere` works in the context of any stream, as a
// kernel of the runtime does; `here` is for streams of the context that was current at
// Load(): elsewhere it is INVALID_HANDLE.
struct Code {
  CUfunction anywhere = nullptr;
  CUfunction here = nullptr;

  // What is loaded stays to the end of the process.
  CUresult Load();
  // Whether the context of `here` is over. False if it was never loaded.
  bool IsOver() const;
};

CUresult SubmitBytes(CUfunction code, CUstream stream, CUresult (*run)(const void*),
                     const void* operation, size_t bytes);

// `operation.Run()` on the stream: the sticky error that it ends in, or CUDA_SUCCESS. It
// is copied.
template <typename Operation>
CUresult Submit(CUfunction code, CUstream stream, const Operation& operation) {
  static_assert(std::is_trivially_copyable_v<Operation>);
  static_assert(sizeof(Operation) <= kOperationBytes && alignof(Operation) <= 16);
  const auto run = [](const void* data) { return static_cast<const Operation*>(data)->Run(); };
  return SubmitBytes(code, stream, run, &operation, sizeof(operation));
}

// In an operation that runs: whether its device may read and write there. Nothing is
// anywhere.
bool MayAccess(const void* address, size_t bytes);

}  // namespace cudasim::library

#endif  // CUDASIM_LIBRARY_KERNEL_H_

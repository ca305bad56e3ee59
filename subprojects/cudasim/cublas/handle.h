// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Handles, and what every call with one does.

#ifndef CUDASIM_CUBLAS_HANDLE_H_
#define CUDASIM_CUBLAS_HANDLE_H_

#include <cublas_api.h>
#include <cuda.h>

#include <optional>

#include "driver/handle_table.h"
#include "library/entry.h"
#include "library/kernel.h"
#include "library/operand.h"

namespace cudasim::cublas {

using Status = cublasStatus_t;
using cudasim::library::AreThere;
using cudasim::library::Conjugate;
using cudasim::library::Host;
using cudasim::library::IsArray;
using cudasim::library::Matrix;
using cudasim::library::Real;
using cudasim::library::Scalar;
using cudasim::library::Scaled;
using cudasim::library::Size;
using cudasim::library::ToHost;
using cudasim::library::Vector;

inline Status Launched(CUresult code) {
  return code == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

struct Handle {
  cudasim::driver::Eternal incarnation;
  cudasim::library::Code code;
  CUstream stream = nullptr;
  bool has_workspace = false;  // the caller's, which SetStream takes away
  cublasHandle_t self = nullptr;
  std::optional<CUstream> served;  // the stream that the library's workspace was last taken for
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cublasAtomicsMode_t atomics_mode = CUBLAS_ATOMICS_NOT_ALLOWED;
  cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
  int multiprocessors = 0;
  CUdeviceptr memory = 0;  // results on their way to the host are in it
};

// NOT_INITIALIZED for null; a destroyed or garbage one panics.
Status FindHandle(cublasHandle_t handle, Handle* found);
// The same for a call that computes, which panics if the handle's context is over, too.
Status FindToCompute(cublasHandle_t handle, Handle* found);

template <typename Operation>
Status Submit(const Handle& handle, const Operation& operation) {
  return Launched(cudasim::library::Submit(handle.code.anywhere, handle.stream, operation));
}

// For an operation that was measured to need a workspace: the library's is memory that is
// allocated in the order of the stream, which loses captures that are on elsewhere; but not
// again for the stream that it was last taken for. (In a capturing stream a real one becomes
// part of the graph; here it does not.)
void TakeWorkspace(const Handle& handle);

template <typename T>
Scalar<Host<T>> ToScalar(const Handle& handle, const T* factor) {
  return cudasim::library::ToScalar(handle.pointer_mode == CUBLAS_POINTER_MODE_DEVICE, factor);
}

// Waits for what the handle's stream has to do, and copies the first bytes of its memory.
Status FetchResult(const Handle& handle, void* result, size_t bytes);

}  // namespace cudasim::cublas

#endif  // CUDASIM_CUBLAS_HANDLE_H_

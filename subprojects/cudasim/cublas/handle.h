// SPDX-License-Identifier: Apache-2.0
//
// Handles, and what every call with one does.

#ifndef CUGUEST_LIB_SIM_CUBLAS_HANDLE_H_
#define CUGUEST_LIB_SIM_CUBLAS_HANDLE_H_

#include <cublas_api.h>
#include <cuda.h>

#include <optional>

#include "lib/sim/handle_table.h"
#include "lib/sim/library/entry.h"
#include "lib/sim/library/kernel.h"
#include "lib/sim/library/operand.h"

namespace cuguest_sim_cublas {

using Status = cublasStatus_t;
using cuguest_sim_library::AreThere;
using cuguest_sim_library::Conjugate;
using cuguest_sim_library::Host;
using cuguest_sim_library::IsArray;
using cuguest_sim_library::Matrix;
using cuguest_sim_library::Real;
using cuguest_sim_library::Scalar;
using cuguest_sim_library::Scaled;
using cuguest_sim_library::Size;
using cuguest_sim_library::ToHost;
using cuguest_sim_library::Vector;

inline Status Launched(CUresult code) {
  return code == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

struct Handle {
  cuguest_sim::Eternal life;
  cuguest_sim_library::Code code;
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
  return Launched(cuguest_sim_library::Submit(handle.code.anywhere, handle.stream, operation));
}

// For an operation that was measured to need a workspace: the library's is memory that is
// allocated in the order of the stream, which loses captures that are on elsewhere; but not
// again for the stream that it was last taken for. (In a capturing stream a real one becomes
// part of the graph; here it does not.)
void TakeWorkspace(const Handle& handle);

template <typename T>
Scalar<Host<T>> ToScalar(const Handle& handle, const T* factor) {
  return cuguest_sim_library::ToScalar(handle.pointer_mode == CUBLAS_POINTER_MODE_DEVICE, factor);
}

// Waits for what the handle's stream has to do, and copies the first bytes of its memory.
Status FetchResult(const Handle& handle, void* result, size_t bytes);

}  // namespace cuguest_sim_cublas

#endif  // CUGUEST_LIB_SIM_CUBLAS_HANDLE_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Is linked with every library that is simulated, and calls of each a function that is not
// modelled. 0 if all say so.

#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cufft.h>
#include <curand.h>
#include <cusolverSp.h>
#include <cusparse.h>
#include <nccl.h>

#include <cstdio>

namespace {

int wrong = 0;

void Expect(const char* name, int code, int expected) {
  std::printf("%s: %d\n", name, code);
  if (code != expected) ++wrong;
}

}  // namespace

int main() {
  Expect("cuInit", cuInit(0), CUDA_SUCCESS);
  Expect("cuMulticastUnbind", cuMulticastUnbind(0, 0, 0, 0), CUDA_ERROR_NOT_SUPPORTED);
  Expect("cudaGraphDebugDotPrint", cudaGraphDebugDotPrint(nullptr, "", 0), cudaErrorNotSupported);
  Expect("cudaGetLastError", cudaGetLastError(), cudaErrorNotSupported);
  Expect("cublasAsumEx",
         cublasAsumEx(nullptr, 0, nullptr, CUDA_R_32F, 1, nullptr, CUDA_R_32F, CUDA_R_32F),
         CUBLAS_STATUS_NOT_SUPPORTED);
  Expect("cufftResetPlanProperty", cufftResetPlanProperty(0, NVFFT_PLAN_PROPERTY_INT64_PATIENT_JIT),
         CUFFT_NOT_SUPPORTED);
  curandGenerator_t generator = nullptr;
  Expect("curandCreateGenerator", curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT),
         CURAND_STATUS_ARCH_MISMATCH);
  cusolverSpHandle_t solver = nullptr;
  Expect("cusolverSpCreate", cusolverSpCreate(&solver), CUSOLVER_STATUS_NOT_SUPPORTED);
  Expect("cusparseAxpby", cusparseAxpby(nullptr, nullptr, nullptr, nullptr, nullptr),
         CUSPARSE_STATUS_NOT_SUPPORTED);
  Expect("ncclAllGather", ncclAllGather(nullptr, nullptr, 0, ncclInt8, nullptr, nullptr),
         ncclInvalidUsage);
  return wrong;
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of the entries, the codes, and their names.

#include "cublas/rows.h"
#include "driver/panic.h"

namespace cudasim::cublas {
namespace {

CUDASIM_LIBRARY_TABLE(CUDASIM_CUBLAS_ENTRIES)

struct StatusText {
  Status status;
  const char* name;
  const char* text;
};
constexpr StatusText kTexts[] = {
    {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "success"},
    {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED",
     "the library was not initialized"},
    {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE",
     "an unsupported value or parameter was passed to the function"},
    {CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH",
     "the function requires an architectural feature absent from the device"},
    {CUBLAS_STATUS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR",
     "an access to GPU memory space failed"},
    {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED",
     "the function failed to launch on the GPU"},
    {CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED",
     "the requested functionality is not supported"},
    {CUBLAS_STATUS_LICENSE_ERROR, "CUBLAS_STATUS_LICENSE_ERROR", "the license check failed"},
};
constexpr StatusText kUnknown = {CUBLAS_STATUS_INTERNAL_ERROR, "unrecognized status",
                                 "unrecognized status"};

const StatusText& TextOf(Status status) {
  for (const StatusText& text : kTexts) {
    if (text.status == status) return text;
  }
  return kUnknown;
}

}  // namespace

// Without counters: they neither fail nor do anything.
extern "C" {
__attribute__((visibility("default"))) const char* Export_GetStatusName(Status status) __asm__(
    "cublasGetStatusName");
const char* Export_GetStatusName(Status status) { return TextOf(status).name; }

__attribute__((visibility("default"))) const char* Export_GetStatusString(Status status) __asm__(
    "cublasGetStatusString");
const char* Export_GetStatusString(Status status) { return TextOf(status).text; }

__attribute__((visibility("default"))) size_t Export_GetCudartVersion() __asm__(
    "cublasGetCudartVersion");
size_t Export_GetCudartVersion() { return CUDART_VERSION; }
}

}  // namespace cudasim::cublas

namespace cudasim::library {

const EntryTable& Entries() { return cudasim::cublas::kTable; }

const int kNotSupported = CUBLAS_STATUS_NOT_SUPPORTED;

int RefusalOf(CUresult code) {
  if (code == CUDA_ERROR_DEINITIALIZED) {
    cudasim::driver::Panic("cuBLAS was to compute after the end of the driver; a real one crashes");
  }
  return code == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INTERNAL_ERROR;
}

}  // namespace cudasim::library

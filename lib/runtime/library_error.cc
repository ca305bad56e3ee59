// SPDX-License-Identifier: Apache-2.0

#include "cuguest/internal/library_error.h"

#include <cuda.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "cuguest/error.h"
#include "lib/context/identity.h"
#include "lib/core/driver_access.h"
#include "lib/core/error_status.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

using absl::StatusCode;

struct Row {
  int code;
  const char* name;
  StatusCode canonical;
  const char* text;         // the library's own, where it has one
  const char* advice = "";  // what to do about it
};

constexpr char kBadArgument[] =
    "; check sizes, leading dimensions, increments and null pointers, and which mode scalars are "
    "in";
constexpr char kNoMemory[] = "; free device memory, or give a smaller workspace";
constexpr char kNoHandle[] =
    "; the handle is null or was destroyed, or its context could not be used: is it borrowed by a "
    "scope?";
constexpr char kFailedThere[] =
    "; wait for the stream to see whether an earlier error of the device is the cause";

// In ascending order, with the texts of cublasGetStatusString.
constexpr Row kCublasRows[] = {
    {1, "CUBLAS_STATUS_NOT_INITIALIZED", StatusCode::kFailedPrecondition,
     "the library was not initialized", kNoHandle},
    {3, "CUBLAS_STATUS_ALLOC_FAILED", StatusCode::kResourceExhausted,
     "the resource allocation failed", kNoMemory},
    {7, "CUBLAS_STATUS_INVALID_VALUE", StatusCode::kInvalidArgument,
     "an unsupported value or parameter was passed to the function", kBadArgument},
    {8, "CUBLAS_STATUS_ARCH_MISMATCH", StatusCode::kUnimplemented,
     "the function requires an architectural feature absent from the device"},
    {11, "CUBLAS_STATUS_MAPPING_ERROR", StatusCode::kInternal,
     "an access to GPU memory space failed", kFailedThere},
    {13, "CUBLAS_STATUS_EXECUTION_FAILED", StatusCode::kInternal,
     "the function failed to launch on the GPU", kFailedThere},
    {14, "CUBLAS_STATUS_INTERNAL_ERROR", StatusCode::kInternal, "an internal operation failed",
     kFailedThere},
    {15, "CUBLAS_STATUS_NOT_SUPPORTED", StatusCode::kUnimplemented,
     "the requested functionality is not supported"},
    {16, "CUBLAS_STATUS_LICENSE_ERROR", StatusCode::kFailedPrecondition,
     "the license check failed"},
};

// cuFFT has no texts: these are from its documentation.
constexpr Row kCufftRows[] = {
    {1, "CUFFT_INVALID_PLAN", StatusCode::kInvalidArgument,
     "the plan handle is not valid, or the plan was not made yet",
     "; is it borrowed by a scope that lives?"},
    {2, "CUFFT_ALLOC_FAILED", StatusCode::kResourceExhausted,
     "device or host memory could not be allocated", kNoMemory},
    {3, "CUFFT_INVALID_TYPE", StatusCode::kInvalidArgument,
     "the type of the transform is not supported",
     "; use the cufftExec function of the layout's type"},
    {4, "CUFFT_INVALID_VALUE", StatusCode::kInvalidArgument, "a pointer or a parameter is invalid"},
    {5, "CUFFT_INTERNAL_ERROR", StatusCode::kInternal, "an internal driver error", kFailedThere},
    {6, "CUFFT_EXEC_FAILED", StatusCode::kInternal, "the transform failed to run on the GPU",
     kFailedThere},
    {7, "CUFFT_SETUP_FAILED", StatusCode::kInternal, "the library failed to initialise"},
    {8, "CUFFT_INVALID_SIZE", StatusCode::kInvalidArgument,
     "a size of the transform is not supported"},
    {9, "CUFFT_UNALIGNED_DATA", StatusCode::kInvalidArgument, "the data is not aligned"},
    {11, "CUFFT_INVALID_DEVICE", StatusCode::kFailedPrecondition,
     "the plan was made on another device than the current one",
     "; use it inside the scope that borrowed it"},
    {13, "CUFFT_NO_WORKSPACE", StatusCode::kFailedPrecondition, "no work area was given",
     "; give the scope one of CufftPlans::WorkBytes bytes"},
    {14, "CUFFT_NOT_IMPLEMENTED", StatusCode::kUnimplemented, "it is not implemented"},
    {16, "CUFFT_NOT_SUPPORTED", StatusCode::kUnimplemented,
     "it is not supported for these parameters"},
    {17, "CUFFT_MISSING_DEPENDENCY", StatusCode::kUnavailable,
     "a library that cuFFT needs was not found"},
    {18, "CUFFT_NVRTC_FAILURE", StatusCode::kInternal, "NVRTC failed while a plan was made"},
    {19, "CUFFT_NVJITLINK_FAILURE", StatusCode::kInternal,
     "nvJitLink failed while a plan was made"},
    {20, "CUFFT_NVSHMEM_FAILURE", StatusCode::kInternal, "NVSHMEM failed"},
};

// cuSOLVER has no texts: these are from its documentation.
constexpr Row kCusolverRows[] = {
    {1, "CUSOLVER_STATUS_NOT_INITIALIZED", StatusCode::kFailedPrecondition,
     "the library was not initialised", kNoHandle},
    {2, "CUSOLVER_STATUS_ALLOC_FAILED", StatusCode::kResourceExhausted,
     "a resource could not be allocated", kNoMemory},
    {3, "CUSOLVER_STATUS_INVALID_VALUE", StatusCode::kInvalidArgument,
     "a value or parameter is not supported", kBadArgument},
    {4, "CUSOLVER_STATUS_ARCH_MISMATCH", StatusCode::kUnimplemented,
     "the device lacks a feature that the function needs"},
    {5, "CUSOLVER_STATUS_MAPPING_ERROR", StatusCode::kInternal, "an access to device memory failed",
     kFailedThere},
    {6, "CUSOLVER_STATUS_EXECUTION_FAILED", StatusCode::kInternal,
     "the function failed to launch on the GPU", kFailedThere},
    {7, "CUSOLVER_STATUS_INTERNAL_ERROR", StatusCode::kInternal, "an internal operation failed",
     kFailedThere},
    {8, "CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED", StatusCode::kInvalidArgument,
     "the type of the matrix is not supported"},
    {9, "CUSOLVER_STATUS_NOT_SUPPORTED", StatusCode::kUnimplemented,
     "the combination of parameters is not supported"},
    {10, "CUSOLVER_STATUS_ZERO_PIVOT", StatusCode::kFailedPrecondition, "a pivot is zero"},
    {11, "CUSOLVER_STATUS_INVALID_LICENSE", StatusCode::kFailedPrecondition,
     "the license check failed"},
    {12, "CUSOLVER_STATUS_IRS_PARAMS_NOT_INITIALIZED", StatusCode::kInvalidArgument,
     "the parameters of the iterative refinement were not created"},
    {13, "CUSOLVER_STATUS_IRS_PARAMS_INVALID", StatusCode::kInvalidArgument,
     "a parameter of the iterative refinement is wrong"},
    {14, "CUSOLVER_STATUS_IRS_PARAMS_INVALID_PREC", StatusCode::kInvalidArgument,
     "the precision of the iterative refinement is wrong"},
    {15, "CUSOLVER_STATUS_IRS_PARAMS_INVALID_REFINE", StatusCode::kInvalidArgument,
     "the solver of the iterative refinement is wrong"},
    {16, "CUSOLVER_STATUS_IRS_PARAMS_INVALID_MAXITER", StatusCode::kInvalidArgument,
     "the iterations of the iterative refinement are out of range"},
    {20, "CUSOLVER_STATUS_IRS_INTERNAL_ERROR", StatusCode::kInternal,
     "the iterative refinement failed", kFailedThere},
    {21, "CUSOLVER_STATUS_IRS_NOT_SUPPORTED", StatusCode::kUnimplemented,
     "the iterative refinement does not support it"},
    {22, "CUSOLVER_STATUS_IRS_OUT_OF_RANGE", StatusCode::kInvalidArgument,
     "a value of the iterative refinement is out of range"},
    {23, "CUSOLVER_STATUS_IRS_NRHS_NOT_SUPPORTED_FOR_REFINE_GMRES", StatusCode::kInvalidArgument,
     "GMRES refines one right-hand side at a time"},
    {25, "CUSOLVER_STATUS_IRS_INFOS_NOT_INITIALIZED", StatusCode::kInvalidArgument,
     "the information of the iterative refinement was not created"},
    {26, "CUSOLVER_STATUS_IRS_INFOS_NOT_DESTROYED", StatusCode::kFailedPrecondition,
     "the information of the iterative refinement was not destroyed"},
    {30, "CUSOLVER_STATUS_IRS_MATRIX_SINGULAR", StatusCode::kFailedPrecondition,
     "the matrix is singular"},
    {31, "CUSOLVER_STATUS_INVALID_WORKSPACE", StatusCode::kInvalidArgument,
     "the workspace is too small or not valid", "; ask the function's bufferSize twin"},
};

// With the texts of cusparseGetErrorString.
constexpr Row kCusparseRows[] = {
    {1, "CUSPARSE_STATUS_NOT_INITIALIZED", StatusCode::kFailedPrecondition, "initialization error",
     kNoHandle},
    {2, "CUSPARSE_STATUS_ALLOC_FAILED", StatusCode::kResourceExhausted, "out of memory", kNoMemory},
    {3, "CUSPARSE_STATUS_INVALID_VALUE", StatusCode::kInvalidArgument, "invalid value",
     "; check sizes, index types, null pointers and descriptors"},
    {4, "CUSPARSE_STATUS_ARCH_MISMATCH", StatusCode::kUnimplemented, "architecture mismatch"},
    {5, "CUSPARSE_STATUS_MAPPING_ERROR", StatusCode::kInternal, "texture memory mapping error",
     kFailedThere},
    {6, "CUSPARSE_STATUS_EXECUTION_FAILED", StatusCode::kInternal, "kernel launch failure",
     kFailedThere},
    {7, "CUSPARSE_STATUS_INTERNAL_ERROR", StatusCode::kInternal, "internal error", kFailedThere},
    {8, "CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED", StatusCode::kInvalidArgument,
     "matrix type not supported"},
    {9, "CUSPARSE_STATUS_ZERO_PIVOT", StatusCode::kFailedPrecondition, "zero pivot"},
    {10, "CUSPARSE_STATUS_NOT_SUPPORTED", StatusCode::kUnimplemented, "operation not supported"},
    {11, "CUSPARSE_STATUS_INSUFFICIENT_RESOURCES", StatusCode::kResourceExhausted,
     "insufficient resources"},
};

constexpr Row kUnrecognized = {
    -1, "an unrecognized code", StatusCode::kUnknown,
    "newer than cuguest; the toolkit library's own documentation has it"};

struct Table {
  const Row* begin;
  const Row* end;
  const char* payload;
};

Table TableOf(Library library) noexcept {
  switch (library) {
    case Library::kCublas:
      return {std::begin(kCublasRows), std::end(kCublasRows), "cuguest/cublasStatus_t"};
    case Library::kCufft:
      return {std::begin(kCufftRows), std::end(kCufftRows), "cuguest/cufftResult"};
    case Library::kCusolver:
      return {std::begin(kCusolverRows), std::end(kCusolverRows), "cuguest/cusolverStatus_t"};
    case Library::kCusparse:
      return {std::begin(kCusparseRows), std::end(kCusparseRows), "cuguest/cusparseStatus_t"};
  }
  return {nullptr, nullptr, ""};
}

const Row& Find(const Table& table, int code) noexcept {
  const Row* row =
      std::lower_bound(table.begin, table.end, code,
                       [](const Row& candidate, int wanted) { return candidate.code < wanted; });
  return row != table.end && row->code == code ? *row : kUnrecognized;
}

// The sticky error of the current context's device; CUDA_SUCCESS if there is none.
// Source: test/process/lost_device_test.cc.
CUresult StickyError() noexcept {
  const Driver* const driver = AsDriver(g_driver.load(std::memory_order_acquire));
  unsigned long long id = 0;
  const CUresult code = driver == nullptr ? CUDA_SUCCESS : ReadId(*driver, nullptr, &id);
  return IsSticky(code) ? code : CUDA_SUCCESS;
}

absl::Status StatusOfRow(const Row& row, std::string_view doing, std::string_view object,
                         const std::string& said) {
  const CUresult sticky = StickyError();
  if (sticky != CUDA_SUCCESS) {
    return ErrorStatus(sticky, doing, object,
                       absl::StrCat(said, ", after ", ErrorName(sticky), ": ", ErrorText(sticky)));
  }
  std::string text(doing);
  if (!object.empty()) {
    if (!text.empty()) text += ", ";
    text += object;
  }
  if (!text.empty()) text += ": ";
  return absl::Status(row.canonical, text + said + row.advice);
}

}  // namespace

absl::Status MakeLibraryStatus(Library library, int code, std::string_view doing,
                               std::string_view object) {
  const Table table = TableOf(library);
  const Row& row = Find(table, code);
  absl::Status status =
      StatusOfRow(row, doing, object, absl::StrCat(row.name, " (", code, "): ", row.text));
  SetNumber(table.payload, code, &status);
  return status;
}

std::optional<int> LibraryCodeOf(Library library, const absl::Status& status) {
  if (status.ok()) return 0;
  return NumberOf(TableOf(library).payload, status);
}

}  // namespace internal
CUGUEST_END_NAMESPACE

// SPDX-License-Identifier: Apache-2.0

#include "cuguest/internal/toolkit_library.h"

#include <cuda.h>
#include <dlfcn.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "cuguest/error.h"
#include "lib/context/identity.h"
#include "lib/core/code_table.h"
#include "lib/core/driver_access.h"
#include "lib/core/error_status.h"
#include "lib/core/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

using absl::StatusCode;

struct Row {
  int code;
  const char* name;  // without the library's prefix
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
    {1, "NOT_INITIALIZED", StatusCode::kFailedPrecondition, "the library was not initialized",
     kNoHandle},
    {3, "ALLOC_FAILED", StatusCode::kResourceExhausted, "the resource allocation failed",
     kNoMemory},
    {7, "INVALID_VALUE", StatusCode::kInvalidArgument,
     "an unsupported value or parameter was passed to the function", kBadArgument},
    {8, "ARCH_MISMATCH", StatusCode::kUnimplemented,
     "the function requires an architectural feature absent from the device"},
    {11, "MAPPING_ERROR", StatusCode::kInternal, "an access to GPU memory space failed",
     kFailedThere},
    {13, "EXECUTION_FAILED", StatusCode::kInternal, "the function failed to launch on the GPU",
     kFailedThere},
    {14, "INTERNAL_ERROR", StatusCode::kInternal, "an internal operation failed", kFailedThere},
    {15, "NOT_SUPPORTED", StatusCode::kUnimplemented,
     "the requested functionality is not supported"},
    {16, "LICENSE_ERROR", StatusCode::kFailedPrecondition, "the license check failed"},
};

// cuFFT has no texts: these are from its documentation.
constexpr Row kCufftRows[] = {
    {1, "INVALID_PLAN", StatusCode::kInvalidArgument,
     "the plan handle is not valid, or the plan was not made yet",
     "; is it borrowed by a scope that lives?"},
    {2, "ALLOC_FAILED", StatusCode::kResourceExhausted,
     "device or host memory could not be allocated", kNoMemory},
    {3, "INVALID_TYPE", StatusCode::kInvalidArgument, "the type of the transform is not supported",
     "; use the cufftExec function of the layout's type"},
    {4, "INVALID_VALUE", StatusCode::kInvalidArgument, "a pointer or a parameter is invalid"},
    {5, "INTERNAL_ERROR", StatusCode::kInternal, "an internal driver error", kFailedThere},
    {6, "EXEC_FAILED", StatusCode::kInternal, "the transform failed to run on the GPU",
     kFailedThere},
    {7, "SETUP_FAILED", StatusCode::kInternal, "the library failed to initialise"},
    {8, "INVALID_SIZE", StatusCode::kInvalidArgument, "a size of the transform is not supported"},
    {9, "UNALIGNED_DATA", StatusCode::kInvalidArgument, "the data is not aligned"},
    {11, "INVALID_DEVICE", StatusCode::kFailedPrecondition,
     "the plan was made on another device than the current one",
     "; use it inside the scope that borrowed it"},
    {13, "NO_WORKSPACE", StatusCode::kFailedPrecondition, "no work area was given",
     "; give the scope one of CufftPlans::WorkBytes bytes"},
    {14, "NOT_IMPLEMENTED", StatusCode::kUnimplemented, "it is not implemented"},
    {16, "NOT_SUPPORTED", StatusCode::kUnimplemented, "it is not supported for these parameters"},
    {17, "MISSING_DEPENDENCY", StatusCode::kUnavailable,
     "a library that cuFFT needs was not found"},
    {18, "NVRTC_FAILURE", StatusCode::kInternal, "NVRTC failed while a plan was made"},
    {19, "NVJITLINK_FAILURE", StatusCode::kInternal, "nvJitLink failed while a plan was made"},
    {20, "NVSHMEM_FAILURE", StatusCode::kInternal, "NVSHMEM failed"},
};

// cuSOLVER has no texts: these are from its documentation.
constexpr Row kCusolverRows[] = {
    {1, "NOT_INITIALIZED", StatusCode::kFailedPrecondition, "the library was not initialised",
     kNoHandle},
    {2, "ALLOC_FAILED", StatusCode::kResourceExhausted, "a resource could not be allocated",
     kNoMemory},
    {3, "INVALID_VALUE", StatusCode::kInvalidArgument, "a value or parameter is not supported",
     kBadArgument},
    {4, "ARCH_MISMATCH", StatusCode::kUnimplemented,
     "the device lacks a feature that the function needs"},
    {5, "MAPPING_ERROR", StatusCode::kInternal, "an access to device memory failed", kFailedThere},
    {6, "EXECUTION_FAILED", StatusCode::kInternal, "the function failed to launch on the GPU",
     kFailedThere},
    {7, "INTERNAL_ERROR", StatusCode::kInternal, "an internal operation failed", kFailedThere},
    {8, "MATRIX_TYPE_NOT_SUPPORTED", StatusCode::kInvalidArgument,
     "the type of the matrix is not supported"},
    {9, "NOT_SUPPORTED", StatusCode::kUnimplemented,
     "the combination of parameters is not supported"},
    {10, "ZERO_PIVOT", StatusCode::kFailedPrecondition, "a pivot is zero"},
    {11, "INVALID_LICENSE", StatusCode::kFailedPrecondition, "the license check failed"},
    {12, "IRS_PARAMS_NOT_INITIALIZED", StatusCode::kInvalidArgument,
     "the parameters of the iterative refinement were not created"},
    {13, "IRS_PARAMS_INVALID", StatusCode::kInvalidArgument,
     "a parameter of the iterative refinement is wrong"},
    {14, "IRS_PARAMS_INVALID_PREC", StatusCode::kInvalidArgument,
     "the precision of the iterative refinement is wrong"},
    {15, "IRS_PARAMS_INVALID_REFINE", StatusCode::kInvalidArgument,
     "the solver of the iterative refinement is wrong"},
    {16, "IRS_PARAMS_INVALID_MAXITER", StatusCode::kInvalidArgument,
     "the iterations of the iterative refinement are out of range"},
    {20, "IRS_INTERNAL_ERROR", StatusCode::kInternal, "the iterative refinement failed",
     kFailedThere},
    {21, "IRS_NOT_SUPPORTED", StatusCode::kUnimplemented,
     "the iterative refinement does not support it"},
    {22, "IRS_OUT_OF_RANGE", StatusCode::kInvalidArgument,
     "a value of the iterative refinement is out of range"},
    {23, "IRS_NRHS_NOT_SUPPORTED_FOR_REFINE_GMRES", StatusCode::kInvalidArgument,
     "GMRES refines one right-hand side at a time"},
    {25, "IRS_INFOS_NOT_INITIALIZED", StatusCode::kInvalidArgument,
     "the information of the iterative refinement was not created"},
    {26, "IRS_INFOS_NOT_DESTROYED", StatusCode::kFailedPrecondition,
     "the information of the iterative refinement was not destroyed"},
    {30, "IRS_MATRIX_SINGULAR", StatusCode::kFailedPrecondition, "the matrix is singular"},
    {31, "INVALID_WORKSPACE", StatusCode::kInvalidArgument,
     "the workspace is too small or not valid", "; ask the function's bufferSize twin"},
};

// With the texts of cusparseGetErrorString.
constexpr Row kCusparseRows[] = {
    {1, "NOT_INITIALIZED", StatusCode::kFailedPrecondition, "initialization error", kNoHandle},
    {2, "ALLOC_FAILED", StatusCode::kResourceExhausted, "out of memory", kNoMemory},
    {3, "INVALID_VALUE", StatusCode::kInvalidArgument, "invalid value",
     "; check sizes, index types, null pointers and descriptors"},
    {4, "ARCH_MISMATCH", StatusCode::kUnimplemented, "architecture mismatch"},
    {5, "MAPPING_ERROR", StatusCode::kInternal, "texture memory mapping error", kFailedThere},
    {6, "EXECUTION_FAILED", StatusCode::kInternal, "kernel launch failure", kFailedThere},
    {7, "INTERNAL_ERROR", StatusCode::kInternal, "internal error", kFailedThere},
    {8, "MATRIX_TYPE_NOT_SUPPORTED", StatusCode::kInvalidArgument, "matrix type not supported"},
    {9, "ZERO_PIVOT", StatusCode::kFailedPrecondition, "zero pivot"},
    {10, "NOT_SUPPORTED", StatusCode::kUnimplemented, "operation not supported"},
    {11, "INSUFFICIENT_RESOURCES", StatusCode::kResourceExhausted, "insufficient resources"},
};

struct Codes {
  const char* payload;
  const char* prefix;
  CodeTable<Row> rows;
};

// By Library.
constexpr Codes kCodes[] = {
    {"cuguest/cublasStatus_t", "CUBLAS_STATUS_", kCublasRows},
    {"cuguest/cufftResult", "CUFFT_", kCufftRows},
    {"cuguest/cusolverStatus_t", "CUSOLVER_STATUS_", kCusolverRows},
    {"cuguest/cusparseStatus_t", "CUSPARSE_STATUS_", kCusparseRows},
};

const Codes& CodesOf(Library library) noexcept { return kCodes[static_cast<int>(library)]; }

// The sticky error of the current context's device; CUDA_SUCCESS if there is none.
// Source: test/process/lost_device_test.cc.
CUresult StickyError() noexcept {
  const Driver* const driver = AsDriver(g_driver.load(std::memory_order_acquire));
  unsigned long long id = 0;
  const CUresult code = driver == nullptr ? CUDA_SUCCESS : ReadId(*driver, nullptr, &id);
  return IsSticky(code) ? code : CUDA_SUCCESS;
}

}  // namespace

absl::Status MakeLibraryStatus(Library library, int code, std::string_view doing,
                               std::string_view object) {
  const Codes& codes = CodesOf(library);
  const Row* const row = codes.rows.Find(code);
  const std::string said =
      row == nullptr ? absl::StrCat("an unrecognized code (", code,
                                    "): newer than cuguest; the toolkit library's own "
                                    "documentation has it")
                     : absl::StrCat(codes.prefix, row->name, " (", code, "): ", row->text);
  const CUresult sticky = StickyError();
  absl::Status status =
      sticky != CUDA_SUCCESS
          ? ErrorStatus(sticky, doing, object,
                        absl::StrCat(said, ", after ", ErrorName(sticky), ": ", ErrorText(sticky)))
          : absl::Status(row == nullptr ? StatusCode::kUnknown : row->canonical,
                         StatusText(doing, object, said + (row == nullptr ? "" : row->advice)));
  SetNumber(codes.payload, code, &status);
  return status;
}

std::optional<int> LibraryCodeOf(Library library, const absl::Status& status) {
  if (status.ok()) return 0;
  return NumberOf(CodesOf(library).payload, status);
}

absl::StatusOr<void*> OpenLibrary(const std::string& name) {
  void* const file = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (file != nullptr) return file;
  const char* const why = dlerror();
  return absl::UnavailableError(
      absl::StrCat("load ", name, ": ", why == nullptr ? "no reason given" : why,
                   "; is the CUDA Toolkit's library folder on the library path?"));
}

absl::StatusOr<void*> FindSymbol(void* file, const std::string& name, const char* symbol) {
  void* const found = dlsym(file, symbol);
  if (found != nullptr) return found;
  return absl::UnimplementedError(
      absl::StrCat("find ", symbol, " in ", name.empty() ? "the program" : name,
                   ": it is not there; use a library of the CUDA version that this was compiled "
                   "with, or newer"));
}

absl::Status FindEntries(void* file, const std::string& name,
                         const std::vector<LibraryEntry>& entries) {
  for (const LibraryEntry& entry : entries) {
    CUGUEST_ASSIGN_OR_RETURN(void* const found, FindSymbol(file, name, entry.symbol));
    std::memcpy(entry.address, &found, sizeof(void*));
  }
  return absl::OkStatus();
}

absl::Status CheckMajor(const std::string& name, int major, int compiled_for) {
  if (major == compiled_for) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("load ", name, ": its major version is ", major,
                                                    ", and this was compiled for ", compiled_for,
                                                    ", whose functions may have other parameters"));
}

}  // namespace internal
CUGUEST_END_NAMESPACE

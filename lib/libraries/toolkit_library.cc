// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/libraries/internal/toolkit_library.h"

#include <cuda.h>
#include <dlfcn.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "cuguest/status.h"
#include "lib/core/code_table.h"
#include "lib/core/driver_access.h"
#include "lib/status/error_status.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

struct LibraryRow {
  int code;
  const char* name;  // without the library's prefix
  absl::StatusCode canonical;
  const char* text;         // the library's own, where it has one
  const char* advice = "";  // what to do about it
};

constexpr char kBadArgument[] =
    "; check sizes, leading dimensions, increments and null pointers, and which mode scalars are "
    "in";
constexpr char kFreeMemory[] = "; free device memory, or give a smaller workspace";
constexpr char kNoHandle[] =
    "; the handle is null or was destroyed, or its context could not be used: is it borrowed by a "
    "scope?";
constexpr char kFailedThere[] =
    "; wait for the stream to see whether an earlier error of the device is the cause";

#define ROW(code, name, canonical, ...) \
  { code, #name, absl::StatusCode::canonical, __VA_ARGS__ }

// In ascending order, with the texts of cublasGetStatusString.
constexpr LibraryRow kCublasRows[] = {
    ROW(1, NOT_INITIALIZED, kFailedPrecondition, "the library was not initialized", kNoHandle),
    ROW(3, ALLOC_FAILED, kResourceExhausted, "the resource allocation failed", kFreeMemory),
    ROW(7, INVALID_VALUE, kInvalidArgument,
        "an unsupported value or parameter was passed to the function", kBadArgument),
    ROW(8, ARCH_MISMATCH, kUnimplemented,
        "the function requires an architectural feature absent from the device"),
    ROW(11, MAPPING_ERROR, kInternal, "an access to GPU memory space failed", kFailedThere),
    ROW(13, EXECUTION_FAILED, kInternal, "the function failed to launch on the GPU", kFailedThere),
    ROW(14, INTERNAL_ERROR, kInternal, "an internal operation failed", kFailedThere),
    ROW(15, NOT_SUPPORTED, kUnimplemented, "the requested functionality is not supported"),
    ROW(16, LICENSE_ERROR, kFailedPrecondition, "the license check failed"),
};

// cuFFT has no texts: these are from its documentation.
constexpr LibraryRow kCufftRows[] = {
    ROW(1, INVALID_PLAN, kInvalidArgument,
        "the plan handle is not valid, or the plan was not made yet",
        "; is it borrowed by a scope that lives?"),
    ROW(2, ALLOC_FAILED, kResourceExhausted, "device or host memory could not be allocated",
        kFreeMemory),
    ROW(3, INVALID_TYPE, kInvalidArgument, "the type of the transform is not supported",
        "; use the cufftExec function of the layout's type"),
    ROW(4, INVALID_VALUE, kInvalidArgument, "a pointer or a parameter is invalid"),
    ROW(5, INTERNAL_ERROR, kInternal, "an internal driver error", kFailedThere),
    ROW(6, EXEC_FAILED, kInternal, "the transform failed to run on the GPU", kFailedThere),
    ROW(7, SETUP_FAILED, kInternal, "the library failed to initialise"),
    ROW(8, INVALID_SIZE, kInvalidArgument, "a size of the transform is not supported"),
    ROW(9, UNALIGNED_DATA, kInvalidArgument, "the data is not aligned"),
    ROW(11, INVALID_DEVICE, kFailedPrecondition,
        "the plan was made on another device than the current one",
        "; use it inside the scope that borrowed it"),
    ROW(13, NO_WORKSPACE, kFailedPrecondition, "no work area was given",
        "; give the scope one of CufftPlans::WorkBytes bytes"),
    ROW(14, NOT_IMPLEMENTED, kUnimplemented, "it is not implemented"),
    ROW(16, NOT_SUPPORTED, kUnimplemented, "it is not supported for these parameters"),
    ROW(17, MISSING_DEPENDENCY, kUnavailable, "a library that cuFFT needs was not found"),
    ROW(18, NVRTC_FAILURE, kInternal, "NVRTC failed while a plan was made"),
    ROW(19, NVJITLINK_FAILURE, kInternal, "nvJitLink failed while a plan was made"),
    ROW(20, NVSHMEM_FAILURE, kInternal, "NVSHMEM failed"),
};

// cuSOLVER has no texts: these are from its documentation.
constexpr LibraryRow kCusolverRows[] = {
    ROW(1, NOT_INITIALIZED, kFailedPrecondition, "the library was not initialised", kNoHandle),
    ROW(2, ALLOC_FAILED, kResourceExhausted, "a resource could not be allocated", kFreeMemory),
    ROW(3, INVALID_VALUE, kInvalidArgument, "a value or parameter is not supported", kBadArgument),
    ROW(4, ARCH_MISMATCH, kUnimplemented, "the device lacks a feature that the function needs"),
    ROW(5, MAPPING_ERROR, kInternal, "an access to device memory failed", kFailedThere),
    ROW(6, EXECUTION_FAILED, kInternal, "the function failed to launch on the GPU", kFailedThere),
    ROW(7, INTERNAL_ERROR, kInternal, "an internal operation failed", kFailedThere),
    ROW(8, MATRIX_TYPE_NOT_SUPPORTED, kInvalidArgument, "the type of the matrix is not supported"),
    ROW(9, NOT_SUPPORTED, kUnimplemented, "the combination of parameters is not supported"),
    ROW(10, ZERO_PIVOT, kFailedPrecondition, "a pivot is zero"),
    ROW(11, INVALID_LICENSE, kFailedPrecondition, "the license check failed"),
    ROW(12, IRS_PARAMS_NOT_INITIALIZED, kInvalidArgument,
        "the parameters of the iterative refinement were not created"),
    ROW(13, IRS_PARAMS_INVALID, kInvalidArgument,
        "a parameter of the iterative refinement is wrong"),
    ROW(14, IRS_PARAMS_INVALID_PREC, kInvalidArgument,
        "the precision of the iterative refinement is wrong"),
    ROW(15, IRS_PARAMS_INVALID_REFINE, kInvalidArgument,
        "the solver of the iterative refinement is wrong"),
    ROW(16, IRS_PARAMS_INVALID_MAXITER, kInvalidArgument,
        "the iterations of the iterative refinement are out of range"),
    ROW(20, IRS_INTERNAL_ERROR, kInternal, "the iterative refinement failed", kFailedThere),
    ROW(21, IRS_NOT_SUPPORTED, kUnimplemented, "the iterative refinement does not support it"),
    ROW(22, IRS_OUT_OF_RANGE, kInvalidArgument,
        "a value of the iterative refinement is out of range"),
    ROW(23, IRS_NRHS_NOT_SUPPORTED_FOR_REFINE_GMRES, kInvalidArgument,
        "GMRES refines one right-hand side at a time"),
    ROW(25, IRS_INFOS_NOT_INITIALIZED, kInvalidArgument,
        "the information of the iterative refinement was not created"),
    ROW(26, IRS_INFOS_NOT_DESTROYED, kFailedPrecondition,
        "the information of the iterative refinement was not destroyed"),
    ROW(30, IRS_MATRIX_SINGULAR, kFailedPrecondition, "the matrix is singular"),
    ROW(31, INVALID_WORKSPACE, kInvalidArgument, "the workspace is too small or not valid",
        "; ask the function's bufferSize twin"),
};

// With the texts of cusparseGetErrorString.
constexpr LibraryRow kCusparseRows[] = {
    ROW(1, NOT_INITIALIZED, kFailedPrecondition, "initialization error", kNoHandle),
    ROW(2, ALLOC_FAILED, kResourceExhausted, "out of memory", kFreeMemory),
    ROW(3, INVALID_VALUE, kInvalidArgument, "invalid value",
        "; check sizes, index types, null pointers and descriptors"),
    ROW(4, ARCH_MISMATCH, kUnimplemented, "architecture mismatch"),
    ROW(5, MAPPING_ERROR, kInternal, "texture memory mapping error", kFailedThere),
    ROW(6, EXECUTION_FAILED, kInternal, "kernel launch failure", kFailedThere),
    ROW(7, INTERNAL_ERROR, kInternal, "internal error", kFailedThere),
    ROW(8, MATRIX_TYPE_NOT_SUPPORTED, kInvalidArgument, "matrix type not supported"),
    ROW(9, ZERO_PIVOT, kFailedPrecondition, "zero pivot"),
    ROW(10, NOT_SUPPORTED, kUnimplemented, "operation not supported"),
    ROW(11, INSUFFICIENT_RESOURCES, kResourceExhausted, "insufficient resources"),
};

// With the texts of ncclGetErrorString, but for where they say that NCCL_DEBUG prints more.
constexpr char kDebug[] = "; NCCL_DEBUG=INFO prints details";
constexpr LibraryRow kNcclRows[] = {
    ROW(1, UnhandledCudaError, kInternal, "unhandled cuda error", kDebug),
    ROW(2, SystemError, kUnavailable, "unhandled system error", kDebug),
    ROW(3, InternalError, kInternal, "internal error", kDebug),
    ROW(4, InvalidArgument, kInvalidArgument, "invalid argument", kDebug),
    ROW(5, InvalidUsage, kInvalidArgument, "invalid usage",
        "; is a GPU given to two ranks, or do the ranks call different collectives?"),
    ROW(6, RemoteError, kUnavailable, "remote process exited or there was a network error",
        "; abort the communicator"),
    ROW(7, InProgress, kUnavailable, "NCCL operation in progress",
        "; ask ncclCommGetAsyncError until it is over"),
};

#undef ROW

struct Codes {
  const char* payload;
  const char* prefix;
  CodeTable<LibraryRow> rows;
};

// By Library.
constexpr Codes kCodes[] = {
    {"cuguest/cublasStatus_t", "CUBLAS_STATUS_", kCublasRows},
    {"cuguest/cufftResult", "CUFFT_", kCufftRows},
    {"cuguest/cusolverStatus_t", "CUSOLVER_STATUS_", kCusolverRows},
    {"cuguest/cusparseStatus_t", "CUSPARSE_STATUS_", kCusparseRows},
    {"cuguest/ncclResult_t", "nccl", kNcclRows},
};

const Codes& CodesOf(Library library) noexcept { return kCodes[static_cast<int>(library)]; }

// The sticky error of the current context's device; CUDA_SUCCESS if there is none.
// Source: test/process/lost_device_test.cc.
CUresult StickyError() noexcept {
  const DriverTable* const driver = g_driver.load(std::memory_order_acquire);
  CUcontext current = nullptr;
  unsigned long long id = 0;
  CUresult code = driver == nullptr ? CUDA_SUCCESS : driver->CtxGetCurrent(&current);
  // Not by the handle, which has an id after such an error, too.
  if (code == CUDA_SUCCESS && current != nullptr) code = ReadId(*driver, nullptr, &id);
  return IsSticky(code) ? code : CUDA_SUCCESS;
}

}  // namespace

absl::Status MakeLibraryStatus(Library library, int code, std::string_view doing,
                               std::string_view object) {
  const Codes& codes = CodesOf(library);
  const LibraryRow* const row = codes.rows.Find(code);
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
          : absl::Status(row == nullptr ? absl::StatusCode::kUnknown : row->canonical,
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
  const std::string& place = name.empty() ? "the program" : name;
  if (symbol == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("find a function in ", place, ": no name"));
  }
  void* const found = dlsym(file, symbol);
  if (found != nullptr) return found;
  return absl::UnimplementedError(
      absl::StrCat("find ", symbol, " in ", place,
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

CUGUEST_END_INTERNAL_NAMESPACE

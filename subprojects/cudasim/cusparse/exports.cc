// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Note [What cuSPARSE does to contexts]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// As measured on an H100, driver 580.159.04, with cuSPARSE 12.6:
//
// - With nothing current, a handle that is made and all that computes make device 0's
//   primary, and leave it on the caller's stack. To destroy a handle asks the driver
//   nothing.
// - Nothing compares contexts: work is right wherever its stream is. To compute with a handle whose
//   context is over loses the process's devices; it works where another context, or another
//   incarnation of the primary, has the same CUcontext by then.
// - A handle takes no memory; but making one is as forbidden in a capture as taking some.
// - Bad arguments are told of on the standard output, too.

#include <cusparse.h>

#include <cstdio>

#include "cusparse/entry_list.h"
#include "cusparse/product.h"
#include "driver/handle_table.h"
#include "driver/panic.h"
#include "library/exports.h"
#include "library/kernel.h"
#include "runtime/driver.h"
#include "runtime/not_modelled.h"

namespace cudasim::cusparse {

CUDASIM_LIBRARY_ROWS(CUDASIM_CUSPARSE_ENTRIES)

namespace {

CUDASIM_LIBRARY_TABLE(CUDASIM_CUSPARSE_ENTRIES)

using Status = cusparseStatus_t;
using cudasim::driver::Handled;
using cudasim::driver::Panic;
using cudasim::runtime::Driver;

struct Handle {
  cudasim::driver::Eternal incarnation;
  cudasim::library::Code code;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  cusparsePointerMode_t pointer_mode = CUSPARSE_POINTER_MODE_HOST;
};

using HandleTable = cudasim::driver::HandleTable<cusparseHandle_t, Handle>;
HandleTable& Handles() {
  static auto& table = *new HandleTable(66);
  return table;
}

Status Illegal(const char* call, int number, const char* name) {
  std::printf(" ** On entry to %s() parameter number %d (%s) had an illegal value\n", call, number,
              name);
  return CUSPARSE_STATUS_INVALID_VALUE;
}

Status Find(const char* call, cusparseHandle_t handle, Handle* found) {
  if (handle == nullptr) return Illegal(call, 1, "handle");
  if (Handles().Find(handle, found) == Handled::kAlive) return CUSPARSE_STATUS_SUCCESS;
  Panic("%s was given %p, which is no handle, or one that was destroyed", call,
        static_cast<void*>(handle));
}

template <typename Member, typename T>
Status Set(const char* call, cusparseHandle_t handle, Member member, T value) {
  Handle found;
  const Status status = Find(call, handle, &found);
  if (status != CUSPARSE_STATUS_SUCCESS) return status;
  found.*member = value;
  Handles().Set(handle, found);
  return CUSPARSE_STATUS_SUCCESS;
}

template <typename Member, typename T>
Status Get(const char* call, cusparseHandle_t handle, Member member, T* value) {
  Handle found;
  const Status status = Find(call, handle, &found);
  if (status != CUSPARSE_STATUS_SUCCESS) return status;
  if (value == nullptr) return Illegal(call, 2, "value");
  *value = found.*member;
  return CUSPARSE_STATUS_SUCCESS;
}

CUresult Make(Handle* created) {
  CUdeviceptr memory = 0;
  CUresult code = cudasim::library::BindContext();
  if (code == CUDA_SUCCESS) code = Driver().cuCtxGetCurrent(&created->context);
  if (code == CUDA_SUCCESS) code = Driver().cuMemAlloc(&memory, 1);
  if (code == CUDA_SUCCESS) code = Driver().cuMemFree(memory);
  return code == CUDA_SUCCESS ? created->code.Load() : code;
}

Status Create(cusparseHandle_t* handle) {
  if (handle == nullptr) return Illegal("cusparseCreate", 1, "handle");
  Handle created;
  CUresult code = Make(&created);
  if (code == CUDA_SUCCESS) code = Handles().Add(created, handle);
  if (code == CUDA_SUCCESS) return CUSPARSE_STATUS_SUCCESS;
  std::puts(" ** On entry to cusparseCreate(): CUDA context cannot be initialized");
  return CUSPARSE_STATUS_NOT_INITIALIZED;
}

Status Destroy(cusparseHandle_t handle) {
  Handle found;
  if (handle == nullptr) return CUSPARSE_STATUS_SUCCESS;
  if (Handles().Find(handle, &found) != Handled::kAlive) {
    return Illegal("cusparseDestroy", 1, "handle");
  }
  Handles().Remove(handle);
  return CUSPARSE_STATUS_SUCCESS;
}

Status GetVersion(cusparseHandle_t handle, int* version) {
  Handle found;
  const Status status = Find("cusparseGetVersion", handle, &found);
  if (status != CUSPARSE_STATUS_SUCCESS) return status;
  if (version == nullptr) return Illegal("cusparseGetVersion", 2, "version");
  *version = CUSPARSE_VERSION;
  return CUSPARSE_STATUS_SUCCESS;
}

Status GetProperty(libraryPropertyType type, int* value) {
  constexpr int kVersion[] = {CUSPARSE_VER_MAJOR, CUSPARSE_VER_MINOR, CUSPARSE_VER_PATCH};
  if (value == nullptr || type < MAJOR_VERSION || type > PATCH_LEVEL) {
    return CUSPARSE_STATUS_INVALID_VALUE;
  }
  *value = kVersion[type];
  return CUSPARSE_STATUS_SUCCESS;
}

Status SetStream(cusparseHandle_t handle, cudaStream_t stream) {
  return Set("cusparseSetStream", handle, &Handle::stream, stream);
}

Status GetStream(cusparseHandle_t handle, cudaStream_t* stream) {
  return Get("cusparseGetStream", handle, &Handle::stream, stream);
}

Status SetPointerMode(cusparseHandle_t handle, cusparsePointerMode_t mode) {
  const bool is_mode = mode == CUSPARSE_POINTER_MODE_HOST || mode == CUSPARSE_POINTER_MODE_DEVICE;
  if (!is_mode) return Illegal("cusparseSetPointerMode", 2, "mode");
  return Set("cusparseSetPointerMode", handle, &Handle::pointer_mode, mode);
}

Status GetPointerMode(cusparseHandle_t handle, cusparsePointerMode_t* mode) {
  return Get("cusparseGetPointerMode", handle, &Handle::pointer_mode, mode);
}

// Descriptors are what a handle to them points at.
template <typename Descriptor, typename Value>
Status Describe(const char* call, Descriptor* descriptor, const Value& value) {
  if (descriptor == nullptr) return Illegal(call, 1, "descr");
  *descriptor = reinterpret_cast<Descriptor>(new Value(value));
  return CUSPARSE_STATUS_SUCCESS;
}

template <typename Descriptor>
Status CreateCsr(Descriptor* descriptor, const Csr& matrix) {
  if (matrix.rows < 0) return Illegal("cusparseCreateCsr", 2, "rows");
  if (matrix.columns < 0) return Illegal("cusparseCreateCsr", 3, "cols");
  if (matrix.count < 0) return Illegal("cusparseCreateCsr", 4, "nnz");
  return Describe("cusparseCreateCsr", descriptor, matrix);
}

template <typename Descriptor>
Status CreateVector(Descriptor* descriptor, const DenseVector& vector) {
  if (vector.size < 0) return Illegal("cusparseCreateDnVec", 2, "size");
  return Describe("cusparseCreateDnVec", descriptor, vector);
}

const Csr* ToCsr(cusparseConstSpMatDescr_t matrix) { return reinterpret_cast<const Csr*>(matrix); }

const DenseVector* ToVector(cusparseConstDnVecDescr_t vector) {
  return reinterpret_cast<const DenseVector*>(vector);
}

Status DestroyMatrix(cusparseConstSpMatDescr_t matrix) {
  delete ToCsr(matrix);
  return CUSPARSE_STATUS_SUCCESS;
}

Status DestroyVector(cusparseConstDnVecDescr_t vector) {
  delete ToVector(vector);
  return CUSPARSE_STATUS_SUCCESS;
}

// Not modelled: cuSPARSE's products of mixed types, of others than float and double, or with
// indices of 64 bits.
bool IsModelled(const Csr& a, const DenseVector& x, const DenseVector& y) {
  return IsType(a.type) && x.type == a.type && y.type == a.type &&
         a.offset_type == CUSPARSE_INDEX_32I && a.index_type == CUSPARSE_INDEX_32I;
}

bool IsOperation(cusparseOperation_t operation) {
  return operation == CUSPARSE_OPERATION_NON_TRANSPOSE ||
         operation == CUSPARSE_OPERATION_TRANSPOSE ||
         operation == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE;
}

Status Check(const char* call, CUDASIM_CUSPARSE_SPMV, Handle* found) {
  static_cast<void>(how);
  const Status status = Find(call, handle, found);
  if (status != CUSPARSE_STATUS_SUCCESS) return status;
  const bool is_plain = operation == CUSPARSE_OPERATION_NON_TRANSPOSE;
  if (!IsOperation(operation)) return Illegal(call, 2, "opA");
  if (alpha == nullptr) return Illegal(call, 3, "alpha");
  if (a == nullptr) return Illegal(call, 4, "matA");
  if (x == nullptr) return Illegal(call, 5, "vecX");
  if (beta == nullptr) return Illegal(call, 6, "beta");
  if (y == nullptr) return Illegal(call, 7, "vecY");
  const Csr& matrix = *ToCsr(a);
  if (ToVector(x)->size != (is_plain ? matrix.columns : matrix.rows)) {
    return Illegal(call, 5, "vecX");
  }
  if (ToVector(y)->size != (is_plain ? matrix.rows : matrix.columns)) {
    return Illegal(call, 7, "vecY");
  }
  if (!IsModelled(matrix, *ToVector(x), *ToVector(y))) {
    return static_cast<Status>(cudasim::runtime::NotModelled(call));
  }
  return compute == matrix.type ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_NOT_SUPPORTED;
}

Status SpmvBufferSize(CUDASIM_CUSPARSE_SPMV, size_t* bytes) {
  constexpr char kCall[] = "cusparseSpMV_bufferSize";
  Handle found;
  const Status status = Check(kCall, handle, operation, alpha, a, x, beta, y, compute, how, &found);
  if (status != CUSPARSE_STATUS_SUCCESS) return status;
  if (bytes == nullptr) return Illegal(kCall, 10, "bufferSize");
  *bytes = 11;  // as measured of 1024 rows
  return CUSPARSE_STATUS_SUCCESS;
}

bool IsOver(CUcontext context) {
  unsigned long long id = 0;
  return Driver().cuCtxGetId(context, &id) == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

Status Spmv(CUDASIM_CUSPARSE_SPMV, void* buffer) {
  constexpr char kCall[] = "cusparseSpMV";
  Handle found;
  const Status status = Check(kCall, handle, operation, alpha, a, x, beta, y, compute, how, &found);
  if (status != CUSPARSE_STATUS_SUCCESS) return status;
  if (buffer == nullptr) return Illegal(kCall, 10, "externalBuffer");
  if (IsOver(found.context)) {
    Panic("%s was given the handle %p of a context that is over; a real one loses the devices",
          kCall, static_cast<void*>(handle));
  }
  const CUresult code = SubmitProduct(found.code.anywhere, found.stream,
                                      {*ToCsr(a), *ToVector(x), *ToVector(y), operation, alpha,
                                       beta, found.pointer_mode == CUSPARSE_POINTER_MODE_DEVICE});
  return code == CUDA_SUCCESS ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_INTERNAL_ERROR;
}

struct StatusText {
  const char* name;
  const char* text;
};
// By number.
constexpr StatusText kTexts[] = {
    {"CUSPARSE_STATUS_SUCCESS", "success"},
    {"CUSPARSE_STATUS_NOT_INITIALIZED", "initialization error"},
    {"CUSPARSE_STATUS_ALLOC_FAILED", "out of memory"},
    {"CUSPARSE_STATUS_INVALID_VALUE", "invalid value"},
    {"CUSPARSE_STATUS_ARCH_MISMATCH", "architecture mismatch"},
    {"CUSPARSE_STATUS_MAPPING_ERROR", "texture memory mapping error"},
    {"CUSPARSE_STATUS_EXECUTION_FAILED", "kernel launch failure"},
    {"CUSPARSE_STATUS_INTERNAL_ERROR", "internal error"},
    {"CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED", "matrix type not supported"},
    {"CUSPARSE_STATUS_ZERO_PIVOT", "zero pivot"},
    {"CUSPARSE_STATUS_NOT_SUPPORTED", "operation not supported"},
    {"CUSPARSE_STATUS_INSUFFICIENT_RESOURCES", "insufficient resources"},
};
constexpr StatusText kUnknown = {"unrecognized error code", "unrecognized error code"};

const StatusText& TextOf(Status status) {
  const auto number = static_cast<size_t>(status);
  return number < sizeof(kTexts) / sizeof(kTexts[0]) ? kTexts[number] : kUnknown;
}

}  // namespace

CUDASIM_CUSPARSE_ENTRIES(CUDASIM_LIBRARY_EXPORT)

// Without counters: they neither fail nor do anything.
extern "C" {
__attribute__((visibility("default"))) const char* Export_GetErrorName(Status status) __asm__(
    "cusparseGetErrorName");
const char* Export_GetErrorName(Status status) { return TextOf(status).name; }

__attribute__((visibility("default"))) const char* Export_GetErrorString(Status status) __asm__(
    "cusparseGetErrorString");
const char* Export_GetErrorString(Status status) { return TextOf(status).text; }
}

}  // namespace cudasim::cusparse

namespace cudasim::library {

const EntryTable& Entries() { return cudasim::cusparse::kTable; }

const int kNotSupported = CUSPARSE_STATUS_NOT_SUPPORTED;

int RefusalOf(CUresult code) {
  return code == CUDA_SUCCESS ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_INTERNAL_ERROR;
}

}  // namespace cudasim::library

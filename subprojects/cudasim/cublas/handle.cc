// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Note [What cuBLAS does to contexts]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// As measured on an H100, driver 580.159.04, with cuBLAS 13.1:
//
// - With nothing current, a handle that is made or destroyed and all that computes make device 0's
//   primary, and leave it on the caller's stack. The real library then holds two references to it,
//   for it has two runtimes inside; the simulated one holds one.
// - Nothing compares contexts. Products run by code of the context that the handle was made
//   in, and fail for a stream of another one (stream 0 is the current one's); the rest is
//   right wherever the stream is.
// - Making a handle allocates; destroying it waits for the context that is current, which
//   invalidates its captures whatever their modes, and yet succeeds.
// - When its context is over a handle may only be given a stream. To compute with it or
//   destroy it crashes, or loses the process's devices. At the end of the process to compute
//   crashes, and the rest does not.

#include "cublas/handle.h"

#include "cublas/rows.h"
#include "driver/panic.h"
#include "runtime/driver.h"

namespace cudasim::cublas {
namespace {

using cudasim::driver::Handled;
using cudasim::driver::Panic;
using cudasim::runtime::Driver;

// Of a size that shows, and not of what a real handle takes.
constexpr size_t kMemoryBytes = 1 << 16;

using HandleTable = cudasim::driver::HandleTable<cublasHandle_t, Handle>;
HandleTable& Handles() {
  static auto& table = *new HandleTable(64);
  return table;
}

// Reads one property, or writes one.
template <typename Member, typename T>
Status Get(cublasHandle_t handle, Member member, T* value) {
  Handle found;
  const Status status = FindHandle(handle, &found);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *value = found.*member;
  return CUBLAS_STATUS_SUCCESS;
}
template <typename Member, typename T>
Status Set(cublasHandle_t handle, Member member, T value) {
  Handle found;
  const Status status = FindHandle(handle, &found);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  found.*member = value;
  Handles().Set(handle, found);
  return CUBLAS_STATUS_SUCCESS;
}

[[noreturn]] void PanicOver(cublasHandle_t handle) {
  Panic(
      "cuBLAS was given the handle %p of a context that is over; a real one crashes, or loses the "
      "process's devices",
      static_cast<void*>(handle));
}

}  // namespace

Status FindHandle(cublasHandle_t handle, Handle* found) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (Handles().Find(handle, found) == Handled::kAlive) return CUBLAS_STATUS_SUCCESS;
  Panic("cuBLAS was given %p, which is no handle, or one that was destroyed",
        static_cast<void*>(handle));
}

Status FindToCompute(cublasHandle_t handle, Handle* found) {
  const Status status = FindHandle(handle, found);
  if (status == CUBLAS_STATUS_SUCCESS && found->code.IsOver()) PanicOver(handle);
  return status;
}

void TakeWorkspace(const Handle& handle) {
  CUstreamCaptureStatus captures = CU_STREAM_CAPTURE_STATUS_NONE;
  if (handle.has_workspace || handle.served == handle.stream) return;
  const CUresult code = Driver().cuStreamIsCapturing(handle.stream, &captures);
  if (code != CUDA_SUCCESS || captures != CU_STREAM_CAPTURE_STATUS_NONE) return;
  CUdeviceptr workspace = 0;
  if (Driver().cuMemAllocAsync(&workspace, 1, handle.stream) != CUDA_SUCCESS) return;
  Driver().cuMemFreeAsync(workspace, handle.stream);
  Set(handle.self, &Handle::served, handle.stream);
}

Status FetchResult(const Handle& handle, void* result, size_t bytes) {
  CUresult code = Driver().cuMemcpyDtoHAsync(result, handle.memory, bytes, handle.stream);
  if (code == CUDA_SUCCESS) code = Driver().cuStreamSynchronize(handle.stream);
  return code == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INTERNAL_ERROR;
}

namespace {

Status CreateStatus(CUresult code) {
  if (code == CUDA_SUCCESS) return CUBLAS_STATUS_SUCCESS;
  return code == CUDA_ERROR_OUT_OF_MEMORY ? CUBLAS_STATUS_ALLOC_FAILED
                                          : CUBLAS_STATUS_NOT_INITIALIZED;
}

Status Create(cublasHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  Handle created;
  CUresult code = cudasim::library::BindContext();
  if (code == CUDA_SUCCESS) code = Driver().cuMemAlloc(&created.memory, kMemoryBytes);
  if (code != CUDA_SUCCESS) return CreateStatus(code);
  code = created.code.Load();
  if (code == CUDA_SUCCESS) code = Handles().Add(created, handle);
  if (code == CUDA_SUCCESS) {
    Set(*handle, &Handle::self, *handle);
  } else {
    Driver().cuMemFree(created.memory);
  }
  return CreateStatus(code);
}

// Nothing that the driver says counts.
Status Destroy(cublasHandle_t handle) {
  Handle found;
  const Status status = FindToCompute(handle, &found);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (cudasim::library::BindContext() == CUDA_SUCCESS) {
    Driver().cuCtxSynchronize();
    Driver().cuMemFree(found.memory);
  }
  Handles().Remove(handle);
  return CUBLAS_STATUS_SUCCESS;
}

Status GetVersion(cublasHandle_t, int* version) {
  if (version == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

Status GetProperty(libraryPropertyType type, int* value) {
  constexpr int kVersion[] = {CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH};
  if (value == nullptr || type < MAJOR_VERSION || type > PATCH_LEVEL) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  *value = kVersion[type];
  return CUBLAS_STATUS_SUCCESS;
}

Status SetStream(cublasHandle_t handle, cudaStream_t stream) {
  const Status status = Set(handle, &Handle::has_workspace, false);
  return status != CUBLAS_STATUS_SUCCESS ? status : Set(handle, &Handle::stream, stream);
}

Status GetStream(cublasHandle_t handle, cudaStream_t* stream) {
  return Get(handle, &Handle::stream, stream);
}

// Nothing is checked, and the arithmetic of the simulation needs none.
Status SetWorkspace(cublasHandle_t handle, void*, size_t) {
  return Set(handle, &Handle::has_workspace, true);
}

Status SetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
  const bool is_mode = mode == CUBLAS_POINTER_MODE_HOST || mode == CUBLAS_POINTER_MODE_DEVICE;
  return is_mode ? Set(handle, &Handle::pointer_mode, mode) : CUBLAS_STATUS_INVALID_VALUE;
}

Status GetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode) {
  return Get(handle, &Handle::pointer_mode, mode);
}

Status SetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
  const bool is_mode = mode == CUBLAS_ATOMICS_NOT_ALLOWED || mode == CUBLAS_ATOMICS_ALLOWED;
  return is_mode ? Set(handle, &Handle::atomics_mode, mode) : CUBLAS_STATUS_INVALID_VALUE;
}

Status GetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t* mode) {
  return Get(handle, &Handle::atomics_mode, mode);
}

Status SetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return Set(handle, &Handle::math_mode, mode);
}

Status GetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  return Get(handle, &Handle::math_mode, mode);
}

Status SetSmCountTarget(cublasHandle_t handle, int count) {
  return Set(handle, &Handle::multiprocessors, count);
}

Status GetSmCountTarget(cublasHandle_t handle, int* count) {
  return Get(handle, &Handle::multiprocessors, count);
}

}  // namespace

CUDASIM_CUBLAS_HANDLE_ENTRIES(CUDASIM_LIBRARY_EXPORT)

}  // namespace cudasim::cublas

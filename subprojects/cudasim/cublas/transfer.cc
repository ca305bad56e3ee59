// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies between host and device of strided vectors and of parts of matrices.

#include "cublas/rows.h"
#include "runtime/driver.h"

namespace cudasim::cublas {
namespace {

using cudasim::runtime::Driver;

struct Area {
  size_t width;  // bytes of a row
  size_t rows;
  const void* from;
  size_t from_pitch;
  void* to;
  size_t to_pitch;
};

CUDA_MEMCPY3D ToCopy(const Area& area) {
  CUDA_MEMCPY3D copy = {};
  copy.srcPitch = area.from_pitch;
  copy.dstPitch = area.to_pitch;
  copy.WidthInBytes = area.width;
  copy.Height = area.rows;
  copy.Depth = 1;
  return copy;
}

CUDA_MEMCPY3D ToDevice(const Area& area) {
  CUDA_MEMCPY3D copy = ToCopy(area);
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = area.from;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = reinterpret_cast<CUdeviceptr>(area.to);
  return copy;
}

CUDA_MEMCPY3D ToHostMemory(const Area& area) {
  CUDA_MEMCPY3D copy = ToCopy(area);
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = reinterpret_cast<CUdeviceptr>(area.from);
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = area.to;
  return copy;
}

Status Copied(CUresult code) {
  return code == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

Status Copy(const CUDA_MEMCPY3D& copy) {
  if (copy.WidthInBytes == 0 || copy.Height == 0) return CUBLAS_STATUS_SUCCESS;
  return Copied(Driver().cuMemcpy3D[0](&copy));
}

Status CopyAsync(const CUDA_MEMCPY3D& copy, CUstream stream) {
  if (copy.WidthInBytes == 0 || copy.Height == 0) return CUBLAS_STATUS_SUCCESS;
  return Copied(Driver().cuMemcpy3DAsync(&copy, stream));
}

// A vector is a matrix of one row whose columns lie apart.
bool MakeArea(int rows, int columns, int bytes, const void* a, int lda, void* b, int ldb,
              Area* area) {
  if (rows < 0 || columns < 0 || bytes <= 0 || lda <= 0 || ldb <= 0) return false;
  const auto size = [bytes](int elements) {
    return static_cast<size_t>(elements) * static_cast<size_t>(bytes);
  };
  *area = {size(rows), static_cast<size_t>(columns), a, size(lda), b, size(ldb)};
  return true;
}

Status SetMatrix(int rows, int columns, int bytes, const void* a, int lda, void* b, int ldb) {
  Area area;
  if (!MakeArea(rows, columns, bytes, a, lda, b, ldb, &area)) return CUBLAS_STATUS_INVALID_VALUE;
  return Copy(ToDevice(area));
}

Status GetMatrix(int rows, int columns, int bytes, const void* a, int lda, void* b, int ldb) {
  Area area;
  if (!MakeArea(rows, columns, bytes, a, lda, b, ldb, &area)) return CUBLAS_STATUS_INVALID_VALUE;
  return Copy(ToHostMemory(area));
}

Status SetMatrixAsync(int rows, int columns, int bytes, const void* a, int lda, void* b, int ldb,
                      cudaStream_t stream) {
  Area area;
  if (!MakeArea(rows, columns, bytes, a, lda, b, ldb, &area)) return CUBLAS_STATUS_INVALID_VALUE;
  return CopyAsync(ToDevice(area), stream);
}

Status GetMatrixAsync(int rows, int columns, int bytes, const void* a, int lda, void* b, int ldb,
                      cudaStream_t stream) {
  Area area;
  if (!MakeArea(rows, columns, bytes, a, lda, b, ldb, &area)) return CUBLAS_STATUS_INVALID_VALUE;
  return CopyAsync(ToHostMemory(area), stream);
}

Status SetVector(int n, int bytes, const void* x, int incx, void* y, int incy) {
  return SetMatrix(1, n, bytes, x, incx, y, incy);
}

Status GetVector(int n, int bytes, const void* x, int incx, void* y, int incy) {
  return GetMatrix(1, n, bytes, x, incx, y, incy);
}

Status SetVectorAsync(int n, int bytes, const void* x, int incx, void* y, int incy,
                      cudaStream_t stream) {
  return SetMatrixAsync(1, n, bytes, x, incx, y, incy, stream);
}

Status GetVectorAsync(int n, int bytes, const void* x, int incx, void* y, int incy,
                      cudaStream_t stream) {
  return GetMatrixAsync(1, n, bytes, x, incx, y, incy, stream);
}

}  // namespace

CUDASIM_CUBLAS_TRANSFER_ENTRIES(CUDASIM_LIBRARY_EXPORT)

}  // namespace cudasim::cublas

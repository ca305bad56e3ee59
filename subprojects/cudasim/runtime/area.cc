// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies and fills of rows and slices. Every copy becomes one of the driver's
// three-dimensional ones.

#include <cuda.h>

#include "runtime/api.h"
#include "runtime/arguments.h"
#include "runtime/array.h"
#include "runtime/driver.h"
#include "runtime/entry.h"
#include "runtime/stream.h"

namespace cudasim::runtime {
namespace {

struct Rows {
  const void* pointer;
  size_t pitch;
  size_t height;  // rows of a slice; 0: as many as are copied
};

bool IsToDevice(cudaMemcpyKind kind) {
  return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
}

bool IsFromDevice(cudaMemcpyKind kind) {
  return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
}

// As with cudaMemcpy, host to host takes any pointer.
CUmemorytype TypeOf(cudaMemcpyKind kind, bool is_device) {
  if (kind == cudaMemcpyDefault || kind == cudaMemcpyHostToHost) return CU_MEMORYTYPE_UNIFIED;
  return is_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
}

// One copy, put together side by side.
class AreaCopy {
 public:
  AreaCopy(cudaMemcpyKind kind, cudaExtent bytes) : kind_(kind) {
    if (!IsKind(kind)) code_ = cudaErrorInvalidMemcpyDirection;
    copy_.WidthInBytes = bytes.width;
    copy_.Height = bytes.height;
    copy_.Depth = bytes.depth;
  }

  void From(const Rows& rows, cudaPos bytes = {}) {
    Require(rows.pointer != nullptr, cudaErrorInvalidValue);
    copy_.srcMemoryType = TypeOf(kind_, IsFromDevice(kind_));
    copy_.srcHost = rows.pointer;
    copy_.srcDevice = ToAddress(rows.pointer);
    copy_.srcPitch = rows.pitch;
    copy_.srcHeight = rows.height;
    SetFrom(bytes);
  }
  void From(cudaArray_const_t array, cudaPos bytes) {
    Require(array != nullptr, cudaErrorInvalidResourceHandle);
    copy_.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy_.srcArray = ToDriver(array);
    SetFrom(bytes);
  }

  void To(const Rows& rows, cudaPos bytes = {}) {
    Require(rows.pointer != nullptr, cudaErrorInvalidValue);
    copy_.dstMemoryType = TypeOf(kind_, IsToDevice(kind_));
    copy_.dstHost = const_cast<void*>(rows.pointer);
    copy_.dstDevice = ToAddress(rows.pointer);
    copy_.dstPitch = rows.pitch;
    copy_.dstHeight = rows.height;
    SetTo(bytes);
  }
  void To(cudaArray_const_t array, cudaPos bytes) {
    Require(array != nullptr, cudaErrorInvalidResourceHandle);
    copy_.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy_.dstArray = ToDriver(array);
    SetTo(bytes);
  }

  // The first requirement that is not met is the result. An empty copy needs nothing but
  // its arrays and a direction.
  void Require(bool met, cudaError_t code) {
    const bool always = code == cudaErrorInvalidResourceHandle;
    if (!met && (always || !IsEmpty()) && code_ == cudaSuccess) code_ = code;
  }
  void RequirePitch(size_t pitch) {
    Require(copy_.WidthInBytes <= pitch, cudaErrorInvalidPitchValue);
  }

  cudaError_t Run() const {
    if (code_ != cudaSuccess || IsEmpty()) return code_;
    return ToError(Driver().cuMemcpy3D[IsPerThread() ? 1 : 0](&copy_));
  }
  cudaError_t Run(cudaStream_t stream) const {
    if (code_ != cudaSuccess || IsEmpty()) return code_;
    return ToError(Driver().cuMemcpy3DAsync(&copy_, ToDriver(stream)));
  }

 private:
  bool IsEmpty() const { return copy_.WidthInBytes == 0 || copy_.Height == 0 || copy_.Depth == 0; }

  void SetFrom(cudaPos bytes) {
    copy_.srcXInBytes = bytes.x;
    copy_.srcY = bytes.y;
    copy_.srcZ = bytes.z;
  }
  void SetTo(cudaPos bytes) {
    copy_.dstXInBytes = bytes.x;
    copy_.dstY = bytes.y;
    copy_.dstZ = bytes.z;
  }

  cudaMemcpyKind kind_;
  cudaError_t code_ = cudaSuccess;
  CUDA_MEMCPY3D copy_ = {};
};

AreaCopy BetweenRows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                     size_t height, cudaMemcpyKind kind) {
  AreaCopy copy(kind, {width, height, 1});
  copy.RequirePitch(from_pitch);
  copy.RequirePitch(to_pitch);
  copy.From(Rows{from, from_pitch, 0});
  copy.To(Rows{to, to_pitch, 0});
  return copy;
}

AreaCopy ToArray(cudaArray_t to, cudaPos at, const void* from, size_t pitch, size_t width,
                 size_t height, cudaMemcpyKind kind) {
  AreaCopy copy(kind, {width, height, 1});
  copy.To(to, at);
  copy.Require(IsToDevice(kind) || kind == cudaMemcpyDefault, cudaErrorInvalidMemcpyDirection);
  copy.RequirePitch(pitch);
  copy.From(Rows{from, pitch, 0});
  return copy;
}

AreaCopy FromArray(void* to, size_t pitch, cudaArray_const_t from, cudaPos at, size_t width,
                   size_t height, cudaMemcpyKind kind) {
  AreaCopy copy(kind, {width, height, 1});
  copy.From(from, at);
  copy.Require(IsFromDevice(kind) || kind == cudaMemcpyDefault, cudaErrorInvalidMemcpyDirection);
  copy.RequirePitch(pitch);
  copy.To(Rows{to, pitch, 0});
  return copy;
}

// A side is either an array or memory.
bool IsSide(cudaArray_t array, const cudaPitchedPtr& pointer) {
  return (array != nullptr) != (pointer.ptr != nullptr);
}

Rows RowsOf(const cudaPitchedPtr& pointer) { return {pointer.ptr, pointer.pitch, pointer.ysize}; }

cudaPos InBytes(cudaPos position, size_t element) {
  return {position.x * element, position.y, position.z};
}

// Where an array is involved, widths and offsets count its elements.
cudaError_t ElementBytesOf(const cudaMemcpy3DParms& parameters, size_t* bytes) {
  *bytes = 1;
  cudaArray_t array = parameters.dstArray != nullptr ? parameters.dstArray : parameters.srcArray;
  return array == nullptr ? cudaSuccess : ElementBytes(array, bytes);
}

// Calls `run` with the copy.
template <typename Run>
cudaError_t With3D(const cudaMemcpy3DParms* parameters, const Run& run) {
  if (parameters == nullptr) return cudaErrorInvalidValue;
  const cudaMemcpy3DParms& p = *parameters;
  if (p.extent.width == 0 || p.extent.height == 0 || p.extent.depth == 0) return cudaSuccess;
  if (!IsSide(p.srcArray, p.srcPtr) || !IsSide(p.dstArray, p.dstPtr)) return cudaErrorInvalidValue;
  size_t element = 1;
  const cudaError_t code = ElementBytesOf(p, &element);
  if (code != cudaSuccess) return code;
  AreaCopy copy(p.kind, {p.extent.width * element, p.extent.height, p.extent.depth});
  const bool among_arrays = p.srcArray != nullptr || p.dstArray != nullptr;
  if (!among_arrays) {
    copy.RequirePitch(p.srcPtr.pitch);
    copy.RequirePitch(p.dstPtr.pitch);
  }
  const bool from = p.srcArray == nullptr || IsFromDevice(p.kind) || p.kind == cudaMemcpyDefault;
  const bool to = p.dstArray == nullptr || IsToDevice(p.kind) || p.kind == cudaMemcpyDefault;
  copy.Require(from && to, cudaErrorInvalidValue);
  if (p.srcArray != nullptr) {
    copy.From(p.srcArray, InBytes(p.srcPos, element));
  } else {
    copy.From(RowsOf(p.srcPtr), p.srcPos);
  }
  if (p.dstArray != nullptr) {
    copy.To(p.dstArray, InBytes(p.dstPos, element));
  } else {
    copy.To(RowsOf(p.dstPtr), p.dstPos);
  }
  return run(copy);
}

}  // namespace

cudaError_t Memcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                     size_t height, cudaMemcpyKind kind) {
  return BetweenRows(to, to_pitch, from, from_pitch, width, height, kind).Run();
}

cudaError_t Memcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                          size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return BetweenRows(to, to_pitch, from, from_pitch, width, height, kind).Run(stream);
}

cudaError_t Memcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch,
                            size_t width, size_t height, cudaMemcpyKind kind) {
  return ToArray(to, {x, y, 0}, from, pitch, width, height, kind).Run();
}

cudaError_t Memcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch,
                                 size_t width, size_t height, cudaMemcpyKind kind,
                                 cudaStream_t stream) {
  return ToArray(to, {x, y, 0}, from, pitch, width, height, kind).Run(stream);
}

cudaError_t Memcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
                              size_t width, size_t height, cudaMemcpyKind kind) {
  return FromArray(to, pitch, from, {x, y, 0}, width, height, kind).Run();
}

cudaError_t Memcpy2DFromArrayAsync(void* to, size_t pitch, cudaArray_const_t from, size_t x,
                                   size_t y, size_t width, size_t height, cudaMemcpyKind kind,
                                   cudaStream_t stream) {
  return FromArray(to, pitch, from, {x, y, 0}, width, height, kind).Run(stream);
}

cudaError_t Memcpy3D(const cudaMemcpy3DParms* parameters) {
  return With3D(parameters, [](const AreaCopy& copy) { return copy.Run(); });
}

cudaError_t Memcpy3DAsync(const cudaMemcpy3DParms* parameters, cudaStream_t stream) {
  return With3D(parameters, [=](const AreaCopy& copy) { return copy.Run(stream); });
}

cudaError_t Memset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  if (width == 0 || height == 0) return cudaSuccess;
  return ToError(Driver().cuMemsetD2D8[IsPerThread() ? 1 : 0](
      ToAddress(to), pitch, static_cast<unsigned char>(value), width, height));
}

cudaError_t Memset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                          cudaStream_t stream) {
  if (width == 0 || height == 0) return cudaSuccess;
  return ToError(Driver().cuMemsetD2D8Async(ToAddress(to), pitch, static_cast<unsigned char>(value),
                                            width, height, ToDriver(stream)));
}

}  // namespace cudasim::runtime

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of arrays, copies and textures share.

#ifndef CUDASIM_TEST_ARRAYS_H_
#define CUDASIM_TEST_ARRAYS_H_

#include <vector>

#include "test/facts.h"

namespace cudasim_facts {

inline CUDA_ARRAY3D_DESCRIPTOR ArrayShape(size_t width, size_t height, size_t depth,
                                          unsigned flags = 0,
                                          CUarray_format format = CU_AD_FORMAT_FLOAT,
                                          unsigned channels = 1) {
  return {width, height, depth, format, channels, flags};
}

// Of the current context; destroyed with the object.
class OwnArray {
 public:
  explicit OwnArray(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
    OK(RAW(cuArray3DCreate)(&array_, &shape));
  }
  OwnArray(size_t width, size_t height) : OwnArray(ArrayShape(width, height, 0)) {}
  OwnArray(const OwnArray&) = delete;
  OwnArray& operator=(const OwnArray&) = delete;
  ~OwnArray() {
    if (array_ != nullptr) OK(RAW(cuArrayDestroy)(array_));
  }
  CUarray get() const { return array_; }
  CUarray release() {
    const CUarray array = array_;
    array_ = nullptr;
    return array;
  }

 private:
  CUarray array_ = nullptr;
};

// Rows in host memory, and an array: fields may be changed.
inline CUDA_MEMCPY2D ToArray(CUarray array, const void* host, size_t pitch, size_t width,
                             size_t height) {
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host;
  copy.srcPitch = pitch;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = width;
  copy.Height = height;
  return copy;
}
inline CUDA_MEMCPY2D FromArray(void* host, size_t pitch, CUarray array, size_t width,
                               size_t height) {
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = array;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = host;
  copy.dstPitch = pitch;
  copy.WidthInBytes = width;
  copy.Height = height;
  return copy;
}
inline CUDA_MEMCPY2D ToDevice(CUdeviceptr to, size_t to_pitch, const void* host, size_t pitch,
                              size_t width, size_t height) {
  CUDA_MEMCPY2D copy = ToArray(nullptr, host, pitch, width, height);
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = to;
  copy.dstPitch = to_pitch;
  return copy;
}

inline CUresult Copy(const CUDA_MEMCPY2D& copy) { return RAW(cuMemcpy2D)(&copy); }
template <typename Change>
CUresult Copy(CUDA_MEMCPY2D copy, const Change& change) {
  change(&copy);
  return RAW(cuMemcpy2D)(&copy);
}

// 0, 1, 2, ...
inline std::vector<float> Counting(size_t count, float first = 0) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i);
  return values;
}

// Of an array of floats.
inline void Write(CUarray array, size_t width, size_t height, const std::vector<float>& values) {
  OK(Copy(ToArray(array, values.data(), width * sizeof(float), width * sizeof(float), height)));
}
inline std::vector<float> Read(CUarray array, size_t width, size_t height) {
  std::vector<float> values(width * height);
  OK(Copy(FromArray(values.data(), width * sizeof(float), array, width * sizeof(float), height)));
  return values;
}

}  // namespace cudasim_facts

#endif  // CUDASIM_TEST_ARRAYS_H_

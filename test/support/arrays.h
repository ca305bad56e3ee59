// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What tests of arrays and textures share.

#ifndef CUGUEST_TEST_SUPPORT_ARRAYS_H_
#define CUGUEST_TEST_SUPPORT_ARRAYS_H_

#include <vector>

#include "test/support/driver_calls.h"

namespace cuguest_test {

inline CUDA_ARRAY3D_DESCRIPTOR Shape(size_t width, size_t height, size_t depth, unsigned flags = 0,
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
  OwnArray(size_t width, size_t height) : OwnArray(Shape(width, height, 0)) {}
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

// 0, 1, 2, ...
inline std::vector<float> Counting(size_t count, float first = 0) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i);
  return values;
}

inline CUDA_MEMCPY2D Rows(size_t width, size_t height) {
  CUDA_MEMCPY2D copy = {};
  copy.srcPitch = width * sizeof(float);
  copy.dstPitch = width * sizeof(float);
  copy.WidthInBytes = width * sizeof(float);
  copy.Height = height;
  return copy;
}

// Of an array of floats.
inline void Write(CUarray array, size_t width, size_t height, const std::vector<float>& values) {
  CUDA_MEMCPY2D copy = Rows(width, height);
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = values.data();
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  OK(RAW(cuMemcpy2D)(&copy));
}
inline std::vector<float> Read(CUarray array, size_t width, size_t height) {
  std::vector<float> values(width * height);
  CUDA_MEMCPY2D copy = Rows(width, height);
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = array;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = values.data();
  OK(RAW(cuMemcpy2D)(&copy));
  return values;
}

}  // namespace cuguest_test

#endif  // CUGUEST_TEST_SUPPORT_ARRAYS_H_

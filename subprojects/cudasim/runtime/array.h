// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arrays: the runtime's handles are the driver's, of another type; formats are described
// in other words.

#ifndef CUDASIM_RUNTIME_ARRAY_H_
#define CUDASIM_RUNTIME_ARRAY_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>

namespace cudasim::runtime {

inline CUarray ToDriver(cudaArray_const_t array) {
  return reinterpret_cast<CUarray>(const_cast<cudaArray_t>(array));
}
inline cudaArray_t ToRuntime(CUarray array) { return reinterpret_cast<cudaArray_t>(array); }
inline CUmipmappedArray ToDriver(cudaMipmappedArray_const_t array) {
  return reinterpret_cast<CUmipmappedArray>(const_cast<cudaMipmappedArray_t>(array));
}
inline cudaMipmappedArray_t ToRuntime(CUmipmappedArray array) {
  return reinterpret_cast<cudaMipmappedArray_t>(array);
}

struct ElementFormat {
  CUarray_format format = CU_AD_FORMAT_UNSIGNED_INT8;
  unsigned channels = 0;
};

// InvalidChannelDescriptor for what no array can hold.
cudaError_t ToDriver(const cudaChannelFormatDesc& channel, ElementFormat* element);
cudaChannelFormatDesc ToRuntime(const ElementFormat& element);

// InvalidResourceHandle for null.
cudaError_t ElementBytes(cudaArray_const_t array, size_t* bytes);

}  // namespace cudasim::runtime

#endif  // CUDASIM_RUNTIME_ARRAY_H_

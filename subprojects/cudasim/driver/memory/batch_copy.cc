// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies in a batch.

#include <algorithm>
#include <cstdint>
#include <functional>

#include "driver/api.h"
#include "driver/stream/capture.h"
#include "driver/stream/stream.h"

namespace cudasim::driver {
namespace {

bool IsCopyAttribute(const CUmemcpyAttributes& attribute) {
  constexpr unsigned kFlags = CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE;
  return attribute.srcAccessOrder >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM &&
         attribute.srcAccessOrder <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY &&
         (attribute.flags & ~kFlags) == 0;
}

// Each copy has attributes: those of the last index that is not behind it.
bool AreAttributes(size_t copies, const CUmemcpyAttributes* attributes, const size_t* indices,
                   size_t count) {
  if (attributes == nullptr || indices == nullptr || count == 0 || count > copies) return false;
  const bool rises =
      std::adjacent_find(indices, indices + count, std::greater_equal<>()) == indices + count;
  return indices[0] == 0 && rises && indices[count - 1] < copies &&
         std::all_of(attributes, attributes + count, IsCopyAttribute);
}

}  // namespace

CUresult MemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                          CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                          CUstream stream) {
  size_t failed = 0;
  return MemcpyBatchAsyncFirst(to, from, sizes, count, attributes, indices, attribute_count,
                               &failed, stream);
}

// `failed` is the copy that is refused, or the greatest number if it is the whole batch. Copies
// before that one are submitted.
CUresult MemcpyBatchAsyncFirst(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                               CUmemcpyAttributes* attributes, size_t* indices,
                               size_t attribute_count, size_t* failed, CUstream handle) {
  if (failed == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *failed = SIZE_MAX;
  if (to == nullptr || from == nullptr || sizes == nullptr ||
      !AreAttributes(count, attributes, indices, attribute_count)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Stream stream;
  const CUresult code = FindReadyStream(handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  if (stream.is_legacy) return CUDA_ERROR_INVALID_VALUE;
  if (Captures::StatusOf(stream) != CU_STREAM_CAPTURE_STATUS_NONE) {
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  for (size_t i = 0; i < count; ++i) {
    const CUresult copied = MemcpyAsync(to[i], from[i], sizes[i], handle);
    if (copied == CUDA_SUCCESS) continue;
    *failed = i;
    return copied;
  }
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver

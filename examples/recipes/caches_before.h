// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A reader of files into device memory, with caches of its own. test/process/caches_test.cc shows
// what becomes of them.

#ifndef CACHES_BEFORE_H_
#define CACHES_BEFORE_H_

#include <cuda.h>
#include <unistd.h>

#include <cstddef>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace before {

constexpr std::size_t kBufferBytes = 1 << 20;

struct Part {
  int file;
  off_t offset;
  CUdeviceptr target;
  std::size_t bytes;  // at most kBufferBytes
};

class Caches {
 public:
  CUresult GetStream(CUcontext context, CUstream* stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    CUstream& kept = streams_[{context, std::this_thread::get_id()}];
    const CUresult code = kept == nullptr ? cuStreamCreate(&kept, CU_STREAM_DEFAULT) : CUDA_SUCCESS;
    *stream = kept;
    return code;
  }

  CUresult TakeEvent(CUcontext context, CUevent* event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<CUevent>& free = events_[context];
    if (free.empty()) return cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
    *event = free.back();
    free.pop_back();
    return CUDA_SUCCESS;
  }
  void GiveEvent(CUcontext context, CUevent event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    events_[context].push_back(event);
  }

  CUresult TakeBuffer(void** buffer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (buffers_.empty()) return cuMemHostAlloc(buffer, kBufferBytes, CU_MEMHOSTALLOC_PORTABLE);
    *buffer = buffers_.back();
    buffers_.pop_back();
    return CUDA_SUCCESS;
  }
  void GiveBuffer(void* buffer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    buffers_.push_back(buffer);
  }

  // Retained once, and never released.
  CUresult GetPrimary(CUdevice device, CUcontext* context) {
    const std::lock_guard<std::mutex> lock(mutex_);
    CUcontext& kept = primaries_[device];
    const CUresult code = kept == nullptr ? cuDevicePrimaryCtxRetain(&kept, device) : CUDA_SUCCESS;
    *context = kept;
    return code;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<CUcontext, std::thread::id>, CUstream> streams_;
  std::map<CUcontext, std::vector<CUevent>> events_;
  std::vector<void*> buffers_;  // of all contexts: the memory is portable
  std::map<CUdevice, CUcontext> primaries_;
};

inline Caches& TheCaches() {
  static auto& caches = *new Caches;
  return caches;
}

class PushAndPop {
 public:
  explicit PushAndPop(CUcontext context) : code_(cuCtxPushCurrent(context)) {}
  PushAndPop(const PushAndPop&) = delete;
  PushAndPop& operator=(const PushAndPop&) = delete;
  ~PushAndPop() {
    CUcontext popped = nullptr;
    if (code_ == CUDA_SUCCESS) cuCtxPopCurrent(&popped);
  }
  CUresult code() const { return code_; }

 private:
  const CUresult code_;
};

inline CUresult FindContext(CUdeviceptr pointer, CUcontext* context) {
  cuPointerGetAttribute(context, CU_POINTER_ATTRIBUTE_CONTEXT, pointer);
  if (*context != nullptr) return CUDA_SUCCESS;
  // Pool memory has none: the current one, if the address is a device pointer there.
  CUdeviceptr there = 0;
  cuCtxGetCurrent(context);
  const CUresult is_there =
      cuPointerGetAttribute(&there, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, pointer);
  if (*context != nullptr && is_there == CUDA_SUCCESS) return CUDA_SUCCESS;
  int device = 0;
  const CUresult code =
      cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer);
  return code == CUDA_SUCCESS ? TheCaches().GetPrimary(device, context) : code;
}

inline CUresult ReadPart(CUcontext context, const Part& part) {
  const PushAndPop inside(context);
  if (inside.code() != CUDA_SUCCESS) return inside.code();
  Caches& caches = TheCaches();
  CUstream stream = nullptr;
  CUresult code = caches.GetStream(context, &stream);
  if (code != CUDA_SUCCESS) return code;
  CUevent done = nullptr;
  code = caches.TakeEvent(context, &done);
  if (code != CUDA_SUCCESS) return code;
  void* buffer = nullptr;
  code = caches.TakeBuffer(&buffer);
  if (code == CUDA_SUCCESS) {
    const ssize_t read = pread(part.file, buffer, part.bytes, part.offset);
    if (read != static_cast<ssize_t>(part.bytes)) code = CUDA_ERROR_OPERATING_SYSTEM;
    if (code == CUDA_SUCCESS) code = cuMemcpyHtoDAsync(part.target, buffer, part.bytes, stream);
    if (code == CUDA_SUCCESS) code = cuEventRecord(done, stream);
    if (code == CUDA_SUCCESS) code = cuEventSynchronize(done);
    caches.GiveBuffer(buffer);
  }
  caches.GiveEvent(context, done);
  return code;
}

// `pool` runs the task, now or later, and gives a std::future<CUresult>.
template <typename Pool>
std::future<CUresult> Read(Pool* pool, const Part& part) {
  CUcontext context = nullptr;
  const CUresult code = FindContext(part.target, &context);
  return pool->Run(
      [code, context, part] { return code == CUDA_SUCCESS ? ReadPart(context, part) : code; });
}

}  // namespace before

#endif  // CACHES_BEFORE_H_

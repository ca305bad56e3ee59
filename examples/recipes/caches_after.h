// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reader of caches_before.h with cuguest's core, which needs no Abseil.
// test/process/caches_test.cc runs both.

#ifndef CACHES_AFTER_H_
#define CACHES_AFTER_H_

#include <cuda.h>
#include <unistd.h>

#include <cstddef>
#include <future>
#include <mutex>
#include <utility>
#include <vector>

#include "cuguest/acquire.h"
#include "cuguest/acquired_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/per_context.h"
#include "cuguest/primary_keeper.h"
#include "cuguest/relaxed.h"

namespace after {

constexpr std::size_t kBufferBytes = 1 << 20;

struct Part {
  int file;
  off_t offset;
  CUdeviceptr target;
  std::size_t bytes;  // at most kBufferBytes
};

// What one task works with.
struct Lane {
  CUstream stream = nullptr;
  CUevent done = nullptr;
  void* buffer = nullptr;
};

// Those of one incarnation of a context that no task has.
class Lanes {
 public:
  Lanes() = default;
  Lanes(Lanes&& other) noexcept : free_(std::move(other.free_)) {}
  ~Lanes() {  // inside its context
    for (const Lane& lane : free_) Destroy(lane);
  }
  void Leak() noexcept { free_.clear(); }  // they have ended with it

  CUresult Take(Lane* lane) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
      *lane = free_.back();
      free_.pop_back();
      return CUDA_SUCCESS;
    }
    CUresult code = cuStreamCreate(&lane->stream, CU_STREAM_DEFAULT);
    if (code == CUDA_SUCCESS) code = cuEventCreate(&lane->done, CU_EVENT_DISABLE_TIMING);
    if (code == CUDA_SUCCESS) code = cuMemHostAlloc(&lane->buffer, kBufferBytes, 0);
    if (code != CUDA_SUCCESS) Destroy(*lane);
    return code;
  }
  void Give(const Lane& lane) {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(lane);
  }

 private:
  static void Destroy(const Lane& lane) {
    if (lane.stream != nullptr) cuStreamDestroy(lane.stream);
    if (lane.done != nullptr) cuEventDestroy(lane.done);
    if (lane.buffer != nullptr) cuMemFreeHost(lane.buffer);
  }

  std::mutex mutex_;
  std::vector<Lane> free_;
};

inline cuguest::PerContext<Lanes>& TheLanes() {
  static auto& lanes = *new cuguest::PerContext<Lanes>;  // never destroyed
  return lanes;
}

inline CUresult ReadPart(const cuguest::Acquired& acquired, const Part& part) {
  const cuguest::Relaxed<cuguest::AcquiredGuard> guard(acquired);
  if (!guard.ok()) return guard.error().code;
  const auto make = [](const cuguest::ContextRef&) { return Lanes(); };
  auto lanes = TheLanes().GetOrMake(guard.context(), make);
  if (!lanes.ok()) return lanes.error().code;
  Lane lane;
  CUresult code = (*lanes)->Take(&lane);
  if (code != CUDA_SUCCESS) return code;
  const ssize_t read = pread(part.file, lane.buffer, part.bytes, part.offset);
  if (read != static_cast<ssize_t>(part.bytes)) code = CUDA_ERROR_OPERATING_SYSTEM;
  if (code == CUDA_SUCCESS) {
    code = cuMemcpyHtoDAsync(part.target, lane.buffer, part.bytes, lane.stream);
  }
  if (code == CUDA_SUCCESS) code = cuEventRecord(lane.done, lane.stream);
  if (code == CUDA_SUCCESS) code = cuEventSynchronize(lane.done);
  (*lanes)->Give(lane);
  return code;
}

// `pool` runs the task, now or later, and gives a std::future<CUresult>.
template <typename Pool>
std::future<CUresult> Read(Pool* pool, const Part& part) {
  const auto acquired =
      cuguest::AcquireFromPointer(part.target, cuguest::IfInactive::kCreateAndKeep);
  return pool->Run([acquired, part] { return ReadPart(acquired, part); });
}

// For a host that is about to destroy `context`: frees what is kept in it.
inline bool Forget(CUcontext context) {
  return TheLanes().Forget(cuguest::ContextRef::Borrow(context));
}

// Gives back the primary contexts that pool memory has created, and what ended with them.
inline CUresult Clear() {
  const cuguest::Error released = cuguest::ReleaseKeptPrimaries();
  TheLanes().DropDead();
  return released.code;
}

}  // namespace after

#endif  // CACHES_AFTER_H_

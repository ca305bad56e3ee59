// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the registry of 0.1.0 stands on, reduced to what it uses of it: cuguest/export.h,
// cuguest/context_ref.h, lib/core/concurrency.h and lib/context/ending.h.
//
// The files of this directory are never changed to follow the library: they are how libraries that
// embed 0.1.0 look for the registry and use it. Only comments and names of included files were
// taken out.

#ifndef CUGUEST_TEST_RELEASE_0_1_RELEASE_H_
#define CUGUEST_TEST_RELEASE_0_1_RELEASE_H_

#include <cuda.h>
#include <pthread.h>

#include <atomic>

#define CUGUEST_BEGIN_NAMESPACE \
  namespace cuguest {           \
  inline namespace v0_1 {
#define CUGUEST_END_NAMESPACE \
  }                           \
  }

CUGUEST_BEGIN_NAMESPACE

class ContextRef {
 public:
  static ContextRef Borrow(CUcontext context) noexcept;
  CUcontext get() const noexcept { return context_; }
  unsigned long long id() const noexcept { return id_; }
  bool ok() const noexcept { return result_ == CUDA_SUCCESS; }
  CUresult Check() const noexcept;

 private:
  CUcontext context_ = nullptr;
  unsigned long long id_ = 0;
  CUresult result_ = CUDA_ERROR_INVALID_CONTEXT;
};

namespace internal {

template <typename T>
using Atomic = std::atomic<T>;

struct SharedMutex {
  void lock() noexcept { pthread_mutex_lock(&native); }
  void unlock() noexcept { pthread_mutex_unlock(&native); }
  pthread_mutex_t native = PTHREAD_MUTEX_INITIALIZER;
};

unsigned ThreadNumber() noexcept;

template <typename T>
constexpr T Spread(T size, T) noexcept {
  return size;
}

CUresult DestroyLife(CUcontext context, unsigned long long id) noexcept;
CUresult ReleasePrimary(CUdevice device) noexcept;

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_TEST_RELEASE_0_1_RELEASE_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Many threads at once, on shared contexts and on their own. With the simulation under
// ThreadSanitizer this is what shows a race in it.

#include <atomic>
#include <random>

#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(threads_facts)

using namespace cudasim_facts;

namespace {

constexpr int kThreads = 8;

template <typename Function>
void OnManyThreads(const Function& function) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&function, i] { function(i); });
  for (std::thread& thread : threads) thread.join();
}

// What one thread does over and over. Boost's checks are not for threads: failures are
// counted.
class Worker {
 public:
  Worker(CUcontext shared, std::atomic<int>* failures) : shared_(shared), failures_(failures) {}

  void Step(unsigned which) {
    switch (which % 5) {
      case 0:
        return PushAndPop();
      case 1:
        return UsePrimary();
      case 2:
        return UseMemory();
      case 3:
        return UseStream();
      default:
        return CreateAndDestroy();
    }
  }

 private:
  void Expect(CUresult code) {
    if (code != CUDA_SUCCESS) ++*failures_;
  }

  void PushAndPop() {
    CUcontext popped = nullptr;
    Expect(RAW(cuCtxPushCurrent)(shared_));
    Expect(RAW(cuCtxSetCurrent)(shared_));
    Expect(RAW(cuCtxPopCurrent)(&popped));
    if (popped != shared_) ++*failures_;
  }

  void UsePrimary() {
    CUcontext primary = nullptr;
    Expect(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
    Expect(RAW(cuCtxPushCurrent)(primary));
    Expect(RAW(cuCtxPopCurrent)(nullptr));
    Expect(RAW(cuDevicePrimaryCtxRelease)(0));
  }

  void UseMemory() {
    CUdeviceptr pointer = 0;
    Expect(RAW(cuCtxPushCurrent)(shared_));
    Expect(RAW(cuMemAlloc)(&pointer, 256));
    Expect(RAW(cuMemsetD8)(pointer, 1, 256));
    Expect(RAW(cuCtxPopCurrent)(nullptr));
    Expect(RAW(cuMemFree)(pointer));
  }

  void UseStream() {
    CUstream stream = nullptr;
    CUevent event = nullptr;
    Expect(RAW(cuCtxPushCurrent)(shared_));
    Expect(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    Expect(RAW(cuEventCreate)(&event, 0));
    Expect(RAW(cuCtxPopCurrent)(nullptr));
    Expect(RAW(cuEventRecord)(event, stream));
    Expect(RAW(cuStreamSynchronize)(stream));
    Expect(RAW(cuEventDestroy)(event));
    Expect(RAW(cuStreamDestroy)(stream));
  }

  void CreateAndDestroy() {
    CUcontext context = nullptr;
    unsigned long long id = 0;
    Expect(RAW(cuCtxCreate)(&context, nullptr, 0, 0));
    Expect(RAW(cuCtxGetId)(context, &id));
    Expect(RAW(cuCtxDestroy)(context));
  }

  const CUcontext shared_;
  std::atomic<int>* const failures_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(many_threads_share_contexts) {
  constexpr int kSteps = 40;  // a context takes a real driver a tenth of a second
  const OwnContext shared;
  std::atomic<int> failures{0};
  OnManyThreads([&](int index) {
    std::mt19937 random(static_cast<unsigned>(index));
    Worker worker(shared.get(), &failures);
    for (int step = 0; step < kSteps; ++step) worker.Step(static_cast<unsigned>(random()));
  });
  BOOST_TEST(failures == 0);
  BOOST_TEST(!IsActive(0));
}

BOOST_AUTO_TEST_CASE(a_context_may_be_destroyed_under_many_threads) {
  OwnContext victim;
  const CUcontext context = victim.release();
  std::atomic<int> ready{0};
  std::atomic<int> failures{0};
  std::atomic<bool> destroyed{false};
  std::thread destroyer([&] {
    while (ready < kThreads) std::this_thread::yield();
    if (RAW(cuCtxDestroy)(context) != CUDA_SUCCESS) ++failures;
    destroyed = true;
  });
  OnManyThreads([&](int) {
    if (RAW(cuCtxPushCurrent)(context) != CUDA_SUCCESS) ++failures;
    ++ready;
    while (!destroyed) std::this_thread::yield();
    CUdeviceptr pointer = 0;
    if (RAW(cuMemAlloc)(&pointer, 16) != CUDA_ERROR_CONTEXT_IS_DESTROYED) ++failures;
    if (RAW(cuCtxPopCurrent)(nullptr) != CUDA_SUCCESS) ++failures;
  });
  destroyer.join();
  BOOST_TEST(failures == 0);
}

BOOST_AUTO_TEST_SUITE_END()

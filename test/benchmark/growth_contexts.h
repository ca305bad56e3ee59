// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What grows in a process, for the benchmark of it: contexts that are alive and that were
// destroyed, and threads that have ended.

#ifndef CUGUEST_TEST_BENCHMARK_GROWTH_CONTEXTS_H_
#define CUGUEST_TEST_BENCHMARK_GROWTH_CONTEXTS_H_

#include <cuda.h>

#include <cstddef>
#include <thread>
#include <vector>

#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/objects/driver.h"
#include "cuguest/per_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "test/benchmark/harness.h"

namespace cuguest_benchmark {

// Contexts that are made as they are needed, on so many devices in turn, and stay.
class Contexts {
 public:
  explicit Contexts(const cuguest::ObjectDriver& driver, int devices = 1)
      : driver_(driver), devices_(devices) {}
  Contexts(const Contexts&) = delete;
  Contexts& operator=(const Contexts&) = delete;
  ~Contexts() {
    for (const CUcontext context : all_) driver_.CtxDestroy(context);
  }
  const std::vector<CUcontext>& AtLeast(int count) {
    while (all_.size() < static_cast<std::size_t>(count)) {
      const int device = static_cast<int>(all_.size()) % devices_;
      all_.push_back(MakeContext(driver_, device));
      REQUIRE(all_.back() != nullptr);
    }
    return all_;
  }
  const cuguest::ObjectDriver& driver() const { return driver_; }

 private:
  const cuguest::ObjectDriver& driver_;
  const int devices_;
  std::vector<CUcontext> all_;
};

using Cache = cuguest::PerContext<const void*>;

// Each of `size` contexts has a value, a holder and memory. They are taken in turn.
struct Alive {
  Alive(Contexts* contexts, int size) : driver(contexts->driver()) {
    const std::vector<CUcontext>& all = contexts->AtLeast(size);
    for (int i = 0; i < size; ++i) {
      refs.push_back(cuguest::ContextRef::Borrow(all[static_cast<std::size_t>(i)]));
      holders.push_back(Take(cuguest::SharedContext::Attach(refs.back())));
      REQUIRE(cache.GetOrMake(refs.back(), &MakeValue).ok());
      const cuguest::ContextGuard guard(refs.back());
      REQUIRE(driver.MemAlloc(&pointers.emplace_back(), 4096) == CUDA_SUCCESS);
    }
  }
  Alive(const Alive&) = delete;
  Alive& operator=(const Alive&) = delete;
  ~Alive() {
    for (const cuguest::ContextRef& ref : refs) cache.Forget(ref);
  }
  static absl::StatusOr<const void*> MakeValue(const cuguest::ContextRef& context) {
    return context.get();
  }
  const cuguest::ContextRef& Next() { return refs[turn++ % refs.size()]; }
  CUdeviceptr NextPointer() { return pointers[turn++ % pointers.size()]; }

  const cuguest::ObjectDriver& driver;
  std::vector<cuguest::ContextRef> refs;
  std::vector<cuguest::SharedContext> holders;
  std::vector<CUdeviceptr> pointers;  // which go with their contexts
  Cache cache;
  std::size_t turn = 0;
};

// Beside one that stays, contexts that had a value and a holder before they were destroyed.
struct Destroyed {
  explicit Destroyed(Contexts* contexts) : alive(contexts, 1), driver(contexts->driver()) {}
  void One() {
    const CUcontext context = MakeContext(driver);
    const cuguest::ContextRef ref = cuguest::ContextRef::Borrow(context);
    REQUIRE(alive.cache.GetOrMake(ref, &Alive::MakeValue).ok());
    REQUIRE(cuguest::SharedContext::Attach(context).Release().ok());
    alive.cache.Forget(ref);
    REQUIRE(driver.CtxDestroy(context) == CUDA_SUCCESS);
    ++count;
  }

  Alive alive;
  const cuguest::Driver& driver;
  int count = 0;
};

// One that has a guard and ends.
inline void RunThread(const cuguest::ContextRef& ref) {
  std::thread([&] { Require(cuguest::ContextGuard(ref).ok(), "a guard"); }).join();
}

}  // namespace cuguest_benchmark

#endif  // CUGUEST_TEST_BENCHMARK_GROWTH_CONTEXTS_H_

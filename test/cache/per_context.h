// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the per_context*_test.cc share: a value that owns something in its context and says
// what became of it.

#ifndef CUGUEST_TEST_CACHE_PER_CONTEXT_H_
#define CUGUEST_TEST_CACHE_PER_CONTEXT_H_

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/per_context.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

namespace per_context_test {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::PerContext;
using cuguest::PrimaryContext;
using cuguest_test::GetStack;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;
using cuguest_test::TheDriver;
using Stack = std::vector<CUcontext>;

const Device kFirst = Device::Borrow(0);

inline CUcontext CurrentContext() {
  CUcontext current = nullptr;
  static_cast<void>(TheDriver().CtxGetCurrent(&current));
  return current;
}

// What became of the values of a case. Not an assertion where it happens: that may be on
// any thread.
struct Ledger {
  std::atomic<int> made{0};
  std::atomic<int> destroyed{0};
  std::atomic<int> given_up{0};
  std::atomic<int> elsewhere{0};  // destroyed or made with another context current
  std::atomic<int> damaged{0};
  int alive() const { return made - destroyed - given_up; }
};

// Owns a stream of the driver, and memory of the host.
class Worker {
 public:
  static absl::StatusOr<Worker> Make(const ContextRef& context, Ledger* ledger) {
    if (CurrentContext() != context.get()) ++ledger->elsewhere;
    Worker worker;
    const CUresult code = TheDriver().StreamCreate(&worker.stream_, CU_STREAM_NON_BLOCKING);
    if (code != CUDA_SUCCESS) return cuguest::ToStatus(code, "create a stream");
    worker.context_ = context;
    worker.memory_ = std::make_unique<unsigned long long>(context.id());
    worker.ledger_ = ledger;
    ++ledger->made;
    return worker;
  }
  Worker(Worker&& other) noexcept
      : context_(other.context_),
        stream_(other.stream_),
        memory_(std::move(other.memory_)),
        ledger_(std::exchange(other.ledger_, nullptr)) {}
  ~Worker() {
    if (ledger_ == nullptr) return;
    if (!IsWhole()) ++ledger_->damaged;
    if (stream_ == nullptr) {
      ++ledger_->given_up;
    } else {
      if (CurrentContext() != context_.get()) ++ledger_->elsewhere;
      static_cast<void>(TheDriver().StreamDestroy(stream_));
      ++ledger_->destroyed;
    }
    *memory_ = 0;
    mark_ = 0;
  }
  void Leak() noexcept { stream_ = nullptr; }

  bool IsWhole() const { return mark_ == kMark && *memory_ == context_.id(); }
  const ContextRef& context() const { return context_; }

 private:
  static constexpr unsigned kMark = 0x600df00d;
  Worker() = default;

  ContextRef context_;
  CUstream stream_ = nullptr;
  std::unique_ptr<unsigned long long> memory_;
  Ledger* ledger_ = nullptr;
  unsigned mark_ = kMark;
};

using Cache = PerContext<Worker>;

inline auto Maker(Ledger* ledger) {
  return [ledger](const ContextRef& context) { return Worker::Make(context, ledger); };
}

inline bool IsPrecondition(const absl::Status& status) {
  return status.code() == absl::StatusCode::kFailedPrecondition;
}

// A handle that one context had and now another has; false if the driver reuses none.
inline bool ReuseHandle(CUcontext handle, std::vector<OwnContext>* contexts) {
  for (int i = 0; i < 8; ++i) {
    contexts->emplace_back();
    if (contexts->back().get() == handle) return true;
  }
  return false;
}

}  // namespace per_context_test

#endif  // CUGUEST_TEST_CACHE_PER_CONTEXT_H_

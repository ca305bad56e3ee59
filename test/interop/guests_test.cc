// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sixteen threads, several contexts on up to two devices, guards of every kind nested at
// random inside each other and around hostile callees, for millions of operations. Each
// thread keeps a model of its own stack; the driver's must equal it throughout, and
// every hostile act must be reported exactly once.

#include <algorithm>
#include <atomic>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cuguest/context_guard.h"
#include "cuguest/devices.h"
#include "cuguest/driver.h"
#include "cuguest/host_scope.h"
#include "cuguest/incident_listener.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/primary_context.h"
#include "test/guard/guard_kinds.h"
#include "test/support/test.h"

namespace {

using cuguest::ContextRef;
using cuguest::Device;
using cuguest::GuardMode;
using cuguest::HostScope;
using cuguest::Incident;
using cuguest::NoContextGuard;
using cuguest::PrimaryContext;
using cuguest_test::OwnContext;
using cuguest_test::TheDriver;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kOperations = 8'000;
#else
constexpr int kOperations = 140'000;  // of each thread
#endif
constexpr int kThreads = 16;
constexpr std::size_t kDeepest = 5;

std::atomic<long> g_reported{0};
std::atomic<long> g_unrepaired{0};
void Count(const Incident& incident, void*) {
  g_reported.fetch_add(1, std::memory_order_relaxed);
  if (incident.repair == cuguest::Incident::Repair::kUnrepaired) {
    g_unrepaired.fetch_add(1, std::memory_order_relaxed);
  }
}

// What all threads share: contexts to work in, one that only hostile callees use, and a
// primary context, which is used in place of cudaSetDevice.
struct Shared {
  std::vector<CUcontext> contexts;
  CUcontext hostile;
  CUcontext primary;
};

class Guest {
 public:
  Guest(const Shared& shared, unsigned seed) : shared_(shared), random_(seed) {}

  void Run() {
    while (operations_ < kOperations) Step();
    CheckWhole();
  }

  long operations() const { return operations_; }
  long acts() const { return acts_; }
  const std::string& failure() const { return failure_; }

 private:
  unsigned Pick(unsigned below) { return static_cast<unsigned>(random_() % below); }

  void Fail(const char* what) {
    if (failure_.empty()) failure_ = what;
  }

  CUcontext Top() const { return model_.empty() ? nullptr : model_.back(); }

  void CheckTop() {
    CUcontext current = nullptr;
    if (TheDriver().CtxGetCurrent(&current) != CUDA_SUCCESS) Fail("cuCtxGetCurrent failed");
    if (current != Top()) Fail("another context is current than the model says");
  }

  void CheckWhole() {
    if (cuguest_test::GetStack() != model_) Fail("the stack is not the model's");
  }

  // The same handle twice makes some faults ambiguous: see Note [What is inferred].
  bool IsUnambiguous() const {
    for (std::size_t i = 0; i < model_.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (model_[i] == model_[j]) return false;
      }
    }
    return true;
  }

  void Step() {
    ++operations_;
    if (!failure_.empty()) operations_ = kOperations;
    CheckTop();
    if (operations_ % 64 == 0) CheckWhole();
    if (model_.size() >= kDeepest) return;
    switch (Pick(8)) {
      case 0:
        return PushAndPop();
      case 1:
        return NoContext();
      case 2:
        return Allocate();
      default:
        return Guarded();
    }
  }

  // As an ordinary caller: a balanced pair of its own.
  void PushAndPop() {
    const CUcontext context =
        shared_.contexts[Pick(static_cast<unsigned>(shared_.contexts.size()))];
    CUcontext popped = nullptr;
    if (TheDriver().CtxPushCurrent(context) != CUDA_SUCCESS) Fail("a push failed");
    model_.push_back(context);
    Step();
    if (TheDriver().CtxPopCurrent(&popped) != CUDA_SUCCESS || popped != context) {
      Fail("a pop gave another context than was pushed");
    }
    model_.pop_back();
  }

  void NoContext() {
    const std::vector<CUcontext> callers = model_;
    {
      const NoContextGuard none;
      if (!none.ok()) Fail("NoContextGuard refused");
      frames_.push_back({nullptr, false, false, callers});
      model_.clear();
      Step();
      frames_.pop_back();
    }
    model_ = callers;
  }

  void Allocate() {
    if (model_.empty() || operations_ % 32 != 0) return;
    CUdeviceptr pointer = 0;
    CUcontext owner = nullptr;
    if (TheDriver().MemAlloc(&pointer, 256) != CUDA_SUCCESS) return Fail("an allocation failed");
    TheDriver().PointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, pointer);
    if (owner != Top()) Fail("memory is not in the context that should be current");
    if (TheDriver().MemFree(pointer) != CUDA_SUCCESS) Fail("a release failed");
  }

  void Guarded() {
    using guard_kinds::InMode;
    switch (Pick(4)) {
      case 0:
        return GuardedBy<InMode<GuardMode::kAlwaysPush>>();
      case 1:
        return GuardedBy<guard_kinds::Exact>();
      default:
        return GuardedBy<InMode<GuardMode::kElide>>();
    }
  }

  template <typename Guard>
  void GuardedBy() {
    const CUcontext target =
        Pick(3) == 0 && Top() != nullptr
            ? Top()
            : shared_.contexts[Pick(static_cast<unsigned>(shared_.contexts.size()))];
    const std::vector<CUcontext> callers = model_;
    const bool may_act = IsUnambiguous();
    {
      std::optional<Guard> guard;
      if (Pick(4) == 0) {
        guard.emplace(ContextRef::Borrow(target));
      } else {
        guard.emplace(target);
      }
      if (!guard->ok()) return Fail("a guard refused");
      if (!guard->elided()) model_.push_back(target);
      frames_.push_back({target, guard->elided(), Guard::kIsExact, callers});
      Inside(*guard, may_act && IsUnambiguous());
      frames_.pop_back();
    }
    model_ = callers;
    CheckTop();
  }

  // What a HostScope leaves: the innermost guard, and those around it as long as nothing of
  // somebody else's lies above their own.
  void LeaveToHost() {
    model_ = frames_.back().callers;
    frames_.pop_back();
    for (; !frames_.empty(); frames_.pop_back()) {
      const Frame& frame = frames_.back();
      if (Top() != frame.target) return;
      if (frame.target == nullptr) {
        model_ = frame.callers;
      } else if (!frame.elided) {
        const CUcontext beneath = model_.size() > 1 ? model_[model_.size() - 2] : nullptr;
        if (beneath != (frame.callers.empty() ? nullptr : frame.callers.back())) return;
        if (frame.exact && model_.size() != frame.callers.size() + 1) return;
        model_.pop_back();
      }
    }
  }

  template <typename Guard>
  void Inside(Guard& guard, bool may_act) {
    const std::vector<CUcontext> inside = model_;
    Step();
    switch (Pick(4)) {
      case 0: {
        const std::vector<Frame> frames = frames_;
        const HostScope host = guard_kinds::HostOf(guard);
        if (!host.ok()) Fail("HostScope refused");
        LeaveToHost();
        Step();
        frames_ = frames;
        break;
      }
      case 1:
        if (may_act) Act(guard.elided());
        if (guard.Reassert() != CUDA_SUCCESS) Fail("Reassert failed");
        break;
      default:
        break;
    }
    model_ = inside;
    CheckTop();
    if (may_act && Pick(2) == 0) Act(guard.elided());
  }

  // One hostile act, of those that can be told apart exactly: an elided guard reads an extra pop as
  // a replaced top.
  void Act(bool elided) {
    CUcontext popped = nullptr;
    ++acts_;
    switch (Pick(elided ? 3 : 6)) {
      case 0:
        TheDriver().CtxSetCurrent(shared_.primary);
        return;
      case 1:
        TheDriver().CtxPushCurrent(shared_.hostile);
        return;
      case 2:
        TheDriver().CtxSetCurrent(shared_.hostile);
        return;
      case 3:
        TheDriver().CtxPopCurrent(&popped);
        return;
      case 4:
        TheDriver().CtxPushCurrent(shared_.hostile);
        TheDriver().CtxPushCurrent(shared_.primary);
        return;
      default:
        TheDriver().CtxPopCurrent(&popped);
        TheDriver().CtxPopCurrent(&popped);
        return;
    }
  }

  // A guard that is inside; of NoContextGuard without a target.
  struct Frame {
    CUcontext target;
    bool elided;
    bool exact;
    std::vector<CUcontext> callers;
  };

  const Shared& shared_;
  std::mt19937 random_;
  std::vector<CUcontext> model_;
  std::vector<Frame> frames_;
  long operations_ = 0;
  long acts_ = 0;
  std::string failure_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(guests)

BOOST_AUTO_TEST_CASE(random_nesting_of_guards_and_hostile_callees) {
  std::vector<OwnContext> contexts;
  const int devices = std::min(2, cuguest::CountDevices().value());
  for (int i = 0; i < 4; ++i) contexts.emplace_back(i % devices);
  const OwnContext hostile(devices - 1);
  const PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  Shared shared{{}, hostile.get(), primary.get()};
  for (const OwnContext& context : contexts) shared.contexts.push_back(context.get());

  const cuguest_test::Unrecorded unrecorded;
  const cuguest::IncidentListener listener(&Count);
  std::vector<Guest> guests;
  for (unsigned i = 0; i < kThreads; ++i) guests.emplace_back(shared, 1000 + i);
  std::vector<std::thread> threads;
  for (Guest& guest : guests) threads.emplace_back([&guest] { guest.Run(); });
  for (std::thread& thread : threads) thread.join();

  long operations = 0;
  long acts = 0;
  for (const Guest& guest : guests) {
    BOOST_TEST(guest.failure() == "");
    operations += guest.operations();
    acts += guest.acts();
  }
  BOOST_TEST_MESSAGE(operations << " operations on " << devices << " device(s), " << acts
                                << " hostile acts");
  BOOST_TEST(operations >= long{kThreads} * kOperations);
  BOOST_TEST(acts > operations / 50);
  BOOST_TEST(g_reported.load() == acts);
  BOOST_TEST(g_unrepaired.load() == 0);
}

BOOST_AUTO_TEST_SUITE_END()

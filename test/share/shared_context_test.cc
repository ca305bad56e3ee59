// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/shared_context.h"
#include "cuguest/devices.h"

#include <sys/mman.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/primary_context.h"
#include "cuguest/sharing.h"
#include "cuguest/status.h"
#include "test/support/no_new_threads.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(shared_context)

namespace {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::PrimaryContext;
using cuguest::SharedContext;
using cuguest_test::GetStack;
using cuguest_test::OnlySim;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using Owner = SharedContext::Owner;
using Stack = std::vector<CUcontext>;

const Device kFirst = Device::Borrow(0);

SharedContext Create() { return SharedContext::Create(kFirst); }
SharedContext Attach(CUcontext context) { return SharedContext::Attach(context); }

template <typename Function>
void OnAnotherThread(const Function& function) {
  std::thread(function).join();
}

bool IsActive() { return PrimaryContext::Query(kFirst).active; }

// Whether a context is alive, also after it was destroyed: it is an entry of another thread's
// stack meanwhile, which keeps its memory.
class Watch {
 public:
  explicit Watch(CUcontext context) : thread_([this, context] { Hold(context); }) {
    while (!holding_) std::this_thread::yield();
  }
  ~Watch() {
    done_ = true;
    thread_.join();
  }
  bool IsAlive() {
    asked_ = true;
    while (asked_) std::this_thread::yield();
    return alive_;
  }

 private:
  void Hold(CUcontext context) {
    static_cast<void>(RAW(cuCtxPushCurrent)(context));
    holding_ = true;
    while (!done_) {
      if (asked_) {
        unsigned version = 0;
        alive_ = RAW(cuCtxGetApiVersion)(context, &version) == CUDA_SUCCESS;
        asked_ = false;
      }
      std::this_thread::yield();
    }
    CUcontext popped = nullptr;
    static_cast<void>(RAW(cuCtxPopCurrent)(&popped));
  }

  std::atomic<bool> holding_{false};
  std::atomic<bool> asked_{false};
  std::atomic<bool> alive_{false};
  std::atomic<bool> done_{false};
  std::thread thread_;
};

// The code of a status that must not be OK, checked to name the context.
CUresult CodeNaming(const absl::Status& status, CUcontext context) {
  char address[32];
  std::snprintf(address, sizeof(address), "0x%zx", reinterpret_cast<size_t>(context));
  BOOST_TEST(absl::StrContains(std::string(status.message()), address), status.ToString());
  return cuguest::CodeOf(status).value_or(CUDA_SUCCESS);
}

static_assert(std::is_nothrow_copy_constructible_v<SharedContext>);
static_assert(std::is_nothrow_move_constructible_v<SharedContext>);

}  // namespace

BOOST_AUTO_TEST_CASE(create_leaves_it_floating) {
  const OwnContext a;
  SetStack({a.get()});
  SharedContext shared = Create();
  BOOST_TEST(GetStack() == (Stack{a.get()}));
  BOOST_TEST(shared.get() != nullptr);
  BOOST_TEST(shared.use_count() == 1);
  BOOST_TEST((shared.owner() == Owner::kShared));
  BOOST_TEST(shared.context().IsAlive());
  {
    const ContextGuard guard(shared.context());
    BOOST_TEST(guard.ok());
    CUdeviceptr pointer = 0;
    BOOST_TEST(RAW(cuMemAlloc)(&pointer, 64) == CUDA_SUCCESS);
    BOOST_TEST(RAW(cuMemFree)(pointer) == CUDA_SUCCESS);
  }
  BOOST_TEST(shared.Release().ok());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(flags_reach_the_driver) {
  const SharedContext shared = SharedContext::Create(kFirst, CU_CTX_SCHED_BLOCKING_SYNC);
  const ContextGuard guard(shared.get());
  unsigned flags = 0;
  BOOST_TEST(RAW(cuCtxGetFlags)(&flags) == CUDA_SUCCESS);
  BOOST_TEST((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_BLOCKING_SYNC);
}

BOOST_AUTO_TEST_CASE(last_copy_destroys_the_context) {
  SharedContext first = Create();
  Watch watch(first.get());
  {
    SharedContext second = first;
    BOOST_TEST(second.get() == first.get());
    SharedContext third;
    BOOST_TEST(third.use_count() == 0);
    BOOST_TEST((third.owner() == Owner::kNobody));
    third = second;
    BOOST_TEST(first.use_count() == 3);
    third = std::move(second);
    BOOST_TEST(first.use_count() == 2);
    BOOST_TEST(second.get() == nullptr);
    const SharedContext& same = third;
    third = same;
    BOOST_TEST(first.use_count() == 2);
    SharedContext& also_same = third;
    third = std::move(also_same);
    BOOST_TEST(first.use_count() == 2);
    first = SharedContext();
    BOOST_TEST(third.use_count() == 1);
    BOOST_TEST(watch.IsAlive());
  }
  BOOST_TEST(!watch.IsAlive());
}

BOOST_AUTO_TEST_CASE(creator_may_release_first) {
  SharedContext creator = Create();
  SharedContext other = Attach(creator.get());
  BOOST_TEST((other.owner() == Owner::kShared));
  BOOST_TEST((other.context() == creator.context()));
  SharedContext by_ref = SharedContext::Attach(creator.context());
  BOOST_TEST(creator.use_count() == 3);
  Watch watch(creator.get());
  BOOST_TEST(creator.Release().ok());
  BOOST_TEST(by_ref.Release().ok());
  BOOST_TEST(watch.IsAlive());
  BOOST_TEST(other.Release().ok());
  BOOST_TEST(!watch.IsAlive());
}

BOOST_AUTO_TEST_CASE(
    leak_keeps_the_reference,
    *cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  SharedContext shared = Create();
  SharedContext other = shared;
  const CUcontext context = other.Leak();
  BOOST_TEST(other.get() == nullptr);
  BOOST_TEST(shared.use_count() == 2);
  BOOST_TEST(shared.Release().ok());
  BOOST_TEST(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS);  // was not, by anybody else
}

BOOST_AUTO_TEST_CASE(foreign_context_is_never_destroyed) {
  const OwnContext theirs;
  for (int round = 0; round < 3; ++round) {
    SharedContext a = Attach(theirs.get());
    SharedContext b = Attach(theirs.get());
    BOOST_TEST((a.owner() == Owner::kOther));
    BOOST_TEST(b.use_count() == 2);
    BOOST_TEST(a.Release().ok());
    BOOST_TEST(b.Release().ok());
  }
  BOOST_TEST(ContextRef::Borrow(theirs.get()).ok());
}

BOOST_AUTO_TEST_CASE(attached_primary_takes_one_reference) {
  PrimaryContext theirs = PrimaryContext::Retain(kFirst);
  SharedContext a = Attach(theirs.get());
  BOOST_TEST((a.owner() == Owner::kPrimary));
  SharedContext b = Attach(theirs.get());
  SharedContext c = b;
  BOOST_TEST(a.use_count() == 3);
  BOOST_TEST(theirs.Release().ok());
  BOOST_TEST(IsActive());
  BOOST_TEST(a.Release().ok());
  BOOST_TEST(b.Release().ok());
  BOOST_TEST(IsActive());
  BOOST_TEST(SharedContext(c).Release().ok());
  BOOST_TEST(IsActive());
  c = SharedContext();
  BOOST_TEST(!IsActive());
  // And nobody else's reference was released.
  theirs = PrimaryContext::Retain(kFirst);
  BOOST_TEST(Attach(theirs.get()).Release().ok());
  BOOST_TEST(IsActive());
}

BOOST_AUTO_TEST_CASE(attach_creates_no_primary_context) {
  const OwnContext theirs;
  Sim::ResetCalls();
  const SharedContext shared = Attach(theirs.get());
  BOOST_TEST(Sim::Calls("cuDevicePrimaryCtxRetain") == 0u);  // not even for a moment
  BOOST_TEST(!IsActive());
}

BOOST_AUTO_TEST_CASE(foreign_context_is_not_the_primary) {
  const PrimaryContext primary = PrimaryContext::Retain(kFirst);
  const OwnContext theirs;
  SharedContext shared = Attach(theirs.get());
  BOOST_TEST((shared.owner() == Owner::kOther));
  BOOST_TEST(shared.Release().ok());
  BOOST_TEST(IsActive());
}

// It may be destroyed meanwhile, so it must not be entered to find out what it is.
BOOST_AUTO_TEST_CASE(attaching_enters_no_context, *OnlySim()) {
  const PrimaryContext primary = PrimaryContext::Retain(kFirst);
  const OwnContext theirs;
  Sim::ResetCalls();
  for (const CUcontext context : {theirs.get(), primary.get()}) {
    const SharedContext by_handle = Attach(context);
    const SharedContext by_ref = SharedContext::Attach(ContextRef::Borrow(context));
    BOOST_TEST((by_ref.owner() == (context == primary.get() ? Owner::kPrimary : Owner::kOther)));
  }
  BOOST_TEST(Sim::Calls("cuCtxPushCurrent") == 0u);
  BOOST_TEST(Sim::Calls("cuCtxSetCurrent") == 0u);
}

BOOST_AUTO_TEST_CASE(any_devices_primary_is_recognised, *cuguest_test::NeedsDevices(2)) {
  const Device second = Device::Borrow(1);
  const PrimaryContext firsts = PrimaryContext::Retain(kFirst);
  PrimaryContext seconds = PrimaryContext::Retain(second);
  SharedContext shared = Attach(seconds.get());
  BOOST_TEST((shared.owner() == Owner::kPrimary));
  BOOST_TEST(seconds.Release().ok());
  BOOST_TEST(PrimaryContext::Query(second).active);
  BOOST_TEST(shared.Release().ok());
  BOOST_TEST(!PrimaryContext::Query(second).active);
}

// Wherever a reference was counted, it may be moved and released anywhere.
BOOST_AUTO_TEST_CASE(references_move_between_threads) {
  SharedContext first = Create();
  Watch watch(first.get());
  std::vector<SharedContext> units(40);
  for (SharedContext& unit : units) OnAnotherThread([&] { unit = Attach(first.get()); });
  std::vector<SharedContext> moved(40);
  for (size_t i = 0; i < units.size(); ++i) moved[i] = std::move(units[units.size() - 1 - i]);
  BOOST_TEST(first.use_count() == 41);
  for (size_t i = 0; i < 20; ++i) BOOST_TEST(moved[i].Release().ok());
  BOOST_TEST(first.use_count() == 21);
  BOOST_TEST(first.Release().ok());
  BOOST_TEST(moved[20].use_count() == 20);
  for (size_t i = 20; i < 40; ++i) {
    BOOST_TEST(watch.IsAlive());
    BOOST_TEST(moved[i].Release().ok());
  }
  BOOST_TEST(!watch.IsAlive());
}

BOOST_AUTO_TEST_CASE(attach_refuses_invalid_handles) {
  void* page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(page, 4096);
  for (const size_t value : {size_t{0}, size_t{1}, size_t{8}, size_t{0x1234}, ~size_t{7},
                             reinterpret_cast<size_t>(page), reinterpret_cast<size_t>(&page) + 1}) {
    const absl::Status status = ToStatus(SharedContext::Attach(reinterpret_cast<CUcontext>(value)));
    BOOST_TEST((status.code() == absl::StatusCode::kInvalidArgument), value << status.ToString());
  }
  BOOST_TEST(!SharedContext::Attach(ContextRef()).ok());
}

BOOST_AUTO_TEST_CASE(a_dead_context_is_refused) {
  OwnContext theirs;
  const ContextRef ref = ContextRef::Borrow(theirs.get());
  Watch watch(theirs.get());
  const CUcontext context = theirs.release();
  BOOST_TEST(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS);
  const absl::Status by_handle = ToStatus(SharedContext::Attach(context));
  const absl::Status by_ref = ToStatus(SharedContext::Attach(ref));
  BOOST_TEST(CodeNaming(by_handle, context) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  BOOST_TEST(CodeNaming(by_ref, context) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

BOOST_AUTO_TEST_CASE(
    ref_of_earlier_incarnation_is_refused,
    *cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  PrimaryContext before = PrimaryContext::Retain(kFirst);
  const ContextRef ref = before.context();
  BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
  const PrimaryContext after = PrimaryContext::Retain(kFirst);
  BOOST_TEST(CodeNaming(ToStatus(SharedContext::Attach(ref)), ref.get()) ==
             CUDA_ERROR_CONTEXT_IS_DESTROYED);
  BOOST_TEST(SharedContext::Attach(after.context()).ok());
}

BOOST_AUTO_TEST_CASE(detaching_twice_says_so) {
  SharedContext shared = Create();
  BOOST_TEST(shared.Release().ok());
  BOOST_TEST((ToStatus(shared.Release()).code() == absl::StatusCode::kFailedPrecondition));
  BOOST_TEST((ToStatus(SharedContext().Release()).code() == absl::StatusCode::kFailedPrecondition));
}

BOOST_AUTO_TEST_CASE(owner_destroys_it_while_attached) {
  OwnContext theirs;
  SharedContext a = Attach(theirs.get());
  SharedContext b = a;
  const CUcontext context = theirs.release();
  Watch watch(context);
  BOOST_TEST(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS);
  BOOST_TEST(CodeNaming(ToStatus(a.Release()), context) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  BOOST_TEST(a.get() == nullptr);
  b = SharedContext();
}

// Also the one that would have had to destroy it, which must leave the context that has the
// handle now alone.
BOOST_AUTO_TEST_CASE(
    release_spares_the_reused_handle,
    *cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  SharedContext shared = Create();
  SharedContext other = shared;
  const CUcontext context = shared.get();
  OwnContext::DestroyIdle();
  BOOST_TEST(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS);
  std::vector<OwnContext> next(2);  // the simulation's first has the handle; a driver's may
  BOOST_TEST(!shared.Release().ok());
  BOOST_TEST(CodeNaming(ToStatus(other.Release()), context) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  for (const OwnContext& one : next) BOOST_TEST(ContextRef::Borrow(one.get()).ok());
  if (Sim::IsActive()) BOOST_TEST(next[0].get() == context);
}

BOOST_AUTO_TEST_CASE(
    device_reset_while_primary_is_attached,
    *cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  PrimaryContext theirs = PrimaryContext::Retain(kFirst);
  SharedContext shared = Attach(theirs.get());
  BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
  // The host retains it again, and the new incarnation is attached as well.
  PrimaryContext again = PrimaryContext::Retain(kFirst);
  SharedContext second = Attach(again.get());
  BOOST_TEST(second.get() == shared.get());
  BOOST_TEST(second.use_count() == 1);
  BOOST_TEST(CodeNaming(ToStatus(shared.Release()), again.get()) ==
             CUDA_ERROR_CONTEXT_IS_DESTROYED);
  BOOST_TEST(second.Release().ok());
  BOOST_TEST(IsActive());
  BOOST_TEST(again.Release().ok());
  BOOST_TEST(theirs.Release().ok());
  BOOST_TEST(!IsActive());
}

BOOST_AUTO_TEST_CASE(last_release_leaves_stacks_alone) {
  const OwnContext x;
  for (const bool on_top : {true, false}) {
    SharedContext shared = Create();
    const CUcontext context = shared.get();
    const Stack stack = on_top ? Stack{x.get(), context, context} : Stack{context, x.get()};
    Watch watch(context);
    SetStack(stack);
    BOOST_TEST(shared.Release().ok());
    BOOST_TEST(!watch.IsAlive());
    // Not through GetStack(): a dead entry cannot be put back.
    CUcontext current = nullptr;
    BOOST_TEST(RAW(cuCtxGetCurrent)(&current) == CUDA_SUCCESS);
    BOOST_TEST(current == stack.back());
    for (size_t i = stack.size(); i-- > 0;) {
      CUcontext popped = nullptr;
      BOOST_TEST(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS);
      BOOST_TEST(popped == stack[i]);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_last_holder_needs_no_thread, *OnlySim()) {
  const OwnContext x;
  const auto live = Sim::Live();
  struct Fault {
    const char* entry;
    unsigned times;
    CUresult said;
  };
  const Fault faults[] = {{"none", 0, CUDA_SUCCESS},
                          {"cuCtxGetCurrent", 1, CUDA_SUCCESS},
                          {"cuCtxGetCurrent", 2, CUDA_ERROR_OPERATING_SYSTEM},
                          {"cuCtxPushCurrent", 1, CUDA_ERROR_OPERATING_SYSTEM},
                          {"cuCtxDestroy", 1, CUDA_ERROR_OPERATING_SYSTEM}};
  for (const auto& [entry, times, said] : faults) {
    BOOST_TEST_CONTEXT(entry << " fails " << times << " times") {
      SharedContext shared = Create();
      const CUcontext context = shared.get();
      SetStack({x.get(), context});
      for (unsigned nth = 1; nth <= times; ++nth) {
        Sim::FailCall(entry, nth, CUDA_ERROR_OPERATING_SYSTEM);
      }
      CUresult code;
      {
        const cuguest_test::NoNewThreads no_threads;
        code = shared.Release().code;
      }
      Sim::ClearFaults();
      BOOST_TEST(code == said);
      CUcontext popped = nullptr;
      BOOST_TEST(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS);
      BOOST_TEST(popped == context);
      BOOST_TEST(GetStack() == (Stack{x.get()}));
      if (said != CUDA_SUCCESS) BOOST_TEST(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS);
      BOOST_TEST((Sim::Live() == live));
    }
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(last_holder_on_another_thread) {
  const OwnContext other;
  SharedContext shared = Create();
  Watch watch(shared.get());
  OnAnotherThread([&] {
    SetStack({other.get()});
    shared = SharedContext();
    BOOST_TEST(GetStack() == (Stack{other.get()}));
    SetStack({});
  });
  BOOST_TEST(!watch.IsAlive());
}

// A guard whose scope it ends in finds its entry, dead, and the caller's beneath it.
BOOST_AUTO_TEST_CASE(the_last_holder_inside_a_guard) {
  const OwnContext x;
  SetStack({x.get()});
  SharedContext shared = Create();
  {
    const ContextGuard guard(shared.context());
    BOOST_TEST(shared.Release().ok());
  }
  BOOST_TEST(GetStack() == (Stack{x.get()}));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(single_copy_passes_check_sharing) { BOOST_TEST(cuguest::CheckSharing().ok()); }

BOOST_AUTO_TEST_CASE(
    the_calls_of_the_header,
    *OnlySim() *
        cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  const auto calls = [](const auto& work) {
    Sim::ResetCalls();
    work();
    return Sim::TotalCalls();
  };
  SharedContext shared;
  SharedContext other;
  const OwnContext theirs;
  BOOST_TEST(calls([&] { shared = Create(); }) == 3u);
  BOOST_TEST(calls([&] { other = Attach(shared.get()); }) == 1u);
  BOOST_TEST(Sim::Calls(cuguest_test::HasDriver(12000) ? "cuCtxGetId" : "cuCtxGetApiVersion") ==
             1u);
  BOOST_TEST(calls([&] { const SharedContext copy = shared; }) == 0u);
  BOOST_TEST(calls([&] { static_cast<void>(shared.use_count()); }) == 0u);
  BOOST_TEST(calls([&] { BOOST_TEST(shared.Release().ok()); }) == 1u);
  BOOST_TEST(calls([&] { other = SharedContext(); }) == 3u);
  // Of devices whose primary context was held before nothing is asked.
  for (int device = 0; device < cuguest::CountDevices().value(); ++device) {
    BOOST_TEST(cuguest::PrimaryContext::Retain(Device::Borrow(device)).ok());
  }
  BOOST_TEST(calls([&] { shared = Attach(theirs.get()); }) == 3u);
  BOOST_TEST(calls([&] { shared = SharedContext(); }) == 0u);
}

BOOST_AUTO_TEST_CASE(many_contexts_at_once, *OnlySim()) {
  for (int round = 0; round < 3; ++round) {
    std::vector<OwnContext> theirs(60);
    std::vector<SharedContext> shared;
    for (const OwnContext& one : theirs) {
      shared.push_back(Attach(one.get()));
      shared.push_back(Create());
    }
    for (const SharedContext& one : shared) {
      BOOST_TEST(Attach(one.get()).use_count() == 2);
      BOOST_TEST(one.use_count() == 1);
    }
  }
  BOOST_TEST(Sim::Live().contexts == 0);
}

// Holders of one that is gone do not keep others from the next one at its handle.
BOOST_AUTO_TEST_CASE(
    reused_handle_is_counted_anew,
    *OnlySim() *
        cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  OwnContext::DestroyIdle();
  std::vector<SharedContext> over;
  std::optional<OwnContext> theirs(std::in_place);
  const CUcontext handle = theirs->get();
  for (int i = 0; i < 5; ++i) {
    BOOST_TEST_REQUIRE(theirs->get() == handle);
    over.push_back(Attach(handle));
    BOOST_TEST(over.back().use_count() == 1);
    BOOST_TEST(RAW(cuCtxDestroy)(theirs->release()) == CUDA_SUCCESS);
    theirs.emplace();
  }
  SharedContext holder = Attach(handle);
  Sim::ResetCalls();
  BOOST_TEST(Attach(handle).use_count() == 2);
  BOOST_TEST(Sim::TotalCalls() == 1u);  // its slot is found at once
  for (SharedContext& one : over) {
    BOOST_TEST(CodeNaming(ToStatus(one.Release()), handle) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }
  BOOST_TEST(holder.use_count() == 1);
  BOOST_TEST(holder.Release().ok());
}

BOOST_AUTO_TEST_CASE(memory_runs_out_in_create, *OnlySim()) {
  Sim::FailCall("cuCtxCreate", 1, CUDA_ERROR_OUT_OF_MEMORY);
  const absl::Status status = ToStatus(SharedContext::Create(kFirst));
  BOOST_TEST((status.code() == absl::StatusCode::kResourceExhausted));
  BOOST_TEST(absl::StrContains(std::string(status.message()), "device 0"));
  BOOST_TEST(GetStack().empty());
}

BOOST_AUTO_TEST_CASE(create_reports_the_drivers_refusal) {
  BOOST_TEST((ToStatus(SharedContext::Create(kFirst, 0x1000)).code() ==
              absl::StatusCode::kInvalidArgument));
  BOOST_TEST(
      (ToStatus(SharedContext::Create(Device::Borrow(99))).code() == absl::StatusCode::kNotFound));
  BOOST_TEST(GetStack().empty());
}

BOOST_AUTO_TEST_CASE(any_driver_call_fails, *OnlySim()) {
  const OwnContext current;
  const OwnContext theirs;
  SetStack({current.get()});
  const auto live = Sim::Live();
  int failed = 0;
  for (size_t i = 0; Sim::EntryName(i) != nullptr; ++i) {
    const std::string entry = Sim::EntryName(i);
    for (unsigned nth = 1; nth <= 4; ++nth) {
      BOOST_TEST_CONTEXT(entry << " fails at call " << nth) {
        PrimaryContext primary = PrimaryContext::Retain(kFirst);
        Sim::FailCall(entry.c_str(), nth, CUDA_ERROR_OPERATING_SYSTEM);
        for (const CUcontext context : {theirs.get(), primary.get()}) {
          auto attached = SharedContext::Attach(context);
          if (!attached.ok()) ++failed;
          if (attached.ok() && !attached.Release().ok()) ++failed;
        }
        auto made = SharedContext::Create(kFirst);
        if (!made.ok()) ++failed;
        const CUcontext context = made.ok() ? made.get() : nullptr;
        const bool detached = !made.ok() || made.Release().ok();
        Sim::ClearFaults();
        if (!detached) {  // as the status says: it exists, uncounted
          ++failed;
          BOOST_TEST(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS);
        }
        BOOST_TEST(GetStack() == (Stack{current.get()}));
        static_cast<void>(primary.Release());
        // A release that was made to fail left its reference behind.
        while (IsActive()) BOOST_TEST_REQUIRE(RAW(cuDevicePrimaryCtxRelease)(0) == CUDA_SUCCESS);
        BOOST_TEST((Sim::Live() == live), "leaked");
        static_cast<void>(cuguest_test::TakeIncidents());
      }
    }
  }
  BOOST_TEST(failed > 8);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_million_rounds_by_64_threads) {
  constexpr int kThreads = 64;
  constexpr int kRounds = 1'000'000 / kThreads;
  const OwnContext theirs;
  const SharedContext ours = Create();
  const SharedContext foreign = Attach(theirs.get());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const SharedContext& mine = i % 2 == 0 ? ours : foreign;
      for (int round = 0; round < kRounds; ++round) {
        auto attached = SharedContext::Attach(mine.get());
        if (!attached.ok() || attached.use_count() < 2) ++wrong;
        if (round % 16 != 0) continue;
        const SharedContext copy = attached;
        if (!attached.Release().ok()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
  BOOST_TEST(ours.use_count() == 1);
  BOOST_TEST(foreign.use_count() == 1);
}

// The creator leaves while others copy and drop all the time: the count moves to them,
// and the last of them is the last holder.
BOOST_AUTO_TEST_CASE(creator_releases_while_others_copy) {
  constexpr int kThreads = 4;
  const int rounds = Sim::IsActive() ? 500 : 20;
  for (int round = 0; round < rounds; ++round) {
    SharedContext first = Create();
    Watch watch(first.get());
    std::vector<SharedContext> theirs(kThreads, first);
    BOOST_TEST(first.use_count() == 1u + kThreads);
    std::atomic<int> at_work{0};
    std::vector<std::thread> threads;
    for (SharedContext& mine : theirs) {
      threads.emplace_back([&mine, &at_work] {
        for (int i = 0; i < 300; ++i) {
          SharedContext copy = mine;
          if (i == 30) ++at_work;
          mine = std::move(copy);
        }
      });
    }
    while (at_work < kThreads / 2) std::this_thread::yield();
    first = SharedContext();
    for (std::thread& thread : threads) thread.join();
    BOOST_TEST(theirs[0].use_count() == std::uint64_t{kThreads});
    BOOST_TEST(watch.IsAlive());
    SharedContext newcomer = Attach(theirs[0].get());
    theirs.resize(1);
    BOOST_TEST(newcomer.use_count() == 2u);
    theirs.clear();
    BOOST_TEST(watch.IsAlive());
    newcomer = SharedContext();
    BOOST_TEST(!watch.IsAlive());
  }
}

// The count goes to zero and back all the time: contexts are made, shared, and
// destroyed by the last holder, and attaching one that is on its way out is refused.
BOOST_AUTO_TEST_CASE(the_last_holder_races_with_newcomers) {
  const int rounds = Sim::IsActive() ? 2000 : 20;
  for (int round = 0; round < rounds; ++round) {
    SharedContext shared = Create();
    Watch watch(shared.get());
    const CUcontext context = shared.get();
    const ContextRef ref = shared.context();
    std::atomic<bool> go{false};
    std::atomic<int> joined{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        while (!go) std::this_thread::yield();
        const auto attached = SharedContext::Attach(ref);
        if (!attached.ok()) return;
        ++joined;
        const ContextGuard guard(attached.get());  // alive as long as we hold it
        unsigned flags = 0;
        if (RAW(cuCtxGetFlags)(&flags) != CUDA_SUCCESS) joined = -100;
      });
    }
    go = true;
    shared = SharedContext();
    for (std::thread& thread : threads) thread.join();
    BOOST_TEST(joined >= 0, "a context was destroyed while it was attached");
    BOOST_TEST(!watch.IsAlive());
    BOOST_TEST(!SharedContext::Attach(context).ok());
  }
}

namespace {

std::atomic<int> g_stage{0};
thread_local bool t_stops = false;
thread_local int* t_calls = nullptr;

void Await(int stage) {
  while (g_stage < stage) std::this_thread::yield();
}

}  // namespace

// The last holder is in the driver's call that destroys it. Once that is over, the next context is
// made at its handle.
BOOST_AUTO_TEST_CASE(attach_refuses_context_being_destroyed, *OnlySim()) {
  g_stage = 0;
  SharedContext made = Create();
  const ContextRef ref = made.context();
  Sim::OnEveryCall([](const char* entry) {
    if (t_calls != nullptr) ++*t_calls;
    if (!t_stops || std::string(entry) != "cuCtxDestroy") return;
    g_stage = 1;
    Await(2);
  });
  std::thread last([&] {
    t_stops = true;
    BOOST_TEST(made.Release().ok());
  });
  Await(1);
  int calls = 0;
  t_calls = &calls;
  for (const auto& refused : {Attach(ref.get()), SharedContext::Attach(ref)}) {
    BOOST_TEST((refused.error().reason == cuguest::Error::Reason::kClosing));
    BOOST_TEST(refused.error().code == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }
  t_calls = nullptr;
  BOOST_TEST(calls == 0);
  g_stage = 2;
  last.join();
  Sim::OnEveryCall(nullptr);
  SharedContext next = Create();
  BOOST_TEST(next.get() == ref.get());
  BOOST_TEST(Attach(ref.get()).use_count() == 2U);
  if (cuguest_test::HasDriver(12000)) BOOST_TEST(!SharedContext::Attach(ref).ok());
  BOOST_TEST(next.Release().ok());
}

// A holder of the handle from before asks the driver what is there, between the driver's making it
// and its maker's counting it: both count in one place, and the last one destroys it.
BOOST_AUTO_TEST_CASE(create_and_attach_count_together,
                     *OnlySim() *
                         cuguest_test::NeedsDriver(12000,
                                                   "cuCtxGetId: without ids it is counted apart")) {
  g_stage = 0;
  SharedContext made = Create();
  const CUcontext handle = made.get();
  BOOST_TEST(made.Release().ok());
  Sim::OnEveryCall([](const char* entry) {
    if (!t_stops || std::string(entry) != "cuCtxGetId") return;
    t_stops = false;
    g_stage = 1;
    Await(2);
  });
  SharedContext next;
  std::thread makes([&] {
    t_stops = true;
    next = Create();
  });
  Await(1);
  SharedContext attached = Attach(handle);
  g_stage = 2;
  makes.join();
  Sim::OnEveryCall(nullptr);
  BOOST_TEST(attached.ok());
  BOOST_TEST(next.get() == handle);
  BOOST_TEST(next.use_count() == 2U);
  BOOST_TEST((attached.owner() == Owner::kShared));
  const ContextRef ref = next.context();
  BOOST_TEST(next.Release().ok());
  BOOST_TEST(ref.IsAlive());
  BOOST_TEST(attached.Release().ok());
  BOOST_TEST(!ref.IsAlive());
}

BOOST_AUTO_TEST_SUITE_END()

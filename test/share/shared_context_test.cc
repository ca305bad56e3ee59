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
#include "test/share/watch.h"
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
using cuguest_test::Watch;
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

BOOST_AUTO_TEST_SUITE_END()

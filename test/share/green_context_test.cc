// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Green contexts, as the library meets them: entered, identified, shared, acquired and used
// as keys like any other, and never treated as the primary context whose device part they are. And
// as it owns them.

#include "cuguest/green_context.h"
#include "cuguest/devices.h"

#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cudasim/sim.h"
#include "cuguest/acquire.h"
#include "cuguest/context_guard.h"
#include "cuguest/objects/stream.h"
#include "cuguest/per_context.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(green_context)

namespace {

using cudasim::Sim;
using cuguest::Acquired;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::GreenContext;
using cuguest::PrimaryContext;
using cuguest::SharedContext;
using cuguest::SmCount;
using cuguest::SmCountOf;
using cuguest::SmSplit;
using cuguest::Stream;
using cuguest::StreamRef;
using cuguest_test::GetStack;
using cuguest_test::NeedsDriver;
using cuguest_test::NeedsDriverBefore;
using cuguest_test::OnlySim;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using Stack = std::vector<CUcontext>;

const Device kFirst = Device::Borrow(0);

bool IsActive() { return PrimaryContext::Query(kFirst).active; }

// One of the whole device. It holds the primary context.
class Green {
 public:
  Green() {
    BOOST_TEST(RAW(cuGreenCtxCreate)(&green_, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM) ==
               CUDA_SUCCESS);
    BOOST_TEST(RAW(cuCtxFromGreenCtx)(&context_, green_) == CUDA_SUCCESS);
  }
  Green(const Green&) = delete;
  Green& operator=(const Green&) = delete;
  ~Green() {
    if (green_ != nullptr) Destroy();
  }
  void Destroy() {
    BOOST_TEST(RAW(cuGreenCtxDestroy)(green_) == CUDA_SUCCESS);
    green_ = nullptr;
  }
  CUgreenCtx green() const { return green_; }
  CUcontext context() const { return context_; }

 private:
  CUgreenCtx green_ = nullptr;
  CUcontext context_ = nullptr;
};

bool HasGreenContexts() { return cuguest_test::FindRawSymbol("cuGreenCtxCreate") != nullptr; }

// Of what was acquired for no longer than a comparison.
CUcontext HandleOf(const cuguest::Acquired& acquired) { return acquired.get(); }

unsigned Number(SmCount count) { return static_cast<unsigned>(count); }
SmCount All() { return SmCountOf(kFirst).value(); }

GreenContext Create(unsigned least = 16) {
  return GreenContext::Create(kFirst, SmCount{least}).value();
}

bool Says(const absl::Status& status, const std::string& words) {
  return absl::StrContains(std::string(status.message()), words);
}

CUresult CodeOfRefusal(const absl::Status& status) {
  BOOST_TEST(!status.ok());
  return cuguest::CodeOf(status).value_or(CUDA_SUCCESS);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(borrowed, *cuguest_test::OnlyIf(&HasGreenContexts,
                                                      "needs a driver with green contexts"))

BOOST_AUTO_TEST_CASE(guard_enters_it_not_the_primary) {
  const OwnContext x;
  const Green green;
  const PrimaryContext primary = PrimaryContext::Retain(kFirst);
  BOOST_TEST((ContextRef::Borrow(green.context()) != primary.context()));
  SetStack({x.get()});
  {
    const ContextGuard guard(ContextRef::Borrow(green.context()));
    BOOST_TEST(guard.ok());
    BOOST_TEST(GetStack() == (Stack{x.get(), green.context()}));
    const ContextGuard inner(primary.get());
    BOOST_TEST(!inner.elided());
  }
  BOOST_TEST(GetStack() == (Stack{x.get()}));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(it_is_counted_and_never_destroyed) {
  Green green;
  SharedContext a = SharedContext::Attach(green.context());
  SharedContext b = a;
  BOOST_TEST((a.owner() == SharedContext::Owner::kOther));
  BOOST_TEST(a.use_count() == 2);
  BOOST_TEST(a.Release().ok());
  BOOST_TEST(b.Release().ok());
  BOOST_TEST(ContextRef::Borrow(green.context()).ok());
  BOOST_TEST(IsActive());
}

BOOST_AUTO_TEST_CASE(destroyed_while_attached_is_reported) {
  Green green;
  SharedContext shared = SharedContext::Attach(green.context());
  SetStack({green.context()});  // keeps its memory
  green.Destroy();
  BOOST_TEST((cuguest::CodeOf(ToStatus(shared.Release())) == CUDA_ERROR_CONTEXT_IS_DESTROYED));
  CUcontext popped = nullptr;
  BOOST_TEST(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS);
}

// It has a reference of its own.
BOOST_AUTO_TEST_CASE(others_release_the_primary_before_it) {
  PrimaryContext primary = PrimaryContext::Retain(kFirst);
  SharedContext shared = SharedContext::Attach(primary.get());
  const Green green;
  BOOST_TEST(primary.Release().ok());
  BOOST_TEST(shared.Release().ok());
  BOOST_TEST(IsActive());
}

BOOST_AUTO_TEST_CASE(its_memory_belongs_to_the_primary,
                     *cuguest_test::NeedsDriver(12050, "cuGreenCtxStreamCreate")) {
  const Green green;
  const PrimaryContext primary = PrimaryContext::Retain(kFirst);
  CUstream stream = nullptr;
  BOOST_TEST(RAW(cuGreenCtxStreamCreate)(&stream, green.green(), CU_STREAM_NON_BLOCKING, 0) ==
             CUDA_SUCCESS);
  BOOST_TEST(HandleOf(cuguest::AcquireFromStream(stream)) == green.context());
  {
    const ContextGuard guard(green.context());
    CUdeviceptr pointer = 0;
    BOOST_TEST(RAW(cuMemAlloc)(&pointer, 64) == CUDA_SUCCESS);
    BOOST_TEST(HandleOf(cuguest::AcquireFromPointer(pointer)) == primary.get());
    BOOST_TEST(HandleOf(cuguest::AcquireCurrent(kFirst)) == green.context());
    BOOST_TEST(HandleOf(cuguest::AcquireOn(kFirst)) == green.context());
    for (const CUstream special : {CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
      BOOST_TEST(HandleOf(cuguest::AcquireFromStream(special)) == green.context());
    }
    BOOST_TEST(RAW(cuMemFree)(pointer) == CUDA_SUCCESS);
  }
  BOOST_TEST(RAW(cuStreamDestroy)(stream) == CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(cache_distinguishes_it_from_the_primary) {
  const Green green;
  const PrimaryContext primary = PrimaryContext::Retain(kFirst);
  cuguest::PerContext<CUcontext> cache;
  const auto make = [](const ContextRef& ref) -> absl::StatusOr<CUcontext> { return ref.get(); };
  for (const CUcontext context : {green.context(), primary.get()}) {
    BOOST_TEST(**cache.GetOrMake(context, make) == context);
  }
  BOOST_TEST(cache.size() == 2u);
  BOOST_TEST(cache.DropDead() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(owned, *cuguest_test::OnlyIf(&HasGreenContexts,
                                                   "needs a driver with green "
                                                   "contexts"))

BOOST_AUTO_TEST_CASE(it_has_at_least_requested_sms) {
  for (const unsigned least : {1u, 8u, 9u, 13u, Number(All())}) {
    BOOST_TEST_CONTEXT("at least " << least) {
      const GreenContext green = Create(least);
      BOOST_TEST(Number(green.sm_count()) >= least);
      BOOST_TEST((least == Number(All()) || Number(green.sm_count()) < Number(All())));
      BOOST_TEST((SmCountOf(green.context()).value() == green.sm_count()));
      BOOST_TEST((green.device() == kFirst));
      BOOST_TEST(green.context().IsAlive());
      CUcontext context = nullptr;
      BOOST_TEST(RAW(cuCtxFromGreenCtx)(&context, green.green()) == CUDA_SUCCESS);
      BOOST_TEST(context == green.get());
    }
  }
}

BOOST_AUTO_TEST_CASE(it_keeps_the_primary_active) {
  const OwnContext callers;
  SetStack({callers.get()});
  GreenContext green = Create();
  BOOST_TEST(IsActive());
  BOOST_TEST(GetStack() == (Stack{callers.get()}));
  BOOST_TEST(green.Release().ok());
  BOOST_TEST(!IsActive());
  BOOST_TEST(green.get() == nullptr);
  BOOST_TEST((green.green() == nullptr));
  BOOST_TEST((green.sm_count() == SmCount{0}));
  BOOST_TEST(green.Release().ok());
  { const GreenContext another = Create(); }
  BOOST_TEST(!IsActive());
  BOOST_TEST(GetStack() == (Stack{callers.get()}));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(moves_and_leak_transfer_ownership) {
  GreenContext first = Create();
  const CUcontext context = first.get();
  GreenContext second(std::move(first));
  BOOST_TEST(first.get() == nullptr);
  BOOST_TEST(second.get() == context);
  GreenContext third = Create();
  third = std::move(second);
  BOOST_TEST(third.get() == context);
  BOOST_TEST(third.context().IsAlive());
  GreenContext& same = third;
  third = std::move(same);
  BOOST_TEST(third.get() == context);
  if (Sim::IsActive()) BOOST_TEST(Sim::Live().green_contexts == 1u);
  CUgreenCtx leaked = third.Leak();
  BOOST_TEST(third.get() == nullptr);
  BOOST_TEST(third.Release().ok());
  BOOST_TEST(IsActive());
  BOOST_TEST(RAW(cuGreenCtxDestroy)(leaked) == CUDA_SUCCESS);
  BOOST_TEST(!IsActive());
}

BOOST_AUTO_TEST_CASE(parts_of_a_split_are_disjoint) {
  const SmSplit split = SmSplit::Of(kFirst, SmCount{16}, 3).value();
  std::vector<GreenContext> greens;
  for (const SmSplit::Part& part : split.parts) {
    greens.push_back(GreenContext::Create(part).value());
    BOOST_TEST((greens.back().sm_count() == part.count()));
  }
  greens.push_back(GreenContext::Create(split.rest).value());
  unsigned sum = 0;
  for (const GreenContext& green : greens) {
    sum += Number(SmCountOf(green.context()).value());
    for (const GreenContext& other : greens) {
      BOOST_TEST((green.context() == other.context()) == (&green == &other));
    }
  }
  BOOST_TEST(sum == Number(All()));
  const GreenContext again = GreenContext::Create(split.parts[0]).value();
  BOOST_TEST((again.sm_count() == split.parts[0].count()));
}

BOOST_AUTO_TEST_CASE(parts_of_unequal_size_are_disjoint) {
  const SmSplit split = SmSplit::OfSizes(kFirst, {SmCount{16}, SmCount{40}}).value();
  const GreenContext small = GreenContext::Create(split.parts[0]).value();
  const GreenContext large = GreenContext::Create(split.parts[1]).value();
  const GreenContext rest = GreenContext::Create(split.rest).value();
  BOOST_TEST((small.sm_count() == split.parts[0].count()));
  BOOST_TEST((SmCountOf(small.context()).value() == split.parts[0].count()));
  BOOST_TEST((SmCountOf(large.context()).value() == split.parts[1].count()));
  BOOST_TEST(Number(small.sm_count()) + Number(large.sm_count()) + Number(rest.sm_count()) ==
             Number(All()));
  const Stream stream = Stream::Create(large.context()).value();
  BOOST_TEST((SmCountOf(stream.context()).value() == large.sm_count()));
}

BOOST_AUTO_TEST_CASE(it_gets_its_own_work_queues, *NeedsDriver(13010, "work queues")) {
  const SmSplit::Part part = SmSplit::Of(kFirst, SmCount{16}, 1)->parts[0];
  const struct {
    unsigned concurrency;
    bool balanced;
    unsigned scope;
  } kRows[] = {{0, true, 1}, {3, true, 1}, {5, false, 0}};
  for (const auto& row : kRows) {
    GreenContext::WorkQueues asked;
    BOOST_TEST(asked.balanced);
    asked.concurrency = row.concurrency;
    asked.balanced = row.balanced;
    cuguest::internal::QueueConfig whole = {};
    cuguest::internal::QueueConfig mine = {};
    const GreenContext green = GreenContext::Create(part, asked).value();
    BOOST_TEST((SmCountOf(green.context()).value() == part.count()));
    CUdevResourceType type = CU_DEV_RESOURCE_TYPE_INVALID;
    std::memcpy(&type, &cuguest::internal::kQueueConfig, sizeof(type));
    CUdevResource resource = {};
    BOOST_TEST(RAW(cuDeviceGetDevResource)(0, &resource, type) == CUDA_SUCCESS);
    std::memcpy(&whole, &resource.sm, sizeof(whole));
    BOOST_TEST(RAW(cuCtxGetDevResource)(green.get(), &resource, type) == CUDA_SUCCESS);
    std::memcpy(&mine, &resource.sm, sizeof(mine));
    BOOST_TEST(mine.limit == (asked.concurrency != 0 ? asked.concurrency : whole.limit));
    BOOST_TEST(mine.scope == row.scope);
  }
}

BOOST_AUTO_TEST_CASE(older_driver_refuses_work_queues, *NeedsDriverBefore(13010, "work queues")) {
  const SmSplit::Part part = SmSplit::Of(kFirst, SmCount{16}, 1)->parts[0];
  const absl::Status status = GreenContext::Create(part, GreenContext::WorkQueues()).status();
  BOOST_TEST((status.code() == absl::StatusCode::kUnimplemented), status.ToString());
  BOOST_TEST(
      Says(status, "device 0, 16 SMs, with work queues: they need driver 590.44.01 (CUDA 13.1)"),
      status.ToString());
  BOOST_TEST(!IsActive());
}

BOOST_AUTO_TEST_CASE(its_streams_are_made_and_acquired) {
  const OwnContext callers;
  SetStack({callers.get()});
  GreenContext green = Create();
  Stream stream = Stream::Create(green.context()).value();
  BOOST_TEST(GetStack() == (Stack{callers.get()}));
  const auto acquired = cuguest::AcquireFromStream(stream.get());
  BOOST_TEST((acquired.context() == green.context()));
  BOOST_TEST((StreamRef::Borrow(stream.get())->context() == green.context()));
  Device device = Device::Borrow(-1);
  BOOST_TEST(acquired.GetDevice(&device) == CUDA_SUCCESS);
  BOOST_TEST((device == kFirst));
  {
    const ContextGuard guard(green.context());
    CUdeviceptr pointer = 0;
    BOOST_TEST(RAW(cuMemAlloc)(&pointer, 64) == CUDA_SUCCESS);
    BOOST_TEST(RAW(cuMemsetD8Async)(pointer, 7, 64, stream.get()) == CUDA_SUCCESS);
    BOOST_TEST(stream.ref().Synchronize().ok());
    BOOST_TEST(RAW(cuMemFree)(pointer) == CUDA_SUCCESS);
  }
  BOOST_TEST(stream.Release().ok());
  BOOST_TEST(green.Release().ok());
  BOOST_TEST(GetStack() == (Stack{callers.get()}));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(outliving_stream_is_given_up) {
  GreenContext green = Create();
  Stream stream = Stream::Create(green.context()).value();
  SetStack({green.get()});  // keeps its memory
  BOOST_TEST(green.Release().ok());
  BOOST_TEST((cuguest::CodeOf(stream.Release()) == CUDA_ERROR_CONTEXT_IS_DESTROYED));
  BOOST_TEST(RAW(cuCtxPopCurrent)(nullptr) == CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(nothing_and_too_much_are_refused) {
  const struct {
    unsigned least;
    std::string words;
  } kRows[] = {{0, "at least one SM"},
               {Number(All()) + 1, absl::StrCat("SMs of its ", Number(All()))}};
  for (const auto& row : kRows) {
    const absl::Status status = GreenContext::Create(kFirst, SmCount{row.least}).status();
    BOOST_TEST((status.code() == absl::StatusCode::kInvalidArgument), status.ToString());
    BOOST_TEST(Says(status, row.words), status.ToString());
  }
  const absl::Status elsewhere = GreenContext::Create(Device::Borrow(77), SmCount{16}).status();
  BOOST_TEST((elsewhere.code() == absl::StatusCode::kNotFound), elsewhere.ToString());
  for (const SmSplit::Part& empty : {SmSplit::Part(), SmSplit::Of(kFirst, All())->rest}) {
    const absl::Status status = GreenContext::Create(empty).status();
    BOOST_TEST((status.code() == absl::StatusCode::kInvalidArgument), status.ToString());
    BOOST_TEST(Says(status, "its partition has no SMs"), status.ToString());
  }
  BOOST_TEST(!IsActive());
}

BOOST_AUTO_TEST_CASE(destroyed_while_current_it_is_noticed) {
  const OwnContext callers;
  GreenContext green = Create();
  const ContextRef before = green.context();
  cuguest::PerContext<int> cache;
  const auto make = [](const ContextRef&) -> absl::StatusOr<int> { return 7; };
  BOOST_TEST(**cache.GetOrMake(green.get(), make) == 7);
  SetStack({callers.get(), green.get()});
  BOOST_TEST(green.Release().ok());
  BOOST_TEST(!before.IsAlive());
  BOOST_TEST(ContextGuard(before).result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  BOOST_TEST(cache.DropDead() == 1u);
  CUcontext popped = nullptr;
  BOOST_TEST(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS);
  BOOST_TEST(popped == before.get());
  BOOST_TEST(GetStack() == (Stack{callers.get()}));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(destroyed_inside_guard_it_is_popped) {
  const OwnContext callers;
  SetStack({callers.get()});
  GreenContext green = Create();
  {
    const ContextGuard guard(green.context());
    BOOST_TEST(guard.ok());
    BOOST_TEST(green.Release().ok());
  }
  BOOST_TEST(GetStack() == (Stack{callers.get()}));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(destroyed_by_another_it_says_so) {
  GreenContext green = Create();
  SetStack({green.get()});  // keeps its memory
  BOOST_TEST(RAW(cuGreenCtxDestroy)(green.green()) == CUDA_SUCCESS);
  const absl::Status status = green.Release();
  BOOST_TEST(CodeOfRefusal(status) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  BOOST_TEST(Says(status, "destroy a green context, context 0x"), status.ToString());
  BOOST_TEST(green.get() == nullptr);
  BOOST_TEST(RAW(cuCtxPopCurrent)(nullptr) == CUDA_SUCCESS);
  BOOST_TEST(!IsActive());
}

BOOST_AUTO_TEST_CASE(owner_destroys_it_while_attached) {
  GreenContext green = Create();
  SharedContext shared = SharedContext::Attach(green.context());
  BOOST_TEST((shared.owner() == SharedContext::Owner::kOther));
  SetStack({green.get()});  // keeps its memory
  BOOST_TEST(green.Release().ok());
  BOOST_TEST(CodeOfRefusal(ToStatus(shared.Release())) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  BOOST_TEST(RAW(cuCtxPopCurrent)(nullptr) == CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(device_reset_is_refused_meanwhile) {
  GreenContext green = Create();
  BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_ERROR_NOT_PERMITTED);
  BOOST_TEST(green.context().IsAlive());
  BOOST_TEST(green.Release().ok());
  BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(second_device_leaves_first_inactive, *cuguest_test::NeedsDevices(2)) {
  const Device second = Device::Borrow(1);
  const GreenContext green = GreenContext::Create(second, SmCount{16}).value();
  BOOST_TEST((green.device() == second));
  BOOST_TEST(!IsActive());
  const ContextGuard guard(green.context());
  BOOST_TEST((*cuguest::CurrentDevice() == second));
}

BOOST_AUTO_TEST_CASE(it_costs_what_the_header_says, *OnlySim()) {
  const SmSplit::Part part = SmSplit::Of(kFirst, SmCount{16})->parts[0];
  Sim::ResetCalls();
  GreenContext green = GreenContext::Create(part).value();
  BOOST_TEST(Sim::TotalCalls() == 4u);
  Sim::ResetCalls();
  BOOST_TEST(green.Release().ok());
  BOOST_TEST(Sim::TotalCalls() == 2u);
  Sim::ResetCalls();
  green = Create();
  BOOST_TEST(Sim::TotalCalls() == 7u);
}

BOOST_AUTO_TEST_CASE(work_queues_cost_one_driver_call,
                     *OnlySim() * NeedsDriver(13010, "work queues")) {
  const SmSplit::Part part = SmSplit::Of(kFirst, SmCount{16})->parts[0];
  Sim::ResetCalls();
  BOOST_TEST(GreenContext::Create(part, GreenContext::WorkQueues()).ok());
  BOOST_TEST(Sim::TotalCalls() == 5u + 2u);  // and it is destroyed
  const auto before = Sim::Live();
  Sim::FailCall("cuDeviceGetDevResource", 1, CUDA_ERROR_OPERATING_SYSTEM);
  const absl::Status status = GreenContext::Create(part, GreenContext::WorkQueues()).status();
  Sim::ClearFaults();
  BOOST_TEST(CodeOfRefusal(status) == CUDA_ERROR_OPERATING_SYSTEM);
  BOOST_TEST(Says(status, "ask for the work queues, device 0, 16 SMs"), status.ToString());
  BOOST_TEST((Sim::Live() == before), "leaked");
}

BOOST_AUTO_TEST_CASE(failing_driver_calls_leak_nothing, *OnlySim()) {
  const OwnContext callers;
  SetStack({callers.get()});
  const auto before = Sim::Live();
  for (const char* entry :
       {"cuDeviceGetDevResource", "cuDevSmResourceSplitByCount", "cuDevResourceGenerateDesc",
        "cuGreenCtxCreate", "cuCtxFromGreenCtx", "cuCtxGetId"}) {
    for (const CUresult code : {CUDA_ERROR_OPERATING_SYSTEM, CUDA_ERROR_OUT_OF_MEMORY}) {
      BOOST_TEST_CONTEXT(entry) {
        Sim::FailCall(entry, 1, code);
        const absl::Status status = GreenContext::Create(kFirst, SmCount{16}).status();
        Sim::ClearFaults();
        BOOST_TEST(CodeOfRefusal(status) == code);
        BOOST_TEST(Says(status, "device 0, "), status.ToString());
        BOOST_TEST((Sim::Live() == before), "leaked");
        BOOST_TEST(GetStack() == (Stack{callers.get()}));
      }
    }
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(failed_release_keeps_ownership, *OnlySim()) {
  GreenContext green = Create();
  for (const char* entry : {"cuGreenCtxDestroy", "cuCtxGetId"}) {
    Sim::FailCall(entry, 1, CUDA_ERROR_NOT_PERMITTED);
    BOOST_TEST(CodeOfRefusal(green.Release()) == CUDA_ERROR_NOT_PERMITTED);
    BOOST_TEST(green.context().IsAlive());
    BOOST_TEST(Number(green.sm_count()) == 16u);
  }
  const CUgreenCtx kept = green.green();
  Sim::FailCall("cuGreenCtxDestroy", 1, CUDA_ERROR_DEINITIALIZED);  // the process is ending
  BOOST_TEST(green.Release().ok());
  BOOST_TEST(green.get() == nullptr);
  BOOST_TEST(RAW(cuGreenCtxDestroy)(kept) == CUDA_SUCCESS);  // which it is not
  BOOST_TEST(!IsActive());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(on_older_drivers, *NeedsDriverBefore(12040, "cuGreenCtxCreate"))

BOOST_AUTO_TEST_CASE(an_older_driver_is_refused) {
  for (const absl::Status& status : {GreenContext::Create(kFirst, SmCount{16}).status(),
                                     GreenContext::Create(SmSplit::Part()).status()}) {
    BOOST_TEST((status.code() == absl::StatusCode::kUnimplemented), status.ToString());
    BOOST_TEST(Says(status, " of CUDA 12.4; driver 550.54 or newer is needed"), status.ToString());
  }
  BOOST_TEST(!IsActive());
}

BOOST_AUTO_TEST_SUITE_END()

// More contexts than the index of the registry has places for.
BOOST_AUTO_TEST_CASE(a_thousand_are_attached,
                     *OnlySim() * NeedsDriver(12040, "green contexts, which take no memory")) {
  const std::deque<Green> greens(1024);
  std::vector<SharedContext> holders;
  for (const Green& one : greens) {
    holders.push_back(SharedContext::Attach(one.context()));
    BOOST_TEST_REQUIRE(holders.back().ok());
  }
  Sim::ResetCalls();
  for (int round = 0; round < 2; ++round) {
    for (const SharedContext& one : holders) {
      const SharedContext again[] = {SharedContext::Attach(one.get()),
                                     SharedContext::Attach(one.context())};
      BOOST_TEST(one.use_count() == 3);
      BOOST_TEST((again[0].context() == one.context()));
      BOOST_TEST((again[1].context() == one.context()));
    }
  }
  BOOST_TEST(Sim::TotalCalls() == 2 * 2 * greens.size());  // nobody is attached as the first
  for (const SharedContext& one : holders) BOOST_TEST(one.use_count() == 1);
}

BOOST_AUTO_TEST_SUITE_END()

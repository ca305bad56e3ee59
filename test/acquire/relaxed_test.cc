// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/relaxed.h"

#include <cstring>
#include <optional>
#include <type_traits>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/acquire.h"
#include "cuguest/acquired_guard.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/host_scope.h"
#include "cuguest/internal/this_thread.h"
#include "cuguest/location.h"
#include "cuguest/status.h"
#include "test/support/capture.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(relaxed)

namespace {

using cudasim::Sim;
using cuguest::AcquiredGuard;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::GuardMode;
using cuguest::HostScope;
using cuguest::Incident;
using cuguest::Location;
using cuguest::Relaxed;
using cuguest_test::GetStack;
using cuguest_test::kGlobal;
using cuguest_test::kRelaxed;
using cuguest_test::kThreadLocal;
using cuguest_test::OnlySim;
using cuguest_test::OwnContext;
using cuguest_test::SetMode;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;
using cuguest_test::TheDriver;
using cuguest_test::ThreadMode;
using Stack = std::vector<CUcontext>;

constexpr Location kWhere{"relaxed", 4711};

// Whether there was one incident of each kind, in this order, at kWhere.
bool HaveHappened(const std::vector<Incident::Kind>& kinds) {
  const auto incidents = TakeIncidents();
  bool have = incidents.size() == kinds.size();
  for (std::size_t i = 0; have && i < kinds.size(); ++i) {
    have = incidents[i].kind == kinds[i] && std::strcmp(incidents[i].file, kWhere.file) == 0 &&
           incidents[i].line == kWhere.line;
  }
  return have;
}

struct Clean {
  Clean() { BOOST_TEST(ThreadMode() == kGlobal); }
  ~Clean() {
    BOOST_TEST(ThreadMode() == kGlobal);
    BOOST_TEST(cuguest::internal::t_this_thread.depth == 0U);
    SetStack({});
  }
};

absl::Status StatusOf(const Relaxed<ContextGuard>& guard) {
  CUGUEST_RETURN_IF_ERROR(guard);
  return absl::OkStatus();
}

static_assert(!std::is_copy_constructible_v<Relaxed<ContextGuard>>);
static_assert(!std::is_constructible_v<Relaxed<ContextGuard>, Relaxed<ContextGuard>&>);
static_assert(!std::is_constructible_v<Relaxed<ContextGuard>, int>);

}  // namespace

BOOST_FIXTURE_TEST_CASE(enters_with_captures_relaxed, Clean) {
  const OwnContext a;
  const OwnContext b;
  for (const CUcontext caller : {a.get(), b.get()}) {
    for (const GuardMode mode : {GuardMode::kElide, GuardMode::kAlwaysPush}) {
      SetStack({caller});
      {
        const Relaxed<ContextGuard> guard(b.get(), mode);
        BOOST_TEST(guard.ok());
        BOOST_TEST(guard.result() == CUDA_SUCCESS);
        BOOST_TEST(StatusOf(guard).ok());
        BOOST_TEST(guard.guard().elided() == (caller == b.get() && mode == GuardMode::kElide));
        BOOST_TEST(GetStack().back() == b.get());
        BOOST_TEST(ThreadMode() == kRelaxed);
      }
      BOOST_TEST(GetStack() == Stack{caller});
      BOOST_TEST(ThreadMode() == kGlobal);
    }
  }
}

BOOST_FIXTURE_TEST_CASE(leaves_both_once, Clean) {
  const OwnContext a;
  SetMode(kThreadLocal);
  Relaxed<ContextGuard> guard(ContextRef::Borrow(a.get()));
  BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
  BOOST_TEST(GetStack().empty());
  BOOST_TEST(SetMode(kRelaxed) == kThreadLocal);
  BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
  BOOST_TEST(guard.Reassert() == CUDA_ERROR_ILLEGAL_STATE);
  BOOST_TEST(SetMode(kGlobal) == kRelaxed);
}

BOOST_FIXTURE_TEST_CASE(of_what_was_acquired, Clean) {
  const OwnContext a;
  SetStack({a.get()});
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  BOOST_TEST(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuMemAlloc)(&memory, 64) == CUDA_SUCCESS);
  SetStack({});
  {
    const Relaxed<AcquiredGuard> guard(cuguest::AcquireFromStream(stream));
    BOOST_TEST(guard.ok());
    BOOST_TEST(ToStatus(guard).ok());
    BOOST_TEST(GetStack() == Stack{a.get()});
    BOOST_TEST(ThreadMode() == kRelaxed);
    const Relaxed<AcquiredGuard> of_device(Device::Borrow(0));
    BOOST_TEST(of_device.guard().guard().elided());
    const Relaxed<AcquiredGuard> of_stream(stream);
    BOOST_TEST(of_stream.guard().guard().elided());
    const Relaxed<AcquiredGuard> of_memory(memory, cuguest::IfInactive::kRefuse);
    BOOST_TEST(of_memory.guard().guard().elided());
  }
  BOOST_TEST(RAW(cuStreamDestroy)(stream) == CUDA_SUCCESS);
}

BOOST_FIXTURE_TEST_CASE(failing_context_changes_nothing, Clean) {
  OwnContext gone;
  const ContextRef ref = ContextRef::Borrow(gone.get());
  TheDriver().CtxDestroy(gone.release());
  for (const bool is_asked : {false, true}) {
    {
      Relaxed<ContextGuard> guard(ref, GuardMode::kElide, kWhere);
      BOOST_TEST(ThreadMode() == kGlobal);
      if (is_asked) {
        BOOST_TEST(!guard.ok());
        BOOST_TEST(guard.result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
        BOOST_TEST(guard.Reassert() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
        BOOST_TEST((StatusOf(guard) == ToStatus(ContextGuard(ref))));
        BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
      }
    }
    BOOST_TEST(HaveHappened(is_asked ? std::vector<Incident::Kind>()
                                     : std::vector{Incident::Kind::kUnasked}));
  }
  const Relaxed<AcquiredGuard> guard(Device::Borrow(999));
  BOOST_TEST(ThreadMode() == kGlobal);
  BOOST_TEST(guard.result() == CUDA_ERROR_INVALID_DEVICE);
  BOOST_TEST((ToStatus(guard) == ToStatus(cuguest::AcquireOn(Device::Borrow(999)))));
}

BOOST_FIXTURE_TEST_CASE(failing_mode_enters_nothing, Clean, *OnlySim()) {
  const OwnContext a;
  for (const bool is_asked : {false, true}) {
    Sim::FailCall("cuThreadExchangeStreamCaptureMode", 1, CUDA_ERROR_OPERATING_SYSTEM);
    {
      Relaxed<ContextGuard> guard(a.get(), GuardMode::kElide, kWhere);
      BOOST_TEST(GetStack().empty());
      if (is_asked) {
        BOOST_TEST(!guard.ok());
        BOOST_TEST(guard.result() == CUDA_ERROR_OPERATING_SYSTEM);
        BOOST_TEST((StatusOf(guard).message().find("capture mode") != std::string::npos));
        BOOST_TEST(guard.Reassert() == CUDA_ERROR_OPERATING_SYSTEM);
        BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
      }
    }
    BOOST_TEST(HaveHappened(is_asked ? std::vector<Incident::Kind>()
                                     : std::vector{Incident::Kind::kUnasked}));
  }
}

BOOST_FIXTURE_TEST_CASE(callee_leaves_another_mode, Clean) {
  const OwnContext a;
  {
    Relaxed<ContextGuard> guard(a.get(), GuardMode::kElide, kWhere);
    SetMode(kThreadLocal);
    BOOST_TEST(guard.Reassert() == CUDA_SUCCESS);
    BOOST_TEST(ThreadMode() == kRelaxed);
    BOOST_TEST(HaveHappened({Incident::Kind::kCaptureMode}));
    BOOST_TEST(guard.Reassert() == CUDA_SUCCESS);
    SetMode(kGlobal);
  }
  BOOST_TEST(HaveHappened({Incident::Kind::kCaptureMode}));
}

BOOST_FIXTURE_TEST_CASE(callee_leaves_another_context, Clean) {
  const OwnContext a;
  const OwnContext b;
  {
    Relaxed<ContextGuard> guard(a.get(), GuardMode::kElide, kWhere);
    TheDriver().CtxPushCurrent(b.get());
    BOOST_TEST(guard.Reassert() == CUDA_SUCCESS);
    BOOST_TEST(GetStack() == Stack{a.get()});
    BOOST_TEST(HaveHappened({Incident::Kind::kLeakedPush}));
    TheDriver().CtxPushCurrent(b.get());
  }
  BOOST_TEST(GetStack().empty());
  BOOST_TEST(HaveHappened({Incident::Kind::kLeakedPush}));
}

BOOST_FIXTURE_TEST_CASE(first_failure_is_returned, Clean, *OnlySim()) {
  const OwnContext a;
  Relaxed<ContextGuard> guard(a.get(), GuardMode::kElide, kWhere);
  Sim::FailCall("cuThreadExchangeStreamCaptureMode", 1, CUDA_ERROR_OPERATING_SYSTEM);
  BOOST_TEST(guard.Reassert() == CUDA_ERROR_OPERATING_SYSTEM);
  BOOST_TEST(guard.result() == CUDA_ERROR_OPERATING_SYSTEM);
  BOOST_TEST(!guard.ok());
  BOOST_TEST(guard.Reassert() == CUDA_SUCCESS);
  BOOST_TEST(guard.ok());
  BOOST_TEST(HaveHappened({Incident::Kind::kCaptureMode}));
  {
    const ContextGuard inner(a.get());
    Sim::FailCall("cuThreadExchangeStreamCaptureMode", 1, CUDA_ERROR_OPERATING_SYSTEM);
    BOOST_TEST(guard.Leave() == CUDA_ERROR_NOT_READY);
  }
  BOOST_TEST(GetStack().empty());
  BOOST_TEST(HaveHappened({Incident::Kind::kCaptureMode}));
  SetMode(kGlobal);
}

BOOST_FIXTURE_TEST_CASE(allocates_under_a_global_capture, Clean) {
  const cuguest_test::Guest guest;
  SetStack({guest.other.get()});
  BOOST_TEST(cuguest_test::Begin(guest.second, kGlobal) == CUDA_SUCCESS);
  {
    const Relaxed<ContextGuard> guard(guest.other.get());
    CUdeviceptr memory = 0;
    BOOST_TEST(RAW(cuMemAlloc)(&memory, 64) == CUDA_SUCCESS);
    BOOST_TEST(RAW(cuMemFree)(memory) == CUDA_SUCCESS);
  }
  SetStack({guest.context.get()});
  BOOST_TEST(cuguest_test::End(guest.second) == CUDA_SUCCESS);
}

BOOST_FIXTURE_TEST_CASE(host_scope_gives_both_back, Clean) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  {
    const Relaxed<ContextGuard> guard(b.get());
    {
      const HostScope host(guard.guard());
      BOOST_TEST(host.ok());
      BOOST_TEST(GetStack() == Stack{a.get()});
      BOOST_TEST(ThreadMode() == kGlobal);
    }
    BOOST_TEST(guard.ok());
    BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
    BOOST_TEST(ThreadMode() == kRelaxed);
  }
}

BOOST_FIXTURE_TEST_CASE(ended_out_of_turn, Clean) {
  const OwnContext a;
  const OwnContext b;
  for (const bool is_asked : {false, true}) {
    std::optional<Relaxed<ContextGuard>> outer;
    outer.emplace(a.get(), GuardMode::kElide, kWhere);
    std::optional<Relaxed<ContextGuard>> inner;
    inner.emplace(b.get(), GuardMode::kElide, kWhere);
    if (is_asked) BOOST_TEST(outer->Leave() == CUDA_ERROR_NOT_READY);
    outer.reset();
    BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
    BOOST_TEST(ThreadMode() == kRelaxed);
    inner.reset();
    BOOST_TEST(GetStack().empty());
    BOOST_TEST(ThreadMode() == kGlobal);
    using Kind = Incident::Kind;
    BOOST_TEST(HaveHappened(is_asked ? std::vector<Kind>()
                                     : std::vector{Kind::kOutOfTurn, Kind::kOutOfTurn}));
  }
}

BOOST_FIXTURE_TEST_CASE(driver_without_modes, Clean, *OnlySim()) {
  const OwnContext a;
  Sim::FailCall("cuThreadExchangeStreamCaptureMode", 1, CUDA_ERROR_NOT_SUPPORTED);
  {
    Relaxed<ContextGuard> guard(a.get());
    BOOST_TEST(GetStack() == Stack{a.get()});
  }
  Sim::FailCall("cuThreadExchangeStreamCaptureMode", 1, CUDA_ERROR_NOT_SUPPORTED);
  Relaxed<ContextGuard> guard(a.get());
  BOOST_TEST(guard.ok());
  BOOST_TEST(StatusOf(guard).ok());
  BOOST_TEST(guard.Reassert() == CUDA_SUCCESS);
  BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
  BOOST_TEST(GetStack().empty());
}

BOOST_FIXTURE_TEST_CASE(costs_two_calls_more, Clean, *OnlySim()) {
  const OwnContext a;
  SetStack({a.get()});
  Sim::ResetCalls();
  {
    Relaxed<ContextGuard> guard(a.get());
    BOOST_TEST(Sim::TotalCalls() == 2U);
    BOOST_TEST(guard.Reassert() == CUDA_SUCCESS);
    BOOST_TEST(Sim::TotalCalls() == 4U);
  }
  BOOST_TEST(Sim::TotalCalls() == 6U);
}

BOOST_AUTO_TEST_SUITE_END()

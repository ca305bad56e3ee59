// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CaptureModeGuard and what a library asks before it keeps house; and that nothing of this
// library that is used on the way into a call invalidates a capture.

#include "cuguest/capture.h"

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/acquire.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_scope.h"
#include "cuguest/host_scope.h"
#include "cuguest/incident_listener.h"
#include "cuguest/internal/this_thread.h"
#include "cuguest/per_context.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "test/guard/guard_kinds.h"
#include "test/support/capture_mode.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(capture)

namespace {

using cudasim::Sim;
using cuguest::CaptureModeGuard;
using cuguest::CaptureStatusOf;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::ContextScope;
using cuguest::Device;
using cuguest::HousekeepingIsSafe;
using cuguest::IfInactive;
using cuguest::Incident;
using cuguest::PrimaryContext;
using cuguest::SharedContext;
using cuguest_test::GetStack;
using cuguest_test::OnlySim;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;
using cuguest_test::ThreadMode;

constexpr auto kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;
constexpr auto kThreadLocal = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
constexpr auto kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
constexpr CUstreamCaptureMode kModes[] = {kGlobal, kThreadLocal, kRelaxed};

template <typename Function>
void OnAnotherThread(const Function& function) {
  std::thread(function).join();
}

// A context with a stream that captures, both on this thread. The context is current.
class Capture {
 public:
  Capture(unsigned stream_flags, CUstreamCaptureMode mode) {
    SetStack({context_.get()});
    BOOST_TEST(RAW(cuMemAlloc)(&memory_, 64) == CUDA_SUCCESS);
    BOOST_TEST(RAW(cuStreamCreate)(&stream_, stream_flags) == CUDA_SUCCESS);
    Begin(mode);
  }
  ~Capture() {
    if (capturing_) End();
    SetStack({context_.get()});
    BOOST_TEST(RAW(cuStreamDestroy)(stream_) == CUDA_SUCCESS);
    BOOST_TEST(RAW(cuMemFree)(memory_) == CUDA_SUCCESS);
    SetStack({});
  }

  void Begin(CUstreamCaptureMode mode) {
    BOOST_TEST(RAW(cuStreamBeginCapture)(stream_, mode) == CUDA_SUCCESS);
    BOOST_TEST(RAW(cuMemsetD8Async)(memory_, 1, 64, stream_) == CUDA_SUCCESS);
    capturing_ = true;
  }
  // Whether it survived.
  bool End() {
    CUgraph graph = nullptr;
    const CUresult code = RAW(cuStreamEndCapture)(stream_, &graph);
    if (graph != nullptr) BOOST_TEST(RAW(cuGraphDestroy)(graph) == CUDA_SUCCESS);
    capturing_ = false;
    return code == CUDA_SUCCESS;
  }
  void Lose() const {
    unsigned flags = 0;
    BOOST_TEST(RAW(cuStreamGetFlags)(stream_, &flags) != CUDA_SUCCESS);
  }

  CUcontext context() const { return context_.get(); }
  CUstream stream() const { return stream_; }
  CUdeviceptr memory() const { return memory_; }

 private:
  OwnContext context_;
  CUdeviceptr memory_ = 0;
  CUstream stream_ = nullptr;
  bool capturing_ = false;
};

// Of what was acquired for no longer than a comparison.
CUcontext HandleOf(const cuguest::Acquired& acquired) { return acquired.get(); }

}  // namespace

BOOST_AUTO_TEST_SUITE(mode_guard)

BOOST_AUTO_TEST_CASE(it_sets_the_threads_mode_and_restores_it) {
  BOOST_TEST(ThreadMode() == kGlobal);
  {
    const CaptureModeGuard relaxed;
    BOOST_TEST(relaxed.ok());
    BOOST_TEST(relaxed.caller() == kGlobal);
    BOOST_TEST(ThreadMode() == kRelaxed);
    {
      CaptureModeGuard local(kThreadLocal);
      BOOST_TEST(local.caller() == kRelaxed);
      BOOST_TEST(ThreadMode() == kThreadLocal);
      OnAnotherThread([] { BOOST_TEST(ThreadMode() == kGlobal); });
      BOOST_TEST(local.Leave() == CUDA_SUCCESS);
      BOOST_TEST(ThreadMode() == kRelaxed);
      BOOST_TEST(local.Leave() == CUDA_SUCCESS);
    }
    BOOST_TEST(ThreadMode() == kRelaxed);
  }
  BOOST_TEST(ThreadMode() == kGlobal);
}

// Each kind of them in its own order, so that nothing is out of turn.
BOOST_AUTO_TEST_CASE(one_that_overlaps_a_guard_leaves_no_place) {
  const OwnContext context;
  const auto in_use = [] { return cuguest::internal::t_this_thread.depth; };
  for (int i = 0; i < 20; ++i) {
    auto relaxed = std::make_unique<CaptureModeGuard>();
    auto guard = std::make_unique<ContextGuard>(context.get());
    if (i % 2 == 0) {
      relaxed.reset();
      BOOST_TEST(in_use() == 2U);
      guard.reset();
    } else {
      auto inner = std::make_unique<CaptureModeGuard>(kThreadLocal);
      guard.reset();
      BOOST_TEST(in_use() == 3U);
      inner.reset();
      BOOST_TEST(in_use() == 1U);
      relaxed.reset();
    }
    BOOST_TEST(in_use() == 0U);
    BOOST_TEST(ThreadMode() == kGlobal);
  }
  BOOST_TEST(GetStack().empty());
  BOOST_TEST(TakeIncidents().empty());
}

BOOST_AUTO_TEST_CASE(it_needs_and_makes_no_context) {
  const CaptureModeGuard relaxed;
  BOOST_TEST(relaxed.ok());
  BOOST_TEST(GetStack().empty());
  BOOST_TEST(!PrimaryContext::Query(Device::Borrow(0)).active);
}

BOOST_AUTO_TEST_CASE(what_is_no_mode_is_refused) {
  const auto none = static_cast<CUstreamCaptureMode>(3);
  const CaptureModeGuard guard(none);
  BOOST_TEST(guard.result() == CUDA_ERROR_INVALID_VALUE);
  BOOST_TEST(!cuguest::ToStatus(guard).ok());
  BOOST_TEST(ThreadMode() == kGlobal);
}

BOOST_AUTO_TEST_CASE(a_callee_leaves_another_mode_behind) {
  {
    const CaptureModeGuard relaxed;
    CUstreamCaptureMode mode = kThreadLocal;
    BOOST_TEST(RAW(cuThreadExchangeStreamCaptureMode)(&mode) == CUDA_SUCCESS);
  }
  BOOST_TEST(ThreadMode() == kGlobal);
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1u);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kCaptureMode));
  BOOST_TEST((incidents[0].repair == cuguest::Incident::Repair::kRepaired));
  BOOST_TEST(std::strstr(incidents[0].file, "capture_test.cc") != nullptr);
}

BOOST_AUTO_TEST_CASE(mode_is_reasserted_in_turn) {
  CaptureModeGuard outer(kThreadLocal);
  {
    const CaptureModeGuard inner(kRelaxed);
    BOOST_TEST(outer.Reassert() == CUDA_ERROR_ILLEGAL_STATE);
    OnAnotherThread([&] { BOOST_TEST(outer.Reassert() == CUDA_ERROR_ILLEGAL_STATE); });
    BOOST_TEST(ThreadMode() == kRelaxed);
  }
  {
    const cuguest::HostScope host;
    BOOST_TEST(outer.Reassert() == CUDA_ERROR_ILLEGAL_STATE);
    BOOST_TEST(ThreadMode() == kGlobal);
  }
  BOOST_TEST(outer.Reassert() == CUDA_SUCCESS);
  CUstreamCaptureMode mode = kRelaxed;
  BOOST_TEST(RAW(cuThreadExchangeStreamCaptureMode)(&mode) == CUDA_SUCCESS);
  BOOST_TEST(outer.Reassert() == CUDA_SUCCESS);
  BOOST_TEST(ThreadMode() == kThreadLocal);
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1u);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kCaptureMode));
  BOOST_TEST(outer.Leave() == CUDA_SUCCESS);
  BOOST_TEST(outer.Reassert() == CUDA_ERROR_ILLEGAL_STATE);
}

BOOST_AUTO_TEST_CASE(listener_ends_what_is_reasserted) {
  CaptureModeGuard guard(kRelaxed);
  const cuguest::IncidentListener listener(
      [](const Incident&, void* reported) {
        BOOST_TEST(static_cast<CaptureModeGuard*>(reported)->Leave() == CUDA_SUCCESS);
      },
      &guard);
  CUstreamCaptureMode mode = kThreadLocal;
  BOOST_TEST(RAW(cuThreadExchangeStreamCaptureMode)(&mode) == CUDA_SUCCESS);
  BOOST_TEST(guard.Reassert() == CUDA_ERROR_ILLEGAL_STATE);
  BOOST_TEST(ThreadMode() == kGlobal);
  BOOST_TEST(TakeIncidents().size() == 1u);
}

// Its own thread takes the mode back when it next begins or ends a guard.
BOOST_AUTO_TEST_CASE(guard_that_ends_on_another_thread) {
  for (const bool begins_another : {false, true}) {
    CaptureModeGuard outer(kRelaxed);
    auto guard = std::make_unique<CaptureModeGuard>(kThreadLocal);
    std::thread([&] {
      BOOST_TEST(guard->Leave() == CUDA_ERROR_NOT_READY);
      BOOST_TEST(guard->Leave() == CUDA_SUCCESS);
      BOOST_TEST(ThreadMode() == kGlobal);
    }).join();
    BOOST_TEST(ThreadMode() == kThreadLocal);
    guard.reset();
    BOOST_TEST(ThreadMode() == kThreadLocal);
    if (begins_another) {
      const CaptureModeGuard next(kGlobal);
      BOOST_TEST(next.caller() == kRelaxed);
    }
    BOOST_TEST(outer.Leave() == CUDA_SUCCESS);
    BOOST_TEST(ThreadMode() == kGlobal);
    const auto incidents = TakeIncidents();
    BOOST_TEST_REQUIRE(incidents.size() == 1u);
    BOOST_TEST((incidents[0].kind == Incident::Kind::kElsewhere));
    BOOST_TEST(incidents[0].result == CUDA_ERROR_NOT_READY);
  }
}

BOOST_AUTO_TEST_CASE(guards_of_modes_end_out_of_turn) {
  const OwnContext context;
  for (const bool is_asked : {false, true}) {
    std::optional<CaptureModeGuard> outer;
    outer.emplace(kThreadLocal, cuguest::Location{__FILE__, 4711});
    const ContextGuard between(context.get());
    CaptureModeGuard inner(kRelaxed);
    if (is_asked) BOOST_TEST(outer->Leave() == CUDA_ERROR_NOT_READY);
    outer.reset();
    BOOST_TEST(ThreadMode() == kRelaxed);
    BOOST_TEST(inner.Leave() == CUDA_SUCCESS);
    BOOST_TEST(ThreadMode() == kGlobal);
    const auto incidents = TakeIncidents();
    BOOST_TEST_REQUIRE(incidents.size() == (is_asked ? 0u : 1u));
    if (is_asked) continue;
    BOOST_TEST((incidents[0].kind == Incident::Kind::kOutOfTurn));
    BOOST_TEST(incidents[0].result == CUDA_ERROR_NOT_READY);
    BOOST_TEST(incidents[0].line == 4711);
  }
}

BOOST_AUTO_TEST_CASE(the_driver_refuses, *OnlySim()) {
  for (const unsigned nth : {1u, 2u}) {
    Sim::FailCall("cuThreadExchangeStreamCaptureMode", nth, CUDA_ERROR_OPERATING_SYSTEM);
    CaptureModeGuard guard;
    BOOST_TEST(guard.ok() == (nth == 2));
    BOOST_TEST(guard.Leave() == (nth == 2 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS));
    BOOST_TEST(TakeIncidents().size() == (nth == 2 ? 1u : 0u));
    if (nth == 1) continue;
    CUstreamCaptureMode mode = kGlobal;  // it was left behind, as the incident says
    BOOST_TEST(RAW(cuThreadExchangeStreamCaptureMode)(&mode) == CUDA_SUCCESS);
    BOOST_TEST(mode == kRelaxed);
  }
}

BOOST_AUTO_TEST_CASE(memory_is_had_while_something_captures) {
  for (const CUstreamCaptureMode mode : kModes) {
    for (const bool other_thread : {false, true}) {
      Capture capture(CU_STREAM_NON_BLOCKING, mode);
      const auto allocate = [&] {
        const ContextGuard guard(capture.context());
        const CaptureModeGuard relaxed;
        CUdeviceptr pointer = 0;
        BOOST_TEST(RAW(cuMemAlloc)(&pointer, 64) == CUDA_SUCCESS);
        BOOST_TEST(RAW(cuMemFree)(pointer) == CUDA_SUCCESS);
      };
      if (other_thread) {
        OnAnotherThread(allocate);
      } else {
        allocate();
      }
      BOOST_TEST(capture.End());
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(state)

BOOST_AUTO_TEST_CASE(a_stream_tells_and_is_not_harmed) {
  for (const CUstreamCaptureMode mode : kModes) {
    Capture capture(CU_STREAM_NON_BLOCKING, mode);
    BOOST_TEST((CaptureStatusOf(capture.stream()) == CU_STREAM_CAPTURE_STATUS_ACTIVE));
    BOOST_TEST(!HousekeepingIsSafe(capture.stream()));
    OnAnotherThread([&] {
      BOOST_TEST((CaptureStatusOf(capture.stream()) == CU_STREAM_CAPTURE_STATUS_ACTIVE));
      BOOST_TEST(!HousekeepingIsSafe(capture.stream()));
    });
    // Not to be seen from the others.
    for (const CUstream other : {CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
      BOOST_TEST((CaptureStatusOf(other) == CU_STREAM_CAPTURE_STATUS_NONE));
      BOOST_TEST(HousekeepingIsSafe(other));
    }
    BOOST_TEST(capture.End());
    BOOST_TEST((CaptureStatusOf(capture.stream()) == CU_STREAM_CAPTURE_STATUS_NONE));
    BOOST_TEST(HousekeepingIsSafe(capture.stream()));
  }
}

BOOST_AUTO_TEST_CASE(stream_0_tells_of_blocking_streams_of_the_current_context) {
  const OwnContext other;
  Capture capture(CU_STREAM_DEFAULT, kRelaxed);
  CUstream second = nullptr;
  BOOST_TEST(RAW(cuStreamCreate)(&second, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  BOOST_TEST((CaptureStatusOf(nullptr) == CU_STREAM_CAPTURE_STATUS_ACTIVE));
  BOOST_TEST((CaptureStatusOf(CU_STREAM_LEGACY) == CU_STREAM_CAPTURE_STATUS_ACTIVE));
  BOOST_TEST((CaptureStatusOf(second) == CU_STREAM_CAPTURE_STATUS_NONE));
  for (const CUstream stream : {CUstream{nullptr}, second, CU_STREAM_PER_THREAD}) {
    BOOST_TEST(!HousekeepingIsSafe(stream));
  }
  {
    const ContextGuard guard(other.get());
    BOOST_TEST((CaptureStatusOf(nullptr) == CU_STREAM_CAPTURE_STATUS_NONE));
  }
  BOOST_TEST(capture.End());
  BOOST_TEST(HousekeepingIsSafe(second));
  BOOST_TEST(RAW(cuStreamDestroy)(second) == CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(a_lost_capture_is_told_until_it_is_ended) {
  Capture capture(CU_STREAM_NON_BLOCKING, kRelaxed);
  capture.Lose();
  BOOST_TEST((CaptureStatusOf(capture.stream()) == CU_STREAM_CAPTURE_STATUS_INVALIDATED));
  BOOST_TEST(!HousekeepingIsSafe(capture.stream()));
  // The context of such a stream is not told either.
  BOOST_TEST(cuguest::AcquireFromStream(capture.stream()).error().code ==
             CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  BOOST_TEST(!capture.End());
  BOOST_TEST(HousekeepingIsSafe(capture.stream()));
}

BOOST_AUTO_TEST_CASE(without_a_context_stream_0_has_no_capture) {
  BOOST_TEST((CaptureStatusOf(nullptr) == CU_STREAM_CAPTURE_STATUS_NONE));
  BOOST_TEST(HousekeepingIsSafe(nullptr));
  BOOST_TEST(HousekeepingIsSafe(CU_STREAM_PER_THREAD));
}

// Nothing may be done there that calls CUDA, and of stream 0 the driver does not tell.
BOOST_AUTO_TEST_CASE(housekeeping_is_unsafe_in_host_functions) {
  struct Seen {
    CUstream created;
    int without_status = 0;
    int is_safe = 0;
    std::optional<CUstreamCaptureStatus> of_created;
  };
  const OwnContext context;
  SetStack({context.get()});
  Seen seen = {};
  BOOST_TEST(RAW(cuStreamCreate)(&seen.created, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  const auto ask = [](void* data) {
    auto* const to = static_cast<Seen*>(data);
    for (const CUstream stream : {CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
      to->without_status += CaptureStatusOf(stream) == std::nullopt ? 1 : 0;
      to->is_safe += HousekeepingIsSafe(stream) ? 1 : 0;
    }
    to->of_created = CaptureStatusOf(to->created);
    to->is_safe += HousekeepingIsSafe(to->created) ? 1 : 0;
  };
  BOOST_TEST(RAW(cuLaunchHostFunc)(nullptr, ask, &seen) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuCtxSynchronize)() == CUDA_SUCCESS);
  BOOST_TEST(seen.without_status == 3);
  BOOST_TEST(seen.is_safe == 0);
  BOOST_TEST((seen.of_created == CU_STREAM_CAPTURE_STATUS_NONE));
  BOOST_TEST(RAW(cuStreamDestroy)(seen.created) == CUDA_SUCCESS);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(the_calls_of_the_header, *OnlySim()) {
  const OwnContext context;
  SetStack({context.get()});
  Sim::ResetCalls();
  { const CaptureModeGuard relaxed; }
  BOOST_TEST(Sim::TotalCalls() == 2u);
  Sim::ResetCalls();
  BOOST_TEST(HousekeepingIsSafe(nullptr));
  BOOST_TEST(Sim::TotalCalls() == 2u);
  BOOST_TEST(HousekeepingIsSafe(CU_STREAM_PER_THREAD));
  BOOST_TEST(Sim::TotalCalls() == 6u);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(what_the_driver_does_not_say_is_not_safe, *OnlySim()) {
  const OwnContext context;
  SetStack({context.get()});
  for (const unsigned nth : {1u, 2u}) {
    Sim::FailCall("cuStreamIsCapturing", nth, CUDA_ERROR_OPERATING_SYSTEM);
    BOOST_TEST(!HousekeepingIsSafe(CU_STREAM_PER_THREAD));
    Sim::ClearFaults();
  }
  Sim::FailCall("cuStreamIsCapturing", 1, CUDA_ERROR_OPERATING_SYSTEM);
  BOOST_TEST((CaptureStatusOf(nullptr) == std::nullopt));
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()

// Each of these is done during captures of every mode, in blocking streams and others, on
// the capturing thread and on another, and none of them may be lost.
BOOST_AUTO_TEST_CASE(nothing_on_the_way_into_a_call_invalidates_a_capture) {
  const OwnContext another;
  const PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  const auto expect = [](const char* what, bool fine) { BOOST_TEST(fine, what); };
  const std::vector<std::function<void(const Capture&)>> steps = {
      [&](const Capture& c) {
        for (const CUstream stream :
             {c.stream(), CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
          expect("AcquireFromStream", HandleOf(cuguest::AcquireFromStream(stream)) == c.context());
        }
      },
      [&](const Capture& c) {
        expect("AcquireFromPointer",
               HandleOf(cuguest::AcquireFromPointer(c.memory())) == c.context());
        expect("AcquireFromBuffer",
               HandleOf(cuguest::AcquireFromBuffer(c.memory(), 1)) == c.context());
      },
      [&](const Capture&) {
        expect("AcquireCurrent", cuguest::AcquireCurrent(Device::Borrow(0)).ok());
        expect("AcquireOn", cuguest::AcquireOn(Device::Borrow(0)).ok());
        SetStack({});
        expect("AcquireOn, primary", HandleOf(cuguest::AcquireOn(
                                         Device::Borrow(0), IfInactive::kCreate)) == primary.get());
      },
      [&](const Capture&) {
        guard_kinds::EachKind([&](auto kind) {
          guard_kinds::GuardOf<decltype(kind)> guard(another.get());
          expect("a guard", guard.ok());
          expect("Reassert", guard.Reassert() == CUDA_SUCCESS);
        });
        ContextScope home;
        expect("Enter", home.Enter(ContextRef::Borrow(another.get())) == CUDA_SUCCESS);
        expect("Reassert", home.Reassert() == CUDA_SUCCESS);
      },
      [&](const Capture& c) {
        for (const CUcontext context : {c.context(), primary.get(), another.get()}) {
          auto attached = SharedContext::Attach(context);
          expect("Attach", attached.ok());
          expect("Release", attached.Release().ok());
        }
        auto made = SharedContext::Create(Device::Borrow(0));
        expect("Create", made.ok());
        expect("the last Release", made.Release().ok());
      },
      [&](const Capture& c) {
        cuguest::PerContext<int> cache;
        const auto make = [](const ContextRef&) -> absl::StatusOr<int> { return 1; };
        expect("GetOrMake", cache.GetOrMake(c.context(), make).ok());
        expect("GetOrMake elsewhere", cache.GetOrMake(another.get(), make).ok());
        cache.Forget(ContextRef::Borrow(c.context()));
        cache.DropDead();
      },
      [&](const Capture& c) {
        static_cast<void>(HousekeepingIsSafe(c.stream()));
        static_cast<void>(HousekeepingIsSafe(nullptr));
        static_cast<void>(PrimaryContext::Query(Device::Borrow(0)));
        expect("RetainIfActive", PrimaryContext::RetainIfActive(Device::Borrow(0)).ok());
      },
  };
  for (const unsigned flags : {CU_STREAM_DEFAULT, CU_STREAM_NON_BLOCKING}) {
    Capture capture(flags, kRelaxed);
    BOOST_TEST(capture.End());
    for (const CUstreamCaptureMode mode : kModes) {
      for (size_t step = 0; step < steps.size(); ++step) {
        for (const bool other_thread : {false, true}) {
          BOOST_TEST_CONTEXT("step " << step << ", mode " << mode << ", stream flags " << flags
                                     << (other_thread ? ", another thread" : "")) {
            SetStack({capture.context()});
            capture.Begin(mode);
            if (other_thread) {
              OnAnotherThread([&] {
                SetStack({capture.context()});
                steps[step](capture);
                SetStack({});
              });
            } else {
              steps[step](capture);
            }
            BOOST_TEST(capture.End(), "the capture was invalidated");
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

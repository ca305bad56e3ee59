// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared and green contexts, acquiring and scopes where the driver cannot be called, or cannot
// tell incarnations apart: at the end of the process (exit_order_test.cc has the order), in a
// forked child, in a stream callback, after a sticky error, and below CUDA 12.0. Statuses name what
// is wrong, nothing crashes or hangs, and what can be given back is.

#include <cstdio>
#include <optional>
#include <string>

#include "cudasim/sim.h"
#include "cuguest/acquire.h"
#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_scope.h"
#include "cuguest/driver.h"
#include "cuguest/green_context.h"
#include "cuguest/incident.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

namespace {

using cudasim::Sim;
using cuguest::CodeOf;
using cuguest::ContextRef;
using cuguest::ContextScope;
using cuguest::Device;
using cuguest::Driver;
using cuguest::GreenContext;
using cuguest::PrimaryContext;
using cuguest::SharedContext;

const Device kFirst = Device::Borrow(0);

// At the end of the process.

bool g_in_scenario = false;
struct DetachesWhenItEnds {
  const char* when;
  SharedContext shared;
  ~DetachesWhenItEnds() {
    if (!g_in_scenario) return;
    const absl::Status status = ToStatus(shared.Release());
    std::printf("%s: %s, %llu incidents\n", when, status.ToString().c_str(),
                cuguest::IncidentCount());
    std::fflush(stdout);
  }
};
DetachesWhenItEnds g_early{"last reference, from before cuInit", {}};
DetachesWhenItEnds g_early_primary{"primary, from before cuInit", {}};

void DetachedThroughTheEnd() {
  g_in_scenario = true;
  g_early.shared = SharedContext::Create(kFirst);
  PrimaryContext primary = PrimaryContext::Retain(kFirst);
  g_early_primary.shared = SharedContext::Attach(primary.get());
  static DetachesWhenItEnds late{"last reference, from after cuInit",
                                 SharedContext::Create(kFirst)};
  std::printf("main\n");
}

struct DestroysWhenItEnds {
  const char* when;
  GreenContext green;
  ~DestroysWhenItEnds() {
    if (!g_in_scenario) return;
    std::printf("%s: %s\n", when, green.Release().ToString().c_str());
    std::fflush(stdout);
  }
};
DestroysWhenItEnds g_early_green{"green, from before cuInit", {}};
GreenContext g_never_destroyed;  // but by its destructor

GreenContext CreateGreen() { return GreenContext::Create(kFirst, cuguest::SmCount{1}).value(); }

void GreenContextsThroughTheEnd() {
  g_in_scenario = true;
  g_early_green.green = CreateGreen();
  g_never_destroyed = CreateGreen();
  static DestroysWhenItEnds late{"green, from after cuInit", CreateGreen()};
  std::printf("main\n");
}

// fork()

bool Mentions(const absl::Status& status, const char* words) {
  return std::string(status.message()).find(words) != std::string::npos;
}

bool IsOfAFork(const absl::Status& status) { return CodeOf(status) == CUDA_ERROR_NOT_INITIALIZED; }

void AForkedChild() {
  std::optional<SharedContext> shared = SharedContext::Create(kFirst);
  std::optional<SharedContext> copy = shared;
  const ContextRef ref = shared->context();
  std::optional<ContextScope> home(std::in_place);
  CHECK(home->Enter(ref) == CUDA_SUCCESS);
  cuguest_test::Fork([&] {
    CHECK(IsOfAFork(ToStatus(SharedContext::Attach(ref.get()))));
    CHECK(IsOfAFork(ToStatus(SharedContext::Attach(ref))));
    CHECK(IsOfAFork(ToStatus(SharedContext::Create(kFirst))));
    CHECK(IsOfAFork(ToStatus(cuguest::AcquireOn(kFirst))));
    CHECK(IsOfAFork(ToStatus(cuguest::AcquireCurrent(kFirst))));
    CHECK(IsOfAFork(ToStatus(cuguest::AcquireFromStream(nullptr))));
    CHECK(ContextScope().Enter(ref) == CUDA_ERROR_NOT_INITIALIZED);
    copy.reset();
    CHECK(IsOfAFork(ToStatus(shared->Release())));
    home.reset();
  });
  // The parent's count and context are its own.
  CHECK(shared->use_count() == 2);
  CHECK(home->Leave() == CUDA_SUCCESS);
  CHECK(copy->Release().ok());
  CHECK(shared->Release().ok());
}

void AGreenContextInAForkedChild() {
  std::optional<GreenContext> green = CreateGreen();
  cuguest_test::Fork([&] {
    CHECK(IsOfAFork(GreenContext::Create(kFirst, cuguest::SmCount{1}).status()));
    CHECK(IsOfAFork(cuguest::SmSplit::Of(kFirst, cuguest::SmCount{1}).status()));
    CHECK(IsOfAFork(cuguest::SmCountOf(kFirst).status()));
    CHECK(IsOfAFork(cuguest::SmCountOf(green->context()).status()));
    CHECK(IsOfAFork(green->Release()));
    CHECK(green->get() != nullptr);
    green.reset();
  });
  CHECK(green->context().IsAlive());
  CHECK(green->Release().ok());
}

// Stream callbacks

struct SeenOfGreen {
  GreenContext* green;
  absl::Status created;
  absl::Status destroyed;
};

void AGreenContextInACallback() {
  GreenContext green = CreateGreen();
  SeenOfGreen seen = {&green, absl::OkStatus(), absl::OkStatus()};
  const auto call = [](void* data) {
    auto* const result = static_cast<SeenOfGreen*>(data);
    result->created = GreenContext::Create(kFirst, cuguest::SmCount{1}).status();
    result->destroyed = result->green->Release();
  };
  {
    const cuguest::ContextGuard guard(green.context());
    CHECK(RAW(cuLaunchHostFunc)(nullptr, call, &seen) == CUDA_SUCCESS);
    CHECK(RAW(cuStreamSynchronize)(nullptr) == CUDA_SUCCESS);
  }
  CHECK(CodeOf(seen.created) == CUDA_ERROR_NOT_PERMITTED);
  CHECK(CodeOf(seen.destroyed) == CUDA_ERROR_NOT_PERMITTED);
  CHECK(green.context().IsAlive());
  CHECK(green.Release().ok());
}

std::string NeedsGreenContexts() {
  return cuguest_test::FindRawSymbol("cuGreenCtxCreate") != nullptr ? "" : "needs green contexts";
}

struct Seen {
  SharedContext* last;
  CUstream stream;
  absl::Status detached;
  bool others_refused;
};

void CUDA_CB InHostFunction(void* data) {
  auto* seen = static_cast<Seen*>(data);
  const CUcontext context = seen->last->get();
  seen->others_refused = true;
  for (const absl::Status& status :
       {ToStatus(SharedContext::Attach(context)), ToStatus(SharedContext::Create(kFirst)),
        ToStatus(cuguest::AcquireFromStream(seen->stream)),
        ToStatus(cuguest::AcquireFromStream(nullptr)), ToStatus(cuguest::AcquireOn(kFirst))}) {
    if (CodeOf(status) != CUDA_ERROR_NOT_PERMITTED) seen->others_refused = false;
  }
  const cuguest::CaptureModeGuard relaxed;  // permitted
  if (!relaxed.ok()) seen->others_refused = false;
  SharedContext copy = *seen->last;  // no driver call in these
  copy = SharedContext();
  seen->detached = ToStatus(seen->last->Release());
}

// The last holder cannot destroy the context here; the status says so, and it stays attached.
void TheLastHolderInACallback() {
  SharedContext shared = SharedContext::Create(kFirst);
  const CUcontext context = shared.get();
  const cuguest::ContextGuard guard(context);
  CUstream stream = nullptr;
  CHECK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  Seen seen = {&shared, stream, absl::OkStatus(), false};
  CHECK(RAW(cuLaunchHostFunc)(stream, &InHostFunction, &seen) == CUDA_SUCCESS);
  CHECK(RAW(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  CHECK(seen.others_refused);
  CHECK(CodeOf(seen.detached) == CUDA_ERROR_NOT_PERMITTED);
  CHECK(Mentions(seen.detached, "detach the last reference"));
  CHECK(shared.owner() == SharedContext::Owner::kShared);
  CHECK(shared.use_count() == 1);
  CHECK(shared.context().IsAlive());
  CHECK(shared.Release().ok());
  CHECK(!shared.ok());
}

// Below CUDA 12.0 there are no ids: the handle alone is the key.
void BelowCuda12() {
  Sim::SetDriverVersion(11080);
  SharedContext shared = SharedContext::Create(kFirst);
  CHECK(shared.context().id() == 0);
  SharedContext attached = SharedContext::Attach(shared.get());
  CHECK(attached.use_count() == 2);
  CHECK(shared.Release().ok());
  CHECK(attached.Release().ok());
  CHECK(Sim::Live().contexts == 0);
  PrimaryContext primary = PrimaryContext::Retain(kFirst);
  SharedContext of_primary = SharedContext::Attach(primary.get());
  CHECK(of_primary.owner() == SharedContext::Owner::kPrimary);
  CHECK(primary.Release().ok());
  CHECK(of_primary.Release().ok());
  CHECK(Sim::Live().primary_references == 0);
}

// Below CUDA 9.2 a stream cannot be asked for its context, below 10.0 nothing captures, and
// below 10.1 threads have no mode.
void WithoutNewerEntries() {
  for (const char* entry :
       {"cuStreamGetCtx", "cuStreamIsCapturing", "cuThreadExchangeStreamCaptureMode"}) {
    Sim::HideEntry(entry);
  }
  const SharedContext shared = SharedContext::Create(kFirst);
  const cuguest::ContextGuard guard(shared.get());
  CUstream stream = nullptr;
  CHECK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  const absl::Status refused = ToStatus(cuguest::AcquireFromStream(stream));
  CHECK(refused.code() == absl::StatusCode::kUnimplemented);
  CHECK(Mentions(refused, "cuStreamGetCtx"));
  CHECK(cuguest::AcquireFromStream(nullptr).ok());
  CHECK(cuguest::CaptureModeGuard().result() == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuguest::CaptureStatusOf(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(cuguest::HousekeepingIsSafe(stream));
  CHECK(RAW(cuStreamDestroy)(stream) == CUDA_SUCCESS);
}

}  // namespace

int main(int argc, char** argv) {
  using cuguest_test::On;
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"detached_through_the_end",
           &DetachedThroughTheEnd,
           {"main", "last reference, from after cuInit: OK, 0 incidents",
            "primary, from before cuInit: OK, 0 incidents",
            "last reference, from before cuInit: OK, 0 incidents"}},
          {"green_contexts_through_the_end",
           &GreenContextsThroughTheEnd,
           {"main", "green, from after cuInit: OK", "green, from before cuInit: OK"},
           0,
           On::kAnyDriver,
           {},
           &NeedsGreenContexts},
          {"a_forked_child", &AForkedChild},
          {"a_green_context_in_a_forked_child",
           &AGreenContextInAForkedChild,
           {},
           0,
           On::kAnyDriver,
           {},
           &NeedsGreenContexts},
          {"a_green_context_in_a_callback",
           &AGreenContextInACallback,
           {},
           0,
           On::kAnyDriver,
           {},
           &NeedsGreenContexts},
          {"the_last_holder_in_a_callback", &TheLastHolderInACallback},
          {"below_cuda_12", &BelowCuda12, {}, 0, On::kSimulation},
          {"without_newer_entries", &WithoutNewerEntries, {}, 0, On::kSimulation},
      });
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// No lock of cuguest's is held across a driver call, an allocation, the loading of a library or a
// callback: in each driver call that an operation makes, and in each callback that it is given,
// cuguest is used on the same thread and on another one that is waited for (support/reentry.h).
// Each operation is a process of its own. Of tiers 1 and 2, and graphs; runtime/reentry_test.cc has
// the others, and test/headers/calls_test.py notices a function that is in neither.

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <optional>
#include <thread>
#include <utility>

#include "cudasim/sim.h"
#include "cuguest/acquire.h"
#include "cuguest/acquired_guard.h"
#include "cuguest/capture.h"
#include "cuguest/compatibility.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/context_scope.h"
#include "cuguest/devices.h"
#include "cuguest/driver.h"
#include "cuguest/exact_guard.h"
#include "cuguest/free_memory.h"
#include "cuguest/green_context.h"
#include "cuguest/host_scope.h"
#include "cuguest/incident.h"
#include "cuguest/incident_listener.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/objects/capture_scope.h"
#include "cuguest/objects/code_image.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/driver_log.h"
#include "cuguest/objects/graph.h"
#include "cuguest/objects/stream.h"
#include "cuguest/per_context.h"
#include "cuguest/primary_context.h"
#include "cuguest/primary_keeper.h"
#include "cuguest/relaxed.h"
#include "cuguest/shared_context.h"
#include "cuguest/sharing.h"
#include "cuguest/status.h"
#include "cuguest/thread_home.h"
#include "test/support/held_locks.h"
#include "test/support/reentry.h"
#include "test/support/scenario.h"

namespace {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::Driver;
using cuguest::SharedContext;
using cuguest_test::Reentry;
using cuguest_test::UseCuguest;

constexpr unsigned kSeconds = 15;

// Runs `operation` with cuguest used in each of its calls.
template <typename Operation>
void WithCallbacks(const Operation& operation) {
  const CUcontext bystander = cuguest_test::MakeContext();
  {
    const Reentry reentry(bystander, kSeconds);
    operation();
  }
  CHECK(Reentry::Count() > 0);
  CHECK(!cuguest_test::SeesLocks() || cuguest_test::LocksTaken() > 0);
  std::printf("%d callbacks\n", Reentry::Count());
}

CUcontext Own() { return cuguest_test::MakeContext(); }

void FirstUse() {
  alarm(kSeconds);
  CHECK(Sim::IsActive());
  // Nothing of cuguest has been used yet, so that the callback makes a first use inside another.
  static std::atomic<int> s_callbacks{0};
  Sim::OnEveryCall([](const char* entry) {
    ++s_callbacks;
    cuguest_test::RequireNoLock(entry);
    CHECK(Driver::Get().ok());
    std::thread([] { CHECK(Driver::Get().ok()); }).join();
  });
  CHECK(Driver::GetInitialized().ok());
  CHECK(s_callbacks > 0);
}

void Drivers() {
  WithCallbacks([] {
    CHECK(cuguest::QueryVersions().driver > 0);
    static Driver s_other;
    CHECK(Driver::Load("libcuda.so.1", &s_other).ok());
    CHECK(s_other.Require(&Driver::CtxGetCurrent).ok());
    CHECK(s_other.Find<CUresult(CUDAAPI*)(int*)>("cuDriverGetVersion", 2020).ok());
  });
}

// Two that are open, so that each of the four branches is taken.
void DriverLogs() {
  if ((*Driver::GetInitialized())->version < 12090) return;  // refused, and nothing is called
  WithCallbacks([] {
    absl::StatusOr<cuguest::DriverLog> first = cuguest::DriverLog::Open();
    absl::StatusOr<cuguest::DriverLog> second = cuguest::DriverLog::Open();
    CUdevice device = 0;
    CHECK((*Driver::Get())->DeviceGet(&device, 999) == CUDA_ERROR_INVALID_DEVICE);
    static_cast<void>(cuguest::DriverLog::Reason(CUDA_ERROR_INVALID_DEVICE));
    CHECK(first->Close().ok());
    CHECK(second->Close().ok());
  });
}

// The host's lookup is a callback, too, and a first use.
void AnAdoptedDriver() {
  alarm(kSeconds);
  using GetProcAddress = CUresult(CUDAAPI*)(const char*, void**, int, cuuint64_t);
  static const auto s_get =
      reinterpret_cast<GetProcAddress>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress"));
  static std::atomic<int> s_callbacks{0};
  const auto lookup = [](const char* name, int version, void*) -> void* {
    ++s_callbacks;
    cuguest_test::RequireNoLock(name);
    void* function = nullptr;
    return s_get(name, &function, version, 0) == CUDA_SUCCESS ? function : nullptr;
  };
  CHECK(Driver::Adopt(lookup, nullptr).ok());
  CHECK(s_callbacks > 0);
  const absl::Status again = Driver::Adopt(lookup, nullptr);
  CHECK(cuguest::ProblemOf(again) == cuguest::Driver::Problem::kInUse);
}

constexpr char kPtx[] = ".version 6.0\n.target sm_50\n.address_size 64\n";

// They make no driver call: what is shown is that they allocate and load libraries with no lock
// held. runtime/reentry_test.cc has what is done with them.
void CodeImages() {
  const CUcontext bystander = Own();
  const Reentry reentry(bystander, kSeconds);
  using cuguest::CodeImage;
  const absl::StatusOr<CodeImage> text = CodeImage::FromPtx(kPtx, "nothing.ptx");
  CHECK(text.ok() && text->Validate().ok());
  CHECK(CodeImage::Copy(text->bytes(), "a copy").ok());
  CHECK(!CodeImage::FromFile("/nonexistent").ok());
}

void Guards() {
  const CUcontext context = Own();
  const CUcontext other = Own();
  WithCallbacks([&] {
    const ContextGuard guard(context);
    CHECK(guard.ok());
    ContextGuard verified(ContextRef::Borrow(context));
    CHECK(verified.ok());
    CHECK(verified.Reassert() == CUDA_SUCCESS);
    CHECK(verified.MoveTo(other) == CUDA_SUCCESS);
    CHECK(verified.Leave() == CUDA_SUCCESS);
    ContextGuard empty;
    CHECK(empty.MoveTo(ContextRef::Borrow(other)) == CUDA_SUCCESS);
    CHECK(empty.MoveTo(context) == CUDA_SUCCESS);
    CHECK(empty.Leave() == CUDA_SUCCESS);
    cuguest::ContextScope scope;
    CHECK(scope.Enter(other) == CUDA_SUCCESS);
    cuguest::ContextScope moved(std::move(scope));
    CHECK(moved.Reassert() == CUDA_SUCCESS && moved.MoveTo(context) == CUDA_SUCCESS);
    CHECK(moved.Leave() == CUDA_SUCCESS);
    cuguest::ExactGuard exact(other);
    CHECK(exact.ok() && exact.Reassert() == CUDA_SUCCESS);
    CHECK(exact.Leave() == CUDA_SUCCESS);
    cuguest::NoContextGuard none;
    CHECK(none.ok());
    CHECK(none.Leave() == CUDA_SUCCESS);
    ContextGuard outer(other);
    const ContextGuard inner(context);
    CHECK(outer.Leave() == CUDA_ERROR_NOT_READY);
    CHECK(ContextRef::Current().Check() == CUDA_SUCCESS);
    CHECK(ContextRef::Current().IsAlive());
  });
}

void Devices() {
  WithCallbacks([] {
    const Device device = Device::Borrow(0);
    CHECK(cuguest::CountDevices().ok() && DeviceAt(device.ordinal()).ok());
    CHECK(NameOf(device).ok() && PciBusIdOf(device).ok() && UuidOf(device).ok());
    CHECK(!cuguest::CurrentDevice().ok());
    CHECK(Driver::IsInitialized());
    CHECK(cuguest::GetFreeMemory(device, cuguest::IfInactive::kCreate).ok());
  });
}

void PrimaryContexts() {
  WithCallbacks([] {
    cuguest::PrimaryContext primary = cuguest::PrimaryContext::Retain(Device::Borrow(0));
    CHECK(primary.ok());
    CHECK(cuguest::PrimaryContext::RetainIfActive(Device::Borrow(0)).ok());
    CHECK(cuguest::PrimaryContext::Query(Device::Borrow(0)).ok());
    CHECK(!primary.WasReset());
    CHECK(primary.Release().ok());
  });
}

void Acquires() {
  const CUcontext context = Own();
  const ContextRef ref = ContextRef::Borrow(context);
  const absl::StatusOr<cuguest::Stream> stream = cuguest::Stream::Create(ref);
  const auto memory = cuguest::DeviceBuffer<int>::Allocate(ref, 16);
  CHECK(stream.ok() && memory.ok());
  WithCallbacks([&] {
    CHECK(cuguest::AcquireOn(Device::Borrow(0), cuguest::IfInactive::kCreate).ok());
    const ContextGuard guard(context);
    CHECK(cuguest::AcquireCurrent(Device::Borrow(0)).ok());
    CHECK(cuguest::AcquireFromStream(stream->get()).ok());
    CHECK(cuguest::AcquireFromPointer(memory->get()).ok());
    CHECK(cuguest::AcquireFromBuffer(memory->get(), memory->size_bytes()).ok());
    CHECK(cuguest::AcquireFromBuffer(*memory).ok());
    cuguest::Acquired kept = cuguest::AcquireFromStream(stream->get());
    Device device = Device::Borrow(-1);
    CHECK(kept.GetDevice(&device) == CUDA_SUCCESS);
    CHECK(kept.Release().ok());
    CHECK(cuguest::AcquireAny().ok());
    CHECK(kept.Hold().code != CUDA_SUCCESS);  // it is empty
    cuguest::PrimaryKeeper keeper;
    CHECK(keeper.Keep(cuguest::AcquireOn(Device::Borrow(0))).ok());
    CHECK(!keeper.Keeps(Device::Borrow(0)) && keeper.ReleaseAll().ok());
    CHECK(cuguest::ReleaseKeptPrimary(Device::Borrow(0)).ok());
    CHECK(cuguest::ReleaseKeptPrimaries().ok());
    cuguest::ThreadHome home(stream->get());
    CHECK(home.Check().ok() && home.MoveTo(ref).ok() && home.Leave().ok());
    cuguest::AcquiredGuard acquired(cuguest::AcquireFromStream(stream->get()));
    CHECK(acquired.ok());
    CHECK(acquired.Reassert() == CUDA_SUCCESS);
    CHECK(acquired.Leave() == CUDA_SUCCESS);
    cuguest::Relaxed<ContextGuard> relaxed(context);
    CHECK(relaxed.ok());
    CHECK(relaxed.Reassert() == CUDA_SUCCESS);
    CHECK(relaxed.Leave() == CUDA_SUCCESS);
  });
}

void SharedContexts() {
  const CUcontext context = Own();
  WithCallbacks([&] {
    SharedContext attached = SharedContext::Attach(context);
    CHECK(attached.ok());
    CHECK(attached.Release().ok());
    const SharedContext created = SharedContext::Create(Device::Borrow(0));
    CHECK(created.ok());  // and is destroyed here
    CHECK(created.use_count() == 1);
    CHECK(cuguest::CheckSharing().ok());
  });
}

void GreenContexts() {
  if ((*Driver::GetInitialized())->version < 12040) return;  // they refuse, and call nothing
  WithCallbacks([] {
    const Device device = Device::Borrow(0);
    const absl::StatusOr<cuguest::SmSplit> split =
        cuguest::SmSplit::Of(device, cuguest::SmCount{1}, 1);
    CHECK(split.ok());
    const cuguest::SmSplit::Part& part = split->parts[0];
    absl::StatusOr<cuguest::GreenContext> green = cuguest::GreenContext::Create(part);
    CHECK(green.ok());
    CHECK(*cuguest::SmCountOf(green->context()) == part.count());
    CHECK(*cuguest::SmCountOf(device) > part.count());
    CHECK(cuguest::SmSplit::OfSizes(device, {cuguest::SmCount{1}, cuguest::SmCount{9}}).ok());
    CHECK(green->Release().ok());
    CHECK(cuguest::GreenContext::Create(device, cuguest::SmCount{1}).ok());  // and is destroyed
  });
}

// Uses cuguest when it is destroyed.
class Value {
 public:
  Value() = default;
  Value(Value&& other) noexcept : is_moved_(std::exchange(other.is_moved_, true)) {}
  Value& operator=(Value&&) = delete;
  ~Value() {
    if (!is_moved_) UseCuguest("a value is destroyed");
  }
  void Leak() { UseCuguest("a value is leaked"); }

 private:
  bool is_moved_ = false;
};

void PerContextValues() {
  const CUcontext context = Own();
  static auto& values = *new cuguest::PerContext<Value>;
  WithCallbacks([&] {
    const ContextRef ref = ContextRef::Borrow(context);
    const auto make = [](const ContextRef&) -> absl::StatusOr<Value> {
      UseCuguest("a value is made");
      return Value();
    };
    CHECK(values.GetOrMake(ref, make).ok());
    CHECK(values.GetOrMake(ref, make).ok());
    CHECK(values.Find(ref));
    values.Forget(ref);
    CHECK(values.GetOrMake(ref, make).ok());
    values.DropDead();
    values.ForgetDestroyed(ref);
    CHECK(values.GetOrMake(ref, make).ok());
    CHECK(values.ForgetAll() == 1);
  });
}

void HostScopes() {
  const CUcontext context = Own();
  const CUcontext hosts = Own();
  WithCallbacks([&] {
    const ContextGuard host(hosts);
    const ContextGuard outer(ContextRef::Borrow(context));
    const cuguest::NoContextGuard none;
    const ContextGuard inner(context);
    const cuguest::HostScope scope(inner);
    CHECK(scope.ok());
  });
}

void Scopes() {
  const ContextRef context = ContextRef::Borrow(Own());
  const ContextRef other = ContextRef::Borrow(Own());
  WithCallbacks([&] {
    cuguest::ContextScope home;
    CHECK(home.Enter(context, cuguest::GuardMode::kAlwaysPush) == CUDA_SUCCESS);
    CHECK(home.Reassert() == CUDA_SUCCESS);
    CHECK(home.MoveTo(other) == CUDA_SUCCESS);
    CHECK(home.Leave() == CUDA_SUCCESS);
  });
}

void Captures() {
  const ContextRef context = ContextRef::Borrow(Own());
  const absl::StatusOr<cuguest::Stream> stream = cuguest::Stream::Create(context);
  CHECK(stream.ok());
  WithCallbacks([&] {
    cuguest::CaptureModeGuard relaxed;
    CHECK(relaxed.ok());
    CHECK(cuguest::CaptureStatusOf(stream->get()) == CU_STREAM_CAPTURE_STATUS_NONE);
    CHECK(cuguest::HousekeepingIsSafe(stream->get()));
    CHECK(relaxed.Reassert() == CUDA_SUCCESS);
    CHECK(relaxed.Leave() == CUDA_SUCCESS);
  });
}

void Graphs() {
  const ContextRef context = ContextRef::Borrow(Own());
  const absl::StatusOr<cuguest::Stream> stream = cuguest::Stream::Create(context);
  CHECK(stream.ok());
  WithCallbacks([&] {
    absl::StatusOr<cuguest::CaptureScope> capture = cuguest::CaptureScope::Begin(stream->ref());
    CHECK(capture.ok());
    const absl::StatusOr<cuguest::DeviceView<int>> memory = capture->Allocate<int>(16);
    CHECK(memory.ok() && capture->Free(*memory).ok());
    const cuguest::CaptureScope empty = *std::move(capture);
    absl::StatusOr<cuguest::Graph> graph = cuguest::Graph::Create(context);
    CHECK(graph.ok() && graph->AddContext(context).ok());
    CHECK(!graph->AddKernel(cuguest::Kernel(), {}, {}).ok());
    absl::StatusOr<cuguest::ExecutableGraph> ready = graph->Instantiate();
    CHECK(ready.ok() && !ready->SetKernel(nullptr, cuguest::Kernel(), {}).ok());
    const absl::StatusOr<cuguest::Stream> another = cuguest::Stream::Create(context);
    CHECK(another.ok() && ready->Launch(another->ref()).ok());
    CHECK(cuguest::CaptureScope::Begin(another->ref())->End().ok());
    CHECK(ready->Release().ok() && graph->Release().ok());
  });
}

// A callee that leaves a context behind.
void CauseIncident(CUcontext context, CUcontext callees) {
  const ContextGuard guard(context);
  CHECK(guard.ok());
  CHECK((*Driver::Get())->CtxPushCurrent(callees) == CUDA_SUCCESS);
}

void Incidents() {
  const CUcontext context = Own();
  const CUcontext callees = Own();
  WithCallbacks([&] {
    static std::atomic<int> s_calls{0};
    static std::optional<cuguest::IncidentListener> s_other;
    s_other.emplace([](const cuguest::Incident&, void*) { ++s_calls; });
    const cuguest::IncidentListener listener([](const cuguest::Incident&, void*) {
      ++s_calls;
      UseCuguest("a listener is called");
      s_other.reset();
    });
    CauseIncident(context, callees);
    CHECK(s_calls >= 2);
    CHECK(cuguest::IncidentCount() >= 1);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const auto on = cuguest_test::On::kSimulation;
  return cuguest_test::RunScenarios(argc, argv,
                                    {
                                        {"first_use", &FirstUse, {}, 0, on},
                                        {"drivers", &Drivers, {}, 0, on},
                                        {"driver_logs", &DriverLogs, {}, 0, on},
                                        {"an_adopted_driver", &AnAdoptedDriver, {}, 0, on},
                                        {"code_images", &CodeImages, {}, 0, on},
                                        {"guards", &Guards, {}, 0, on},
                                        {"devices", &Devices, {}, 0, on},
                                        {"primary_contexts", &PrimaryContexts, {}, 0, on},
                                        {"acquires", &Acquires, {}, 0, on},
                                        {"shared_contexts", &SharedContexts, {}, 0, on},
                                        {"green_contexts", &GreenContexts, {}, 0, on},
                                        {"per_context_values", &PerContextValues, {}, 0, on},
                                        {"host_scopes", &HostScopes, {}, 0, on},
                                        {"residencies", &Scopes, {}, 0, on},
                                        {"captures", &Captures, {}, 0, on},
                                        {"graphs", &Graphs, {}, 0, on},
                                        {"incidents", &Incidents, {}, 0, on},
                                    });
}

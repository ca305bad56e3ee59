// SPDX-License-Identifier: Apache-2.0
//
// No lock of cuguest's is held across a driver call: in each call that an operation makes, a tool's
// callback uses cuguest, on the same thread and on another one that is waited for. Each operation
// is a process of its own; where a lock is held, it hangs, and SIGALRM ends it.

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

#include "cuguest/acquire.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/copy.h"
#include "cuguest/device_buffer.h"
#include "cuguest/driver.h"
#include "cuguest/memory.h"
#include "cuguest/module.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/per_context.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/stream.h"
#include "cuguest/testing/sim.h"
#include "test/support/scenario.h"

namespace {

using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::Driver;
using cuguest::SharedContext;
using cuguest::testing::Sim;

constexpr unsigned kSeconds = 15;

// What the callback uses; a context that no operation destroys.
CUcontext g_bystander = nullptr;
std::atomic<int> g_callbacks{0};

void UseCuguest() {
  CHECK(Driver::Get().ok());
  const ContextGuard guard(g_bystander);
  const absl::StatusOr<SharedContext> shared = SharedContext::Attach(g_bystander);
  CHECK(shared.ok());
}

thread_local bool t_is_helper = false;

void Callback(const char*) {
  if (t_is_helper) return;
  ++g_callbacks;
  UseCuguest();
  std::thread([] {
    t_is_helper = true;
    UseCuguest();
  }).join();
}

// Runs `operation` with the callback in each of its calls.
template <typename Operation>
void WithCallbacks(const Operation& operation) {
  alarm(kSeconds);
  g_bystander = cuguest_test::MakeContext();
  Sim::OnEveryCall(&Callback);
  operation();
  Sim::OnEveryCall(nullptr);
  CHECK(g_callbacks > 0);
  std::printf("%d callbacks\n", g_callbacks.load());
}

CUcontext Own() { return cuguest_test::MakeContext(); }

void FirstUse() {
  alarm(kSeconds);
  CHECK(Sim::IsActive());
  // Nothing of cuguest has been used yet, so that the callback makes a first use inside another.
  Sim::OnEveryCall([](const char*) {
    ++g_callbacks;
    CHECK(Driver::Get().ok());
    std::thread([] { CHECK(Driver::Get().ok()); }).join();
  });
  CHECK(Driver::GetInitialized().ok());
  CHECK(g_callbacks > 0);
}

void Guards() {
  const CUcontext context = Own();
  WithCallbacks([&] {
    const ContextGuard guard(context);
    CHECK(guard.ok());
    const ContextGuard verified(ContextRef::Borrow(context));
    CHECK(verified.ok());
    const cuguest::NoContextGuard none;
    CHECK(none.ok());
  });
}

void Devices() {
  WithCallbacks([] {
    CHECK(Device::Count().ok() && Device::Borrow(0).Name().ok() &&
          Device::Borrow(0).GetUuid().ok());
  });
}

void PrimaryContexts() {
  WithCallbacks([] {
    absl::StatusOr<cuguest::PrimaryContext> primary =
        cuguest::PrimaryContext::Retain(Device::Borrow(0));
    CHECK(primary.ok());
  });
}

void Acquires() {
  const CUcontext context = Own();
  WithCallbacks([&] {
    CHECK(cuguest::AcquireOn(Device::Borrow(0), cuguest::IfInactive::kCreate).ok());
    const ContextGuard guard(context);
    CHECK(cuguest::AcquireCurrent(Device::Borrow(0)).ok());
  });
}

void SharedContexts() {
  const CUcontext context = Own();
  WithCallbacks([&] {
    const absl::StatusOr<SharedContext> attached = SharedContext::Attach(context);
    CHECK(attached.ok());
    const absl::StatusOr<SharedContext> created = SharedContext::Create(Device::Borrow(0));
    CHECK(created.ok());  // and is destroyed here
  });
}

void Streams() {
  const CUcontext context = Own();
  WithCallbacks([&] {
    const ContextRef ref = ContextRef::Borrow(context);
    absl::StatusOr<cuguest::Stream> stream = cuguest::Stream::Create(ref);
    CHECK(stream.ok());
    CHECK(cuguest::Event::Create(ref).ok());
    CHECK(cuguest::StreamRef::Borrow(stream->get()).ok());
    CHECK(stream->ref().Synchronize().ok());
  });
}

void Memory() {
  const CUcontext context = Own();
  WithCallbacks([&] {
    const ContextRef ref = ContextRef::Borrow(context);
    absl::StatusOr<cuguest::DeviceBuffer<int>> buffer =
        cuguest::DeviceBuffer<int>::Allocate(ref, 16);
    CHECK(buffer.ok());
    const std::vector<int> values(16, 7);
    CHECK(cuguest::Copy(buffer->view(), cuguest::HostSpan<const int>(values)).ok());
    CHECK(cuguest::Describe(buffer->get()).ok());
    CHECK(buffer->Free().ok());
  });
}

void PerContextValues() {
  const CUcontext context = Own();
  static auto& values = *new cuguest::PerContext<int>;
  WithCallbacks([&] {
    const ContextRef ref = ContextRef::Borrow(context);
    const auto make = [](const ContextRef&) -> absl::StatusOr<int> {
      CHECK(Driver::Get().ok());
      return 7;
    };
    CHECK(values.GetOrMake(ref, make).ok());
    CHECK(values.GetOrMake(ref, make).ok());
    values.Forget(ref);
    values.DropDead();
  });
}

constexpr char kPtx[] = R"(
.version 6.0
.target sm_50
.address_size 64
.visible .entry nothing() { ret; }
)";

void Modules() {
  const CUcontext context = Own();
  static absl::StatusOr<cuguest::CodeImage> image =
      cuguest::CodeImage::FromPtx(kPtx, "nothing.ptx");
  CHECK(image.ok());
  WithCallbacks([&] {
    const ContextRef ref = ContextRef::Borrow(context);
    absl::StatusOr<cuguest::Module> module = cuguest::Module::LoadIn(ref, *image);
    CHECK(module.ok());
    absl::StatusOr<cuguest::Kernel> kernel = module->GetKernel("nothing");
    CHECK(kernel.ok());
    CHECK(kernel->Attributes(ref).ok());
  });
}

}  // namespace

int main(int argc, char** argv) {
  const auto on = cuguest_test::On::kSimulation;
  return cuguest_test::RunScenarios(argc, argv,
                                    {
                                        {"first_use", &FirstUse, {}, 0, on},
                                        {"guards", &Guards, {}, 0, on},
                                        {"devices", &Devices, {}, 0, on},
                                        {"primary_contexts", &PrimaryContexts, {}, 0, on},
                                        {"acquires", &Acquires, {}, 0, on},
                                        {"shared_contexts", &SharedContexts, {}, 0, on},
                                        {"streams", &Streams, {}, 0, on},
                                        {"memory", &Memory, {}, 0, on},
                                        {"per_context_values", &PerContextValues, {}, 0, on},
                                        {"modules", &Modules, {}, 0, on},
                                    });
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Guards, and what they protect, below CUDA 12.0, where contexts have no ids: what was built from
// a ContextRef whose context is destroyed or reset enters nothing, since the driver accepts the
// handle and corrupts its heap. (The simulation aborts then.)

#include <memory>
#include <optional>

#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/context_scope.h"
#include "cuguest/device.h"
#include "cuguest/driver.h"
#include "cuguest/host_scope.h"
#include "cuguest/incident.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/per_context.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "test/guard/guard_kinds.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

namespace {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::ContextScope;
using cuguest::Device;
using cuguest::DeviceBuffer;
using cuguest::Driver;
using cuguest::HostScope;
using cuguest::Incident;
using cuguest::IncidentCount;
using cuguest::PerContext;
using cuguest::PrimaryContext;

// A context that is current on no thread.
CUcontext MakeContext() {
  CUcontext context = nullptr;
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  CHECK((*Driver::Get())->CtxCreate(&context, 0, 0) == CUDA_SUCCESS);
  CHECK(RAW(cuCtxPopCurrent)(nullptr) == CUDA_SUCCESS);
  return context;
}
void Destroy(CUcontext context) { CHECK(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS); }
CUcontext Current() {
  CUcontext current = nullptr;
  CHECK(RAW(cuCtxGetCurrent)(&current) == CUDA_SUCCESS);
  return current;
}

// The host's context, current.
CUcontext Begin() {
  Sim::SetDriverVersion(11080);
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  CHECK(Driver::Get().ok());
  CHECK((*Driver::Get())->CtxGetId == nullptr);
  const CUcontext host = MakeContext();
  CHECK(RAW(cuCtxPushCurrent)(host) == CUDA_SUCCESS);
  return host;
}

void CheckRefused(const ContextRef& over, CUcontext host) {
  CHECK(over.Check() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  guard_kinds::EachKind([&](auto kind) {
    const guard_kinds::GuardOf<decltype(kind)> guard(over);
    CHECK(guard.result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK(Current() == host);
  });
  ContextScope home;
  CHECK(home.Enter(over) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(Current() == host);
}

void ADestroyedContext() {
  const CUcontext host = Begin();
  const CUcontext context = MakeContext();
  const ContextRef ref = ContextRef::Borrow(context);
  { CHECK(ContextGuard(ref).ok()); }
  Destroy(context);
  CheckRefused(ref, host);
}

void AResetPrimaryContext() {
  const CUcontext host = Begin();
  const PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  const ContextRef ref = primary.context();
  CHECK(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
  CheckRefused(ref, host);
  // While it is current, too.
  CHECK(RAW(cuCtxPushCurrent)(ref.get()) == CUDA_SUCCESS);
  CHECK(ContextGuard(ref).result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(RAW(cuCtxPopCurrent)(nullptr) == CUDA_SUCCESS);
}

void AGuardInside() {
  const CUcontext host = Begin();
  guard_kinds::EachKind([&](auto kind) {
    using Guard = guard_kinds::GuardOf<decltype(kind)>;
    const CUcontext context = MakeContext();
    {
      Guard guard(ContextRef::Borrow(context));
      CHECK(guard.ok());
      {
        const HostScope scope = guard_kinds::HostOf(guard);
        CHECK(Current() == host);
        Destroy(context);
      }
      CHECK(guard.result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
      CHECK(Current() == host);
    }
    const CUcontext other = MakeContext();
    {
      Guard guard(ContextRef::Borrow(other));
      Destroy(other);
      CHECK(guard.Reassert() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    }
    CHECK(Current() == host);
  });
  CHECK(IncidentCount() == IncidentCount(Incident::Kind::kDestroyed));
}

void ABufferThatOutlivesItsContext() {
  const CUcontext host = Begin();
  const CUcontext context = MakeContext();
  {
    const auto buffer = DeviceBuffer<int>::Allocate(ContextRef::Borrow(context), 100);
    CHECK(buffer.ok());
    Destroy(context);
  }
  CHECK(Current() == host);
}

void ACacheThatOutlivesItsContext() {
  const CUcontext host = Begin();
  const CUcontext context = MakeContext();
  {
    PerContext<int> cache;
    const auto make = [](const ContextRef&) -> absl::StatusOr<int> { return 1; };
    CHECK(cache.GetOrMake(context, make).ok());
    Destroy(context);
  }
  CHECK(Current() == host);
}

}  // namespace

int main(int argc, char** argv) {
  using cuguest_test::On;
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"a_destroyed_context", &ADestroyedContext, {}, 0, On::kSimulation},
          {"a_reset_primary_context", &AResetPrimaryContext, {}, 0, On::kSimulation},
          {"a_guard_inside", &AGuardInside, {}, 0, On::kSimulation},
          {"a_buffer_that_outlives_its_context",
           &ABufferThatOutlivesItsContext,
           {},
           0,
           On::kSimulation},
          {"a_cache_that_outlives_its_context",
           &ACacheThatOutlivesItsContext,
           {},
           0,
           On::kSimulation},
      });
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// After a sticky error (a kernel that wrote where it must not) every context of the
// process on that device is lost. The caller's stack must be restored all the same.

#include <cstdio>
#include <string>

#include "cudasim/sim.h"
#include "cuguest/acquire.h"
#include "cuguest/context_guard.h"
#include "cuguest/device.h"
#include "cuguest/driver.h"
#include "cuguest/objects/driver.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "cuguest/testing/stack_probe.h"
#include "kernels/fault.h"
#include "test/guard/guard_kinds.h"
#include "test/support/advised.h"
#include "test/support/scenario.h"

namespace {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::Device;
using cuguest::Driver;
using cuguest::ObjectDriver;
using cuguest::PrimaryContext;
using cuguest::SharedContext;
using cuguest::testing::StackProbe;
using cuguest_test::MakeContext;

const ObjectDriver& TheDriver() { return **ObjectDriver::GetInitialized(); }

// Runs a kernel in the current context that writes through a null pointer.
CUresult LoseTheDevice() {
  Sim::RegisterKernel("fault",
                      [](const cudasim::SimLaunch&) { return CUDA_ERROR_ILLEGAL_ADDRESS; });
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CHECK(TheDriver().ModuleLoadDataEx(&module, cuguest_kernels::fault_ptx, 0, nullptr, nullptr) ==
        CUDA_SUCCESS);
  CHECK(TheDriver().ModuleGetFunction(&function, module, "fault") == CUDA_SUCCESS);
  CHECK(TheDriver().LaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) ==
        CUDA_SUCCESS);
  return TheDriver().CtxSynchronize();
}

void GuardsStillRestore() {
  const CUcontext callers = MakeContext();
  const CUcontext ours = MakeContext();
  CHECK(TheDriver().CtxPushCurrent(callers) == CUDA_SUCCESS);
  const StackProbe before = StackProbe::Take();
  {
    const ContextGuard guard(ours);
    const CUresult lost = LoseTheDevice();
    CHECK(lost == CUDA_ERROR_ILLEGAL_ADDRESS);
    // By its handle a context can still be identified, as the current one it cannot.
    unsigned long long id = 0;
    CHECK(TheDriver().CtxGetId(ours, &id) == CUDA_SUCCESS);
    CHECK(TheDriver().CtxGetId(nullptr, &id) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(cuguest::IsSticky(lost));
    // A callee that notices nothing and leaves a push behind on top of it all.
    CHECK(TheDriver().CtxPushCurrent(callers) == CUDA_SUCCESS);
  }
  std::printf("%s", before.Difference(StackProbe::Take()).c_str());
  CHECK(before.Difference(StackProbe::Take()).empty());
  CHECK(cuguest::IncidentCount(cuguest::Incident::Kind::kLeakedPush) == 1);
  CHECK(cuguest::IncidentCount() == 1);
  guard_kinds::EachKind([&](auto kind) {
    const guard_kinds::GuardOf<decltype(kind)> again(ours);
    CHECK(again.ok());
    CUdeviceptr pointer = 0;
    CHECK(TheDriver().MemAlloc(&pointer, 64) == CUDA_ERROR_ILLEGAL_ADDRESS);
  });
  CHECK(before.Difference(StackProbe::Take()).empty());
  const absl::Status status = ToStatus(PrimaryContext::Retain(Device::Borrow(0)));
  CHECK(status.code() == absl::StatusCode::kDataLoss);
  CHECK(cuguest::CodeOf(status) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(status.message().find(Advised("the device is lost, end the process")) !=
        absl::string_view::npos);
  CHECK(cuguest_test::RunSelf({"the_next_process_works"}).code == 0);
  CHECK(TheDriver().CtxDestroy(ours) == CUDA_SUCCESS);
}

void TheNextProcessWorks() {
  const ContextGuard guard(MakeContext());
  CUdeviceptr pointer = 0;
  CHECK(TheDriver().MemAlloc(&pointer, 64) == CUDA_SUCCESS);
}

// Counting goes on, and the last holder can destroy; what needs the device says why not.
void ReferencesCanBeReleased() {
  SharedContext shared = SharedContext::Create(Device::Borrow(0));
  SharedContext foreign = SharedContext::Attach(MakeContext());
  {
    const ContextGuard guard(shared.get());
    CHECK(LoseTheDevice() == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  SharedContext again = SharedContext::Attach(shared.get());
  CHECK(again.use_count() == 2);
  CHECK(ToStatus(SharedContext::Create(Device::Borrow(0))).code() == absl::StatusCode::kDataLoss);
  {
    const ContextGuard guard(shared.get());
    CHECK(cuguest::AcquireCurrent(Device::Borrow(0)).ok());
  }
  CHECK(shared.Release().ok());
  CHECK(again.Release().ok());
  CHECK(foreign.Release().ok());
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(argc, argv,
                                    {{"guards_still_restore", &GuardsStillRestore},
                                     {"the_next_process_works", &TheNextProcessWorks},
                                     {"references_can_be_released", &ReferencesCanBeReleased}});
}

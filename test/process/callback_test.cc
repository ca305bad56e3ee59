// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CUDA must not be called from a stream callback or host function: the driver answers
// CUDA_ERROR_NOT_PERMITTED, and a guard says why.

#include <string>

#include "cuguest/context_ref.h"
#include "cuguest/driver.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/objects/driver.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "cuguest/testing/stack_probe.h"
#include "test/guard/guard_kinds.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

namespace {

using cuguest::Driver;
using cuguest::ObjectDriver;

struct Seen {
  CUcontext context;
  CUresult guard[3];
  CUresult none;
  CUresult ref;
  bool said_why = false;
  bool primary_refused = false;
};

void CUDA_CB InHostFunction(void* data) {
  auto* seen = static_cast<Seen*>(data);
  int count = 0;
  guard_kinds::EachKind([&](auto kind) {
    const guard_kinds::GuardOf<decltype(kind)> guard(seen->context);
    seen->guard[count++] = guard.result();
    seen->said_why =
        std::string(ToStatus(guard).message())
            .find("called from inside a stream callback or host function") != std::string::npos;
  });
  seen->none = cuguest::NoContextGuard().result();
  seen->ref = cuguest::ContextRef::Current().result();
  const auto primary = cuguest::PrimaryContext::Retain(cuguest::Device::Borrow(0));
  seen->primary_refused = cuguest::CodeOf(cuguest::ToStatus(primary)) == CUDA_ERROR_NOT_PERMITTED;
}

void GuardsRefuseInACallback() {
  const ObjectDriver& driver = **ObjectDriver::GetInitialized();
  Seen seen = {};
  CHECK(driver.CtxCreate(&seen.context, 0, 0) == CUDA_SUCCESS);
  const auto before = cuguest::testing::StackProbe::Take();
  CUstream stream = nullptr;
  CHECK(driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  CHECK(RAW(cuLaunchHostFunc)(stream, &InHostFunction, &seen) == CUDA_SUCCESS);
  CHECK(driver.StreamSynchronize(stream) == CUDA_SUCCESS);
  for (const CUresult result : seen.guard) CHECK(result == CUDA_ERROR_NOT_PERMITTED);
  CHECK(seen.said_why);
  CHECK(seen.none == CUDA_ERROR_NOT_PERMITTED);
  CHECK(seen.ref == CUDA_ERROR_NOT_PERMITTED);
  CHECK(seen.primary_refused);
  CHECK(before.Difference(cuguest::testing::StackProbe::Take()).empty());
  CHECK(cuguest::IncidentCount() == 0);
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(argc, argv,
                                    {{"guards_refuse_in_a_callback", &GuardsRefuseInACallback}});
}

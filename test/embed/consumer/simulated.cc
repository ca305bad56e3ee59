// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An embedder's test: linked with cuguest-testing, run on the installed simulation, and audited by
// the installed collector. With an argument: where there is none.

#include "cudasim/sim.h"
#include "cuguest/driver.h"
#include "cuguest/testing/audit.h"

int main(int argc, char**) {
  if (!cudasim::Sim::IsActive()) return 1;
  const auto driver = cuguest::Driver::GetInitialized();
  if (!driver.ok()) return 2;
  CUcontext context = nullptr;
  (*driver)->DevicePrimaryCtxRetain(&context, 0);
  const auto findings = cuguest::testing::Audit([&] { (*driver)->CtxPushCurrent(context); });
  if (argc > 1) return absl::IsUnimplemented(findings.status()) ? 0 : 4;
  return findings.ok() && findings->size() == 1 && findings->front().kind == "leaked-push" ? 0 : 3;
}

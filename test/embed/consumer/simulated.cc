// SPDX-License-Identifier: Apache-2.0
//
// An embedder's test: linked with cuguest-testing, run on the installed simulation, and audited by
// the installed collector.

#include "cuguest/driver.h"
#include "cuguest/testing/audit.h"
#include "cuguest/testing/sim.h"

int main() {
  if (!cuguest::testing::Sim::IsActive()) return 1;
  const auto driver = cuguest::Driver::GetInitialized();
  if (!driver.ok()) return 2;
  CUcontext context = nullptr;
  (*driver)->DevicePrimaryCtxRetain(&context, 0);
  const auto findings = cuguest::testing::Audit([&] { (*driver)->CtxPushCurrent(context); });
  return findings.ok() && findings->size() == 1 && findings->front().kind == "leaked-push" ? 0 : 3;
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is called through the process's driver, where nothing public shows it.

#include "lib/core/driver_access.h"

#include <cuda.h>

#include "cuguest/internal/stack_calls.h"
#include "test/support/scenario.h"

namespace {

using cuguest::DriverTable;
using cuguest::internal::CallFirstThrough;
using cuguest::internal::CallThrough;
using cuguest::internal::g_driver;
using cuguest::internal::g_stack_calls;

// The process's, as it was read.
const DriverTable& First() {
  cuguest::internal::DriverOutcome refused;
  const auto* const outcome = cuguest::internal::ProcessDriver(&refused);
  CHECK(outcome != nullptr && outcome->ok());
  return outcome->table;
}

// One that hands calls on, as that of a DriverLog.
DriverTable HandingOn() {
  DriverTable table = First();
  table.CtxGetCurrent = [](CUcontext* current) { return First().CtxGetCurrent(current); };
  table.CtxPushCurrent = [](CUcontext context) { return First().CtxPushCurrent(context); };
  table.CtxPopCurrent = [](CUcontext* popped) { return First().CtxPopCurrent(popped); };
  table.CtxGetId = [](CUcontext context, unsigned long long* id) {
    return First().CtxGetId(context, id);
  };
  return table;
}

bool IsCalled(const DriverTable& table) {
  return g_driver.load() == &table && g_stack_calls.get_current == table.CtxGetCurrent &&
         g_stack_calls.push == table.CtxPushCurrent && g_stack_calls.pop == table.CtxPopCurrent &&
         (table.CtxGetId == nullptr || g_stack_calls.get_id == table.CtxGetId);
}

// A thread may have read the process's driver before another one opened a DriverLog, and have it
// called afterwards.
void WhoComesLateReplacesNothing() {
  CHECK(IsCalled(First()));
  static const DriverTable s_handing_on = HandingOn();
  CallThrough(&s_handing_on);
  CallFirstThrough(&First());
  CHECK(IsCalled(s_handing_on));
  CallThrough(&First());
  CHECK(IsCalled(First()));
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(
      argc, argv, {{"who_comes_late_replaces_nothing", &WhoComesLateReplacesNothing, {}}});
}

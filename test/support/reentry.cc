// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/support/reentry.h"

#include <unistd.h>

#include <atomic>
#include <thread>

#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/driver.h"
#include "cuguest/incident_listener.h"
#include "cuguest/per_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "test/support/held_locks.h"
#include "test/support/scenario.h"

namespace cuguest_test {
namespace {

using cudasim::Sim;
using cuguest::ContextRef;

CUcontext g_bystander = nullptr;
std::atomic<int> g_count{0};
thread_local bool t_is_helper = false;

void OnThisThread() {
  CHECK(cuguest::Driver::Get().ok());
  const cuguest::ContextGuard guard(g_bystander);
  CHECK(guard.ok());
  CHECK(cuguest::SharedContext::Attach(g_bystander).ok());
  const cuguest::IncidentListener listener([](const cuguest::Incident&, void*) {});
  static auto& s_values = *new cuguest::PerContext<int>;
  CHECK(s_values
            .GetOrMake(ContextRef::Borrow(g_bystander),
                       [](const ContextRef&) -> absl::StatusOr<int> { return 7; })
            .ok());
}

void InCall(const char* entry) {
  if (t_is_helper) return;
  ++g_count;
  UseCuguest(entry);
}

}  // namespace

void UseCuguest(const char* during) {
  RequireNoLock(during);
  OnThisThread();
  std::thread([] {
    t_is_helper = true;
    OnThisThread();
  }).join();
}

Reentry::Reentry(CUcontext bystander, unsigned seconds) {
  g_bystander = bystander;
  alarm(seconds);
  Sim::OnEveryCall(&InCall);
}

Reentry::~Reentry() {
  Sim::OnEveryCall(nullptr);
  alarm(0);
}

int Reentry::Count() { return g_count; }

}  // namespace cuguest_test

// SPDX-License-Identifier: Apache-2.0

#include <mutex>
#include <utility>

#include "cuguest/driver.h"
#include "cuguest/internal/this_thread.h"
#include "cuguest/testing/sim.h"
#include "test/support/test.h"

namespace cuguest_test {
namespace {

using cuguest::Driver;

std::mutex g_mutex;
std::vector<cuguest::Incident> g_incidents;

void Record(const cuguest::Incident& incident) {
  const std::lock_guard<std::mutex> lock(g_mutex);
  g_incidents.push_back(incident);
}

void ForgetIncidents() { TakeIncidents(); }

void RefuseIncidents() {
  for (const cuguest::Incident& incident : TakeIncidents()) {
    BOOST_ERROR("unexpected incident: a callee " << Name(incident.kind) << ", "
                                                 << Name(incident.repair) << ", guard at "
                                                 << incident.file << ":" << incident.line);
  }
}

}  // namespace

const Driver& TheDriver() { return **Driver::Get(); }

void BeginCount() {
  cuguest::internal::t_this_thread.expects_current = false;
  cuguest::internal::t_this_thread.seen = {};
  cuguest::testing::Sim::ResetCalls();
}

std::vector<cuguest::Incident> TakeIncidents() {
  const std::lock_guard<std::mutex> lock(g_mutex);
  return std::exchange(g_incidents, {});
}

}  // namespace cuguest_test

int main(int argc, char** argv) {
  cuguest::SetIncidentHandler(&cuguest_test::Record);
  return cudasim_test::RunCases(argc, argv, &cuguest_test::ForgetIncidents,
                                &cuguest_test::RefuseIncidents);
}

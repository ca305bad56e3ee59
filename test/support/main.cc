// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <mutex>
#include <optional>
#include <utility>

#include "cudasim/sim.h"
#include "cuguest/incident_listener.h"
#include "cuguest/internal/this_thread.h"
#include "cuguest/objects/driver.h"
#include "test/support/test.h"

namespace cuguest_test {
namespace {

using cuguest::Driver;

std::mutex g_mutex;
std::vector<cuguest::Incident> g_incidents;

void Record(const cuguest::Incident& incident, void*) {
  const std::lock_guard<std::mutex> lock(g_mutex);
  g_incidents.push_back(incident);
}

std::optional<cuguest::IncidentListener> g_listener;
int g_unrecorded = 0;

void ForgetIncidents() { TakeIncidents(); }

void RefuseIncidents() {
  for (const cuguest::Incident& incident : TakeIncidents()) {
    BOOST_ERROR("unexpected incident: a callee " << Name(incident.kind) << ", "
                                                 << Name(incident.repair) << ", guard at "
                                                 << incident.file << ":" << incident.line);
  }
}

}  // namespace

const cuguest::ObjectDriver& TheDriver() { return **cuguest::ObjectDriver::Get(); }

void BeginCount() {
  static_cast<void>(TheDriver());  // whose first call asks the driver
  cuguest::internal::t_this_thread.seen = {};
  cudasim::Sim::ResetCalls();
}

Unrecorded::Unrecorded() {
  if (g_unrecorded++ == 0) g_listener.reset();
}

Unrecorded::~Unrecorded() {
  if (--g_unrecorded == 0) g_listener.emplace(&Record);
}

std::vector<cuguest::Incident> TakeIncidents() {
  const std::lock_guard<std::mutex> lock(g_mutex);
  return std::exchange(g_incidents, {});
}

}  // namespace cuguest_test

int main(int argc, char** argv) {
  cuguest_test::g_listener.emplace(&cuguest_test::Record);
  const int code = cudasim_test::RunCases(argc, argv, &cuguest_test::ForgetIncidents,
                                          &cuguest_test::RefuseIncidents);
  cuguest_test::g_listener.reset();
  return code;
}

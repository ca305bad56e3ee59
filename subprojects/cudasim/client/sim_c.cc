// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cudasim/sim_c.h"

#include <cstdio>
#include <new>
#include <string>

#include "cudasim/sim.h"
#include "cudasim/stack_probe.h"

using cudasim::Sim;
using cudasim::StackProbe;

struct cudasim_probe {
  StackProbe probe;
};

int cudasim_is_active(void) { return Sim::IsActive() ? 1 : 0; }

void cudasim_fail_call(const char* entry, unsigned nth, int code) {
  Sim::FailCall(entry, nth, static_cast<CUresult>(code));
}

void cudasim_reset(void) {
  Sim::ClearFaults();
  Sim::ResetCalls();
}

unsigned long long cudasim_calls(const char* entry) { return Sim::Calls(entry); }

unsigned long long cudasim_total_calls(void) { return Sim::TotalCalls(); }

void cudasim_set_device_count(int count) { Sim::SetDeviceCount(count); }

void cudasim_set_driver_version(int version) { Sim::SetDriverVersion(version); }

cudasim_probe* cudasim_probe_take(void) {
  return new (std::nothrow) cudasim_probe{StackProbe::Take()};
}

void cudasim_probe_free(cudasim_probe* probe) { delete probe; }

int cudasim_probe_differs(const cudasim_probe* before, char* text, size_t size) {
  const std::string difference = before != nullptr ? before->probe.Difference(StackProbe::Take())
                                                   : "there was no memory for a probe";
  if (size > 0) std::snprintf(text, size, "%s", difference.c_str());
  return difference.empty() ? 0 : 1;
}

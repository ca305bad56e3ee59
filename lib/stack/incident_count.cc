// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/incident.h"

#include "lib/stack/stack_repair.h"

CUGUEST_BEGIN_NAMESPACE

unsigned long long IncidentCount(Incident::Kind kind) noexcept {
  return internal::g_incidents[static_cast<int>(kind)].load(std::memory_order_relaxed);
}

unsigned long long IncidentCount() noexcept {
  unsigned long long sum = 0;
  for (const auto& count : internal::g_incidents) sum += count.load(std::memory_order_relaxed);
  return sum;
}

CUGUEST_END_NAMESPACE

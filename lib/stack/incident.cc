// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/incident.h"

#include <atomic>
#include <cstddef>
#include <cstring>

#include "cuguest/internal/report.h"
#include "lib/core/concurrency.h"
#include "lib/stack/stack_repair.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

// What is to be notified of it, if anything is.
auto CountIncident(Incident::Kind kind) {
  internal::g_incidents[static_cast<int>(kind)].fetch_add(1, std::memory_order_relaxed);
  return internal::g_call_listeners.load(std::memory_order_relaxed);
}

// Headers of the standard libraries (of GCC and LLVM: .../c++/...), and of CUDA's: a guard that
// one of these constructed took its default location from it.
bool IsStandardLibrary(const char* file) {
  if (file == nullptr) return false;
  return std::strstr(file, "/c++/") != nullptr || std::strstr(file, "/cuda/std/") != nullptr;
}

void Tell(void (*call_listeners)(const Incident&), Incident incident) {
  if (IsStandardLibrary(incident.file)) {
    incident.file = "(a guard that the standard library constructed without a Location)";
    incident.line = 0;
  }
  incident.thread = static_cast<unsigned long>(internal::KernelThread());
  call_listeners(incident);
}

}  // namespace

namespace internal {

Atomic<void (*)(const Incident&)> g_call_listeners{nullptr};
std::atomic<unsigned long long> g_incidents[Incident::kKinds] = {};

CUresult Report(const Finding& finding, CUcontext expected, Location where) {
  const auto& [happened, kind, repair, result, found] = finding;
  if (!happened || result == CUDA_ERROR_DEINITIALIZED) return CUDA_SUCCESS;
  if (const auto call_listeners = CountIncident(kind)) {
    CUcontext current = nullptr;
    static_cast<void>(stack::Current(&current));
    Tell(call_listeners,
         {kind, repair, result, expected, found, current, where.file, where.line, 0});
  }
  return finding.Code();
}

void ReportIncident(Incident::Kind kind, Incident::Repair repair, CUresult result,
                    Location where) noexcept {
  const auto call_listeners = CountIncident(kind);
  if (call_listeners == nullptr) return;
  Tell(call_listeners,
       {kind, repair, result, nullptr, nullptr, nullptr, where.file, where.line, 0});
}

}  // namespace internal

CUGUEST_END_NAMESPACE

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/incident.h"

#include <atomic>
#include <cstddef>
#include <cstring>

#include <iterator>
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

unsigned long long IncidentCount(Incident::Kind kind) noexcept {
  return internal::g_incidents[static_cast<int>(kind)].load(std::memory_order_relaxed);
}

unsigned long long IncidentCount() noexcept {
  unsigned long long sum = 0;
  for (const auto& count : internal::g_incidents) sum += count.load(std::memory_order_relaxed);
  return sum;
}

const char* Name(Incident::Kind kind) noexcept {
  constexpr const char* kNames[] = {
      /* kReplaced */ "replaced the current context, or popped it",
      /* kLeakedPush */ "left a push behind",
      /* kExtraPop */ "popped an entry that was not its own",
      /* kDestroyed */ "destroyed a context that was in use",
      /* kFailed */ "left the driver refusing to restore",
      /* kCaptureMode */ "left another stream-capture mode behind",
      /* kLastError */ "left another last error of the runtime behind",
      /* kElsewhere */ "ended a guard on another thread than its own",
      /* kUnasked */ "never asked a guard that had failed",
      /* kOutOfTurn */ "ended a guard before another one inside it",
      /* kOwed */ "ended an object where the driver takes nothing back",
  };
  static_assert(std::size(kNames) == Incident::kKinds);
  const auto index = static_cast<std::size_t>(kind);
  return index < std::size(kNames) ? kNames[index] : "did something unknown";
}

const char* Name(Incident::Repair repair) noexcept {
  if (repair == Incident::Repair::kRepaired) return "repaired";
  return repair == Incident::Repair::kInferred ? "repaired by inference" : "not repaired";
}

CUGUEST_END_NAMESPACE

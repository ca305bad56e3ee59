// SPDX-License-Identifier: Apache-2.0

#include "cuguest/incident.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "cuguest/internal/report.h"
#include "lib/context/incident_listeners.h"
#include "lib/context/stack_repair.h"
#include "lib/core/driver_access.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

std::atomic<IncidentHandler> g_handler{nullptr};
std::atomic<unsigned long long> g_counts[kIncidentKinds];

// Whether anybody is to be notified of it.
bool CountIncident(IncidentKind kind) {
  g_counts[static_cast<int>(kind)].fetch_add(1, std::memory_order_relaxed);
  return g_handler.load(std::memory_order_acquire) != nullptr || internal::HasListeners();
}

// Headers of the standard libraries (of GCC and LLVM: .../c++/...), and of CUDA's: a guard that
// one of these constructed took its default location from it.
bool IsStandardLibrary(const char* file) {
  if (file == nullptr) return false;
  return std::strstr(file, "/c++/") != nullptr || std::strstr(file, "/cuda/std/") != nullptr;
}

void Tell(Incident incident) {
  if (IsStandardLibrary(incident.file)) {
    incident.file = "(a guard that the standard library constructed without a Location)";
    incident.line = 0;
  }
  incident.thread = static_cast<unsigned long>(syscall(SYS_gettid));
  const IncidentHandler handler = g_handler.load(std::memory_order_acquire);
  if (handler != nullptr) handler(incident);
  internal::CallListeners(incident);
}

}  // namespace

namespace internal {

CUresult Report(const Finding& finding, CUcontext expected, Location where) {
  const auto& [happened, kind, repair, result, found] = finding;
  if (!happened || result == CUDA_ERROR_DEINITIALIZED) return CUDA_SUCCESS;
  if (CountIncident(kind)) {
    CUcontext current = nullptr;
    static_cast<void>(stack::Current(&current));
    Tell({kind, repair, result, expected, found, current, where.file, where.line, 0});
  }
  if (repair != Repair::kUnrepaired) return CUDA_SUCCESS;
  return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_CONTEXT;
}

void ReportIncident(IncidentKind kind, Repair repair, CUresult result, const char* file,
                    int line) noexcept {
  if (!CountIncident(kind)) return;
  Tell({kind, repair, result, nullptr, nullptr, nullptr, file, line, 0});
}

}  // namespace internal

IncidentHandler SetIncidentHandler(IncidentHandler handler) noexcept {
  return g_handler.exchange(handler, std::memory_order_acq_rel);
}

unsigned long long IncidentCount(IncidentKind kind) noexcept {
  return g_counts[static_cast<int>(kind)].load(std::memory_order_relaxed);
}

unsigned long long IncidentCount() noexcept {
  unsigned long long sum = 0;
  for (const auto& count : g_counts) sum += count.load(std::memory_order_relaxed);
  return sum;
}

const char* Name(IncidentKind kind) noexcept {
  constexpr const char* kNames[] = {
      /* kReplaced */ "replaced the current context",
      /* kLeakedPush */ "left a push behind",
      /* kExtraPop */ "popped an entry that was not its own",
      /* kDestroyed */ "destroyed a context that was in use",
      /* kFailed */ "left the driver refusing to restore",
      /* kCaptureMode */ "left another stream-capture mode behind",
      /* kLastError */ "left another last error of the runtime behind",
      /* kElsewhere */ "ended a guard on another thread than its own",
      /* kUnasked */ "never asked a guard that had failed",
  };
  static_assert(std::size(kNames) == kIncidentKinds);
  const auto index = static_cast<std::size_t>(kind);
  return index < std::size(kNames) ? kNames[index] : "did something unknown";
}

const char* Name(Repair repair) noexcept {
  if (repair == Repair::kRepaired) return "repaired";
  return repair == Repair::kInferred ? "repaired by inference" : "not repaired";
}

CUGUEST_END_NAMESPACE

// SPDX-License-Identifier: Apache-2.0

#include "cuguest/incident.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "cuguest/internal/report.h"
#include "lib/context/incident_listeners.h"
#include "lib/context/stack_repair.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

std::atomic<IncidentHandler> g_handler{nullptr};
std::atomic<unsigned long long> g_counts[kIncidentKinds];

// Whether anybody is to be notified of it.
bool Count(IncidentKind kind) {
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

void Report(const Finding& finding, const ThreadStack& stack, CUcontext expected, const char* file,
            int line) {
  if (!Count(finding.kind)) return;
  CUcontext current = nullptr;
  static_cast<void>(stack.Current(&current));
  Tell({finding.kind, finding.repair, finding.result, expected, finding.found, current, file, line,
        0});
}

void ReportIncident(IncidentKind kind, Repair repair, CUresult result, const char* file,
                    int line) noexcept {
  if (!Count(kind)) return;
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
  switch (kind) {
    case IncidentKind::kReplaced:
      return "replaced the current context";
    case IncidentKind::kLeakedPush:
      return "left a push behind";
    case IncidentKind::kExtraPop:
      return "popped an entry that was not its own";
    case IncidentKind::kDestroyed:
      return "destroyed a context that was in use";
    case IncidentKind::kFailed:
      return "left the driver refusing to restore";
    case IncidentKind::kCaptureMode:
      return "left another stream-capture mode behind";
    case IncidentKind::kLastError:
      return "left another last error of the runtime behind";
    case IncidentKind::kElsewhere:
      return "ended a guard on another thread than its own";
    case IncidentKind::kUnasked:
      return "never asked a guard that had failed";
  }
  return "did something unknown";
}

const char* Name(Repair repair) noexcept {
  switch (repair) {
    case Repair::kRepaired:
      return "repaired";
    case Repair::kInferred:
      return "repaired by inference";
    case Repair::kUnrepaired:
      return "not repaired";
  }
  return "in an unknown state";
}

CUGUEST_END_NAMESPACE

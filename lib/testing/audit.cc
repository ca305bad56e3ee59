// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/testing/audit.h"

#include <stdlib.h>

#include <atomic>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "audit/analysis.h"
#include "audit/command/report.h"
#include "audit/command/report_builder.h"
#include "audit/command/suppressions.h"
#include "audit/event.h"
#include "audit/in_process/feed.h"
#include "audit/in_process/own_channel.h"
#include "audit/in_process/reading.h"
#include "cuguest/driver.h"
#include "subprojects/cudasim/include/cudasim/stack_probe.h"

CUGUEST_BEGIN_NAMESPACE
namespace testing {
namespace {

// Calls by which the collector and the analysis know the process's contexts. The stack is as it
// was, and is returned.
cudasim::StackProbe TellContexts(const Driver& driver) {
  int count = 0;
  static_cast<void>(driver.DeviceGetCount(&count));
  for (CUdevice device = 0; device < count; ++device) {
    unsigned flags = 0;
    int is_active = 0;
    CUcontext primary = nullptr;
    static_cast<void>(driver.DevicePrimaryCtxGetState(device, &flags, &is_active));
    if (is_active == 0 || driver.DevicePrimaryCtxRetain(&primary, device) != CUDA_SUCCESS) continue;
    if (driver.CtxPushCurrent(primary) == CUDA_SUCCESS) driver.CtxPopCurrent(&primary);
    driver.DevicePrimaryCtxRelease(device);
  }
  auto probe = cudasim::StackProbe::Take();
  // The caller of an empty stack calls, too.
  if (probe.stack().empty() && !probe.cut()) driver.CtxSetCurrent(nullptr);
  return probe;
}

[[gnu::noinline]] void CallAudited(absl::FunctionRef<void()> callable, audit::Feed* feed) {
  feed->BeginCallable(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
  callable();
  asm volatile("");  // no tail call, which would take the frame away
}

[[gnu::noinline]] bool Prepare(const Driver& driver, const audit::OwnChannel& channel,
                               std::uintptr_t outer, audit::Feed* feed) {
  const auto probe = TellContexts(driver);
  if (probe.stack().empty() && probe.cut()) return false;
  std::vector<int> devices;
  for (const auto& entry : probe.stack()) devices.push_back(entry.device);
  std::vector<audit::Event> events;
  channel.Drain([&](const audit::Event& event) { events.push_back(event); });
  feed->OnPreparation(events, devices, reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)),
                      outer);
  return feed->has_caller();
}

// Of the file that the environment names.
absl::Status ReadSuppressions(audit::Suppressions* suppressions) {
  const char* file = secure_getenv("CUGUEST_AUDIT_SUPPRESSIONS");
  if (file == nullptr || *file == '\0') return absl::OkStatus();
  const std::string error = suppressions->AddFile(file);
  if (error.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("CUGUEST_AUDIT_SUPPRESSIONS: " + error);
}

absl::Status ToStatus(const audit::Resumed& resumed) {
  using Outcome = audit::Resumed::Outcome;
  switch (resumed.outcome) {
    case Outcome::kOk:
      return absl::OkStatus();
    case Outcome::kNoCollector:
      return absl::NotFoundError(resumed.why);
    case Outcome::kAuditedAlready:
      return absl::FailedPreconditionError(resumed.why);
    case Outcome::kNoSource:
      return absl::UnavailableError(resumed.why);
    case Outcome::kNoMemory:
      break;
  }
  return absl::InternalError(resumed.why);
}

std::vector<AuditFinding> Name(const audit::Analysis& analysis, audit::Suppressions* suppressions) {
  audit::ReportBuilder builder({}, /*generates=*/false, suppressions);
  audit::Report report;
  builder.Add({}, analysis, &report);
  std::vector<AuditFinding> findings;
  for (const audit::NamedFinding& named : report.findings) {
    findings.push_back({audit::Identifier(named.finding.kind), named.finding.call,
                        named.culprit.object, named.culprit.name, named.victim.object,
                        named.victim.name, named.finding.count, audit::FindingText(report, named)});
  }
  return findings;
}

class OnlyOne {
 public:
  OnlyOne() : is_first_(!is_taken_.exchange(true)) {}
  ~OnlyOne() {
    if (is_first_) is_taken_.store(false);
  }
  OnlyOne(const OnlyOne&) = delete;
  OnlyOne& operator=(const OnlyOne&) = delete;

  [[nodiscard]] bool is_first() const { return is_first_; }

 private:
  static std::atomic<bool> is_taken_;
  const bool is_first_;
};

std::atomic<bool> OnlyOne::is_taken_{false};

}  // namespace

[[gnu::noinline]] absl::StatusOr<std::vector<AuditFinding>> Audit(
    absl::FunctionRef<void()> callable) {
  const OnlyOne only;
  if (!only.is_first()) {
    return absl::FailedPreconditionError("another audit is in progress in this process");
  }
  audit::Suppressions suppressions;
  if (absl::Status read = ReadSuppressions(&suppressions); !read.ok()) return read;
  const absl::StatusOr<const Driver*> driver = Driver::GetInitialized();
  if (!driver.ok()) return driver.status();
  // For the life of the process, as the collector.
  static auto* const channel = new audit::OwnChannel;
  if (absl::Status resumed = ToStatus(channel->Resume()); !resumed.ok()) return resumed;
  const std::uint64_t missed = channel->missed();
  audit::Feed feed(&channel->process(), kAuditedCallable);
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (!Prepare(**driver, *channel, frame, &feed)) {
    channel->Pause();
    return absl::FailedPreconditionError(
        "the current context is destroyed, or the stack of calls cannot be followed");
  }
  audit::Reading reading(channel, &feed);
  CallAudited(callable, &feed);
  reading.End();
  if (channel->missed() != missed) {
    return absl::DataLossError("the auditor lost events of the callable: they came too fast");
  }
  feed.End();
  return Name(feed.analysis(), &suppressions);
}

}  // namespace testing
CUGUEST_END_NAMESPACE

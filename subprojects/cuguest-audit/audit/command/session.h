// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The processes of an audit: the analysis of each, and what is written of them meanwhile.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_COMMAND_SESSION_H_
#define CUGUEST_AUDIT_COMMAND_SESSION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "audit/analysis.h"
#include "audit/command/report.h"
#include "audit/command/stack_changes.h"
#include "audit/command/trace.h"
#include "audit/event.h"
#include "audit/log.h"

namespace cuguest::audit {

class Session final : public EventSink {
 public:
  struct AuditedProcess {
    ReportedProcess about;
    std::unique_ptr<Analysis> analysis;
    std::uint64_t last_ns = 0;     // time of the last event
    std::set<ContextId> contexts;  // that are alive
  };

  // `trace` may be null, and is told of stacks, as `observers` are.
  explicit Session(TraceWriter* trace, const std::vector<StackObserver*>& observers = {});

  void OnProcess(const Process& process) override;
  void OnSource(std::uint32_t process, const std::string& name) override;
  void OnNote(std::uint32_t process, const std::string& text) override;
  void OnUnaudited(std::uint32_t process, const std::string& why) override;
  void OnLimit(std::uint32_t process, const std::string& text) override;
  void OnLoss(std::uint32_t process, const Loss& loss) override;
  void OnObject(std::uint32_t process, std::uint32_t index, const Object& object) override;
  void OnEvent(std::uint32_t process, const Event& event) override;

  // Nothing follows: puts the findings into the trace, and tells observers that stacks are empty.
  void Finish(const Report& report);

  [[nodiscard]] const std::map<std::uint32_t, AuditedProcess>& processes() const {
    return processes_;
  }

 private:
  void FollowStack(const AuditedProcess& process, const Event& event);
  void TraceContexts(const Event& event, AuditedProcess* process);

  TraceWriter* trace_;
  StackChanges stacks_;
  std::map<std::uint32_t, AuditedProcess> processes_;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_SESSION_H_

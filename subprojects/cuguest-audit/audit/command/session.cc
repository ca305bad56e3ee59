// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/session.h"

#include <algorithm>

#include "audit/finding.h"

namespace cuguest::audit {

namespace {

constexpr char kContextsCounter[] = "contexts";

std::string SliceName(const ContextNote& context) {
  std::string name = context.id == 0 ? "no context" : "context " + std::to_string(context.id);
  if (context.device < 0) return name;
  return name + (context.primary ? " (primary of device " : " (device ") +
         std::to_string(context.device) + ")";
}

// A primary context that loses its last reference ends too; events do not tell which one is the
// last.
bool EndsContext(const Event& event) {
  return event.kind == EventKind::kCall && event.result == 0 &&
         (event.name == "cuCtxDestroy" || event.name == "cuDevicePrimaryCtxReset" ||
          event.name == "cudaDeviceReset");
}

TraceWriter::Time TimeOf(const Session::AuditedProcess& process, std::uint64_t time_ns) {
  return process.about.process.start_ns + time_ns;
}

TraceProcess TraceOf(const Session::AuditedProcess& process) {
  return {process.about.process.pid, process.about.process.number};
}

}  // namespace

void Session::OnProcess(const Process& process) {
  AuditedProcess& audited = processes_[process.number];
  if (audited.analysis != nullptr) return;
  audited.about.process = process;
  audited.analysis = std::make_unique<Analysis>(process.forked, process.program);
  if (trace_ != nullptr) trace_->NameProcess(process.pid, process.program);
}

void Session::OnSource(std::uint32_t process, const std::string& name) {
  processes_[process].about.source = name;
}

void Session::OnNote(std::uint32_t process, const std::string& text) {
  processes_[process].about.notes.push_back(text);
}

void Session::OnUnaudited(std::uint32_t process, const std::string& why) {
  processes_[process].about.unaudited = why;
}

void Session::OnLoss(std::uint32_t process, const Loss& loss) {
  processes_[process].about.lost = loss.events;
  processes_[process].about.broken = loss.records;
}

void Session::OnObject(std::uint32_t process, std::uint32_t index, const Object& object) {
  processes_[process].analysis->OnObject(index, object);
}

void Session::OnEvent(std::uint32_t process, const Event& event) {
  AuditedProcess& audited = processes_[process];
  ++audited.about.events;
  audited.last_ns = std::max(audited.last_ns, event.time_ns);
  audited.analysis->OnEvent(event);
  if (trace_ == nullptr || event.kind >= EventKind::kProcessEnd) return;
  TraceStack(audited, event);
  TraceContexts(event, &audited);
}

void Session::TraceStack(const AuditedProcess& process, const Event& event) {
  const TraceWriter::Time time = TimeOf(process, event.time_ns);
  if (event.kind == EventKind::kThreadEnd) {
    return trace_->EndThread(TraceOf(process), event.thread, time);
  }
  std::vector<std::string> stack;
  for (const ContextId id : process.analysis->Stack(event.thread)) {
    stack.push_back(SliceName(process.analysis->Context(id)));
  }
  trace_->SetStack(TraceOf(process), event.thread, time, stack);
}

void Session::TraceContexts(const Event& event, AuditedProcess* process) {
  std::set<ContextId>& contexts = process->contexts;
  const size_t before = contexts.size();
  if (event.kind == EventKind::kContext) contexts.insert(event.context);
  if (EndsContext(event)) contexts.erase(event.context);
  if (contexts.size() == before) return;
  trace_->AddCounter(process->about.process.pid, TimeOf(*process, event.time_ns), kContextsCounter,
                     contexts.size());
}

void Session::FinishTrace(const Report& report) {
  if (trace_ == nullptr) return;
  for (const NamedFinding& named : report.findings) {
    const Finding& finding = named.finding;
    const AuditedProcess& process = processes_[named.process];
    trace_->AddInstant(TraceOf(process), finding.thread, TimeOf(process, finding.time_ns),
                       Name(finding.kind),
                       {{"culprit", named.culprit.ToString()},
                        {"victim", named.victim.ToString()},
                        {"call", finding.call},
                        {"times", std::to_string(finding.count)}});
  }
  for (const auto& [number, process] : processes_) {
    trace_->EndProcess(TraceOf(process), TimeOf(process, process.last_ns));
  }
}

}  // namespace cuguest::audit

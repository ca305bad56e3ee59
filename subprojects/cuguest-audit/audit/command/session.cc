// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/session.h"

#include <algorithm>
#include <utility>

#include "audit/finding.h"

namespace cuguest::audit {

namespace {

constexpr char kContextsCounter[] = "contexts";

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

ThreadOfProcess WhereIs(const Session::AuditedProcess& process, std::uint32_t thread) {
  return {process.about.process.number, process.about.process.pid, thread};
}

}  // namespace

Session::Session(TraceWriter* trace, const std::vector<StackObserver*>& observers) : trace_(trace) {
  if (trace_ != nullptr) stacks_.Tell(trace_);
  for (StackObserver* observer : observers) stacks_.Tell(observer);
}

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

void Session::OnLimit(std::uint32_t process, const std::string& text) {
  processes_[process].about.limits.push_back(text);
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
  if (event.kind >= EventKind::kProcessEnd) return;
  if (stacks_.are_told()) FollowStack(audited, event);
  if (trace_ != nullptr) TraceContexts(event, &audited);
}

void Session::FollowStack(const AuditedProcess& process, const Event& event) {
  const TraceWriter::Time time = TimeOf(process, event.time_ns);
  const ThreadOfProcess where = WhereIs(process, event.thread);
  if (event.kind == EventKind::kThreadEnd) return stacks_.EndThread(where, time);
  std::vector<ContextNote> stack;
  for (const ContextId id : process.analysis->Stack(event.thread)) {
    stack.push_back(process.analysis->Context(id));
  }
  stacks_.Set(where, time, std::move(stack));
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

void Session::Finish(const Report& report) {
  for (const NamedFinding& named : report.findings) {
    if (trace_ == nullptr) break;
    const Finding& finding = named.finding;
    const AuditedProcess& process = processes_[named.process];
    trace_->AddInstant(WhereIs(process, finding.thread), TimeOf(process, finding.time_ns),
                       Name(finding.kind),
                       {{"culprit", named.culprit.ToString()},
                        {"victim", named.victim.ToString()},
                        {"call", finding.call},
                        {"times", std::to_string(finding.count)}});
  }
  for (const auto& [number, process] : processes_) {
    stacks_.EndProcess(number, TimeOf(process, process.last_ns));
  }
}

}  // namespace cuguest::audit

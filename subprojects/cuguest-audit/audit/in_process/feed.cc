// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/in_process/feed.h"

#include <algorithm>
#include <map>
#include <utility>

namespace cuguest::audit {

void Feed::AddObjects() {
  for (; objects_ < process_.objects.size(); ++objects_) {
    analysis_.OnObject(static_cast<std::uint32_t>(objects_) + 1, process_.objects[objects_]);
  }
}

// One that is older than the audit.
void Feed::AddContext(ContextId id, int device, bool is_primary, bool is_callers) {
  Event event;
  event.kind = EventKind::kContext;
  event.thread = thread_;
  event.context = id;
  event.device = device;
  event.primary = is_primary;
  event.chain = is_callers ? caller_ : std::make_shared<const Chain>();
  Pass(event);
  event.kind = EventKind::kUsed;
  Pass(event);
}

void Feed::OnPreparation(const std::vector<Event>& events, const std::vector<int>& devices,
                         std::uintptr_t inner, std::uintptr_t outer) {
  std::map<ContextId, int> primaries;
  std::vector<ContextId> pushed;  // onto the caller's stack
  std::vector<Event> of_stack;
  int device = -1;  // whose primary context is looked at
  for (const Event& event : events) {
    const auto above = [&](std::uintptr_t address) {
      return std::find_if(event.chain->begin(), event.chain->end(),
                          [=](const Frame& frame) { return frame.address > address; });
    };
    const auto own = above(outer);
    if (above(inner) == own || own == event.chain->end()) continue;  // another thread's
    if (own + 1 == event.chain->end()) continue;                     // nobody called
    thread_ = event.thread;
    program_ = own->object;
    audit_ = own->address;
    caller_ = std::make_shared<const Chain>(own + 1, event.chain->end());
    const bool is_push = event.kind == EventKind::kCall && event.name == "cuCtxPushCurrent";
    if (event.name == "cuDevicePrimaryCtxRetain") {
      device = event.device;
    } else if (event.name == "cuDevicePrimaryCtxRelease") {
      device = -1;
    } else if (device < 0) {
      of_stack.push_back(event);
      if (is_push) pushed.push_back(event.after);
    } else if (is_push) {
      primaries[event.after] = device;
    }
  }
  if (!has_caller()) return;
  const Object& program = process_.objects.at(program_);
  analysis_.OnObject(kCallableObject, {callable_name_, program.build_id, program.path});
  AddObjects();
  std::map<ContextId, int> of_caller;
  for (std::size_t i = 0; i < std::min(pushed.size(), devices.size()); ++i)
    of_caller[pushed[i]] = devices[i];
  for (const auto& [id, primary_of] : primaries)
    AddContext(id, primary_of, true, of_caller.count(id) != 0);
  for (const auto& [id, context_of] : of_caller) {
    if (primaries.count(id) == 0) AddContext(id, context_of, false, true);
  }
  for (const Event& event : of_stack) Pass(event);
}

bool Feed::IsOfCaller(const Event& event) const {
  return event.thread == thread_ && !event.chain->empty() &&
         event.chain->back().object == caller_->back().object &&
         event.chain->back().address == caller_->back().address;
}

void Feed::OnEvent(const Event& event) {
  AddObjects();
  Pass(event);
}

std::uintptr_t Feed::EndOfCallable(const Event& event) const {
  if (!IsOfCaller(event)) return UINTPTR_MAX;
  const std::uintptr_t callable = callable_.load();
  const auto outermost = std::find_if(event.chain->begin(), event.chain->end(),
                                      [=](const Frame& frame) { return frame.address > callable; });
  return callable != 0 && outermost->address < audit_ ? outermost->address : 0;
}

void Feed::Pass(Event event) {
  const std::uintptr_t end = EndOfCallable(event);
  Chain chain;
  for (Frame frame : *event.chain) {
    if (frame.address > end && frame.address <= audit_) continue;
    const bool is_callables = frame.object == program_ && frame.address <= end;
    if (frame.object != 0) frame.object = is_callables ? kCallableObject : frame.object + 1;
    chain.push_back(frame);
  }
  event.chain = std::make_shared<const Chain>(std::move(chain));
  const bool is_told = event.kind == EventKind::kCall || event.kind == EventKind::kCheck;
  if (event.thread == thread_ && is_told) current_ = event.after;
  analysis_.OnEvent(event);
}

void Feed::End() {
  Event event;
  event.kind = EventKind::kCheck;
  event.thread = thread_;
  event.before = event.after = current_;
  event.chain = caller_;
  Pass(event);
}

}  // namespace cuguest::audit

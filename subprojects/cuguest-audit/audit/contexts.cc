// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/contexts.h"

#include <algorithm>
#include <utility>

#include "audit/call_rule.h"

namespace cuguest::audit {

const ContextFacts* Contexts::Find(ContextId id) const {
  const auto found = facts_.find(id);
  return found == facts_.end() ? nullptr : &found->second;
}

ContextNote Contexts::NoteOf(ContextId id) const {
  ContextNote note;
  note.id = id;
  if (const ContextFacts* facts = Find(id)) {
    note.device = facts->device;
    note.primary = facts->primary;
    note.creator = facts->made != nullptr ? facts->made->place() : Place{};
  }
  return note;
}

ContextId Contexts::PrimaryOf(int device) const {
  const auto found = primaries_.find(device);
  return found == primaries_.end() ? 0 : found->second;
}

ContextFacts* Contexts::Make(ContextId id, int device, bool primary,
                             std::shared_ptr<const Cause> made) {
  if (primary) {
    ContextId& known = primaries_[device];
    if (known != 0 && known != id) {
      Destroy(known, made);
    }
    known = id;
  }
  ContextFacts* facts = &facts_[id];
  facts->device = device;
  facts->primary = primary;
  facts->after_others = had_any_ && !had_device_zero_ && device == 0;
  facts->made = std::move(made);
  had_any_ = true;
  had_device_zero_ = had_device_zero_ || device <= 0;  // one that is not known may be
  return facts;
}

void Contexts::SetUsed(ContextId id) {
  const auto found = facts_.find(id);
  if (found != facts_.end()) {
    found->second.used = true;
  }
}

bool Contexts::AddWorker(ContextId id, const std::shared_ptr<const Cause>& work, bool unaware) {
  const auto found = facts_.find(id);
  if (found == facts_.end()) {
    return true;
  }
  std::map<PartyId, Worker>& workers = found->second.workers;
  if (workers.size() < kWorkerLimit) {
    workers.emplace(work->party(), Worker{work, unaware});
  }
  return workers.count(work->party()) != 0;
}

void Contexts::RemoveWorker(ContextId id, PartyId party) {
  const auto found = facts_.find(id);
  if (found != facts_.end()) {
    found->second.workers.erase(party);
  }
}

void Contexts::Reset(ContextId id, std::shared_ptr<const Cause> reset) {
  const auto found = facts_.find(id);
  if (found != facts_.end()) {
    found->second.reset = std::move(reset);
  }
}

const Cause* Contexts::EndOf(ContextId id) const {
  const ContextFacts* facts = Find(id);
  if (facts == nullptr || facts->reset != nullptr) {
    return facts == nullptr ? nullptr : facts->reset.get();
  }
  // Else it is only known that another one took its place.
  const bool is_known =
      facts->destroyed != nullptr && (IsDestruction(facts->destroyed->call) ||
                                      KindOf(facts->destroyed->call) == CallKind::kReleasePrimary);
  return is_known ? facts->destroyed.get() : nullptr;
}

void Contexts::Destroy(ContextId id, std::shared_ptr<const Cause> destroyed) {
  ContextFacts& facts = facts_[id];
  if (facts.destroyed != nullptr) {
    return;
  }
  facts.destroyed = std::move(destroyed);
  destroyed_.push_back(id);
  if (destroyed_.size() > kDestroyedLimit) {
    last_forgotten_ = std::max(last_forgotten_, destroyed_.front());
    facts_.erase(destroyed_.front());
    destroyed_.pop_front();
  }
}

}  // namespace cuguest::audit

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/primaries.h"

#include <utility>

#include "audit/call_rule.h"

namespace cuguest::audit {

void Primaries::Retain(int device, Runtime runtime, const std::shared_ptr<const Cause>& cause) {
  Held& held = holders_[device][runtime == Runtime::kShared ? kRuntime : cause->party()];
  ++held.count;
  held.of_runtime += runtime == Runtime::kOwn ? 1 : 0;
  held.last = cause;
}

bool Primaries::Release(int device, Runtime runtime, const Cause& cause) {
  const PartyId party = runtime == Runtime::kShared ? kRuntime : cause.party();
  Holders& holders = holders_[device];
  auto own = holders.find(party);
  for (auto i = holders.begin(); own == holders.end() && i != holders.end(); ++i) {
    if (i->first != kRuntime && (i->first == 0 || i->second.last->Has(party))) {
      own = i;
    }
  }
  if (own != holders.end()) {
    if (runtime == Runtime::kOwn && own->second.of_runtime > 0) {
      --own->second.of_runtime;
    }
    if (--own->second.count == 0) {
      holders.erase(own);
    }
    return holders.empty();
  }
  const Cause* holder = runtime == Runtime::kShared ? nullptr : HolderBut(party, device);
  if (holder != nullptr) {
    Add(FindingKind::kOverReleasedPrimary, device, cause, *holder);
  }
  return false;
}

void Primaries::Reset(int device, const Cause& cause, const Cause* on_stack) {
  const Cause* holder = HolderBut(cause.party(), device);
  if (holder == nullptr) {
    holder = on_stack;
  }
  if (holder != nullptr && cause.party() != 0) {
    Add(FindingKind::kResetPrimary, device, cause, *holder);
  }
}

const Cause* Primaries::HolderBut(PartyId party, int device) const {
  const auto holders = holders_.find(device);
  if (party == 0 || holders == holders_.end()) {
    return nullptr;
  }
  for (const auto& [holder, held] : holders->second) {
    if (holder != 0 && holder != party && !held.last->Has(party)) {
      return held.last.get();
    }
  }
  return nullptr;
}

void Primaries::Add(FindingKind kind, int device, const Cause& cause, const Cause& victim) {
  Finding finding = FindingOf(kind, cause);
  finding.device = device;
  finding.before = contexts_->NoteOf(contexts_->PrimaryOf(device));
  SetVictim(victim, cause, &finding);
  ledger_->Add({std::move(finding), {}});
}

std::vector<Finding> Primaries::Leaks() const {
  std::vector<Finding> leaks;
  for (const auto& [device, holders] : holders_) {
    for (const auto& [party, held] : holders) {
      if (party == 0 || party == kRuntime || held.count <= held.of_runtime) {
        continue;
      }
      Finding finding = FindingOf(FindingKind::kLeakedReference, *held.last);
      finding.device = device;
      finding.count = held.count - held.of_runtime;
      finding.before = contexts_->NoteOf(contexts_->PrimaryOf(device));
      leaks.push_back(std::move(finding));
    }
  }
  return leaks;
}

std::shared_ptr<const Cause> Primaries::HolderOf(int device, Runtime runtime, PartyId party) const {
  const auto holders = holders_.find(device);
  if (holders == holders_.end()) {
    return nullptr;
  }
  const auto held = holders->second.find(runtime == Runtime::kShared ? kRuntime : party);
  return held == holders->second.end() ? nullptr : held->second.last;
}

bool Primaries::ChargeOf(const ContextFacts& facts, ContextNote note, std::vector<Victim> others,
                         Charge* charge) {
  if (!facts.primary || facts.made == nullptr || facts.made->party() == 0) {
    return false;
  }
  const Cause& cause = *facts.made;
  FindingKind kind =
      IsQuery(cause.call) ? FindingKind::kQueryCreatedPrimary : FindingKind::kCreatedPrimary;
  charge->victims.clear();
  if (facts.after_others && !facts.used) {
    kind = FindingKind::kTouchedDeviceZero;
  } else {
    for (auto caller = cause.callers.rbegin(); caller != cause.callers.rend(); ++caller) {
      if (caller->party != cause.party()) {
        charge->victims.push_back(
            {caller->party, cause.PlaceOf(caller->frame), caller->frame, Minds::kIfManages});
      }
    }
    if (charge->victims.empty()) {
      charge->victims = std::move(others);
    }
    if (charge->victims.empty()) {
      return false;
    }
  }
  charge->finding = FindingOf(kind, cause);
  charge->finding.device = facts.device;
  charge->finding.after = note;
  return true;
}

}  // namespace cuguest::audit

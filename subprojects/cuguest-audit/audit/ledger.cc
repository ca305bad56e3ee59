// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/ledger.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace cuguest::audit {
namespace {

// The order of findings, and what makes that of two the first.
auto OrderOf(const Finding& finding) {
  return std::make_tuple(finding.time_ns, finding.thread, finding.kind, finding.culprit.object,
                         finding.culprit.offset, finding.victim.object, finding.victim.offset,
                         finding.call);
}

void Merge(const Finding& finding, Finding* into) {
  const std::uint64_t count = into->count + finding.count;
  if (OrderOf(finding) < OrderOf(*into)) {
    *into = finding;
  }
  into->count = count;
}

// With the first of its victims that minds; nothing if none does.
std::optional<Finding> Decide(const Charge& charge, const Habits& habits) {
  Finding finding = charge.finding;
  const auto minds = [&](const Victim& victim) { return habits.IsVictim(victim, finding.thread); };
  if (std::any_of(charge.unless.begin(), charge.unless.end(), minds)) {
    return std::nullopt;
  }
  if (charge.victims.empty()) {
    return finding;
  }
  for (const Victim& victim : charge.victims) {
    if (minds(victim)) {
      finding.victim = victim.place;
      finding.victim_frame = victim.frame;
      if (victim.chain != nullptr) {
        finding.victim_chain = victim.chain;
      }
      return finding;
    }
  }
  return std::nullopt;
}

}  // namespace

void Habits::SetManages(PartyId party, std::uint32_t thread) {
  manage_on_thread_.insert({thread, party});
  manage_.insert(party);
}

void Habits::ForgetThread(std::uint32_t thread) {
  manage_on_thread_.erase(manage_on_thread_.lower_bound({thread, 0}),
                          manage_on_thread_.lower_bound({thread + 1, 0}));
}

bool Habits::IsVictim(const Victim& victim, std::uint32_t thread) const {
  switch (victim.minds) {
    case Minds::kAlways:
      return true;
    case Minds::kIfManagesOnThread:
      return manage_on_thread_.count({thread, victim.party}) != 0;
    case Minds::kIfManages:
      return manage_.count(victim.party) != 0;
  }
  return false;
}

std::vector<Ledger::VictimKey> Ledger::KeysOf(const std::vector<Victim>& victims) {
  std::vector<VictimKey> keys;
  keys.reserve(victims.size());
  for (const Victim& victim : victims) {
    keys.emplace_back(PlaceKey(victim.place.object, victim.place.offset), victim.minds,
                      victim.party);
  }
  return keys;
}

Ledger::Key Ledger::KeyOf(const Charge& charge) {
  const Finding& finding = charge.finding;
  return {finding.kind,
          finding.call,
          PlaceKey(finding.culprit.object, finding.culprit.offset),
          PlaceKey(finding.victim.object, finding.victim.offset),
          KeysOf(charge.victims),
          KeysOf(charge.unless)};
}

void Ledger::Add(const Charge& charge) {
  const auto is_of_thread = [](const Victim& victim) {
    return victim.minds == Minds::kIfManagesOnThread;
  };
  const bool depends = std::any_of(charge.victims.begin(), charge.victims.end(), is_of_thread) ||
                       std::any_of(charge.unless.begin(), charge.unless.end(), is_of_thread);
  AddTo(charge, depends ? &of_threads_[charge.finding.thread] : &charges_);
}

void Ledger::AddTo(const Charge& charge, Charges* charges) {
  Key key = KeyOf(charge);
  const auto found = charges->find(key);
  if (found != charges->end()) {
    // The first one, with its victims: they are frames of its chain.
    Charge& known = found->second;
    const std::uint64_t count = known.finding.count + charge.finding.count;
    if (OrderOf(charge.finding) < OrderOf(known.finding)) {
      known = charge;
    }
    known.finding.count = count;
  } else if (charges->size() < kLedgerLimit) {
    charges->emplace(std::move(key), charge);
  } else {
    dropped_ += charge.finding.count;
  }
}

void Ledger::EndThread(std::uint32_t thread, const Habits& habits) {
  const auto found = of_threads_.find(thread);
  if (found == of_threads_.end()) {
    return;
  }
  for (const auto& entry : found->second) {
    if (const std::optional<Finding> finding = Decide(entry.second, habits)) {
      AddTo({*finding, {}}, &charges_);
    }
  }
  of_threads_.erase(found);
}

std::vector<Finding> Ledger::Findings(const Habits& habits) const {
  std::map<Key, Finding> merged;
  const auto merge = [&](const Charges& charges) {
    for (const auto& entry : charges) {
      if (const std::optional<Finding> finding = Decide(entry.second, habits)) {
        const auto [at, is_new] = merged.emplace(KeyOf({*finding, {}}), *finding);
        if (!is_new) {
          Merge(*finding, &at->second);
        }
      }
    }
  };
  merge(charges_);
  for (const auto& entry : of_threads_) {
    merge(entry.second);
  }
  std::vector<Finding> findings;
  findings.reserve(merged.size());
  for (auto& entry : merged) {
    findings.push_back(std::move(entry.second));
  }
  std::sort(findings.begin(), findings.end(),
            [](const Finding& a, const Finding& b) { return OrderOf(a) < OrderOf(b); });
  return findings;
}

}  // namespace cuguest::audit

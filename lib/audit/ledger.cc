// SPDX-License-Identifier: Apache-2.0

#include "lib/audit/ledger.h"

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
  if (charge.victims.empty()) {
    return finding;
  }
  for (const Victim& victim : charge.victims) {
    if (habits.IsVictim(victim, finding.thread)) {
      finding.victim = victim.place;
      finding.victim_frame = victim.frame;
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

Ledger::Key Ledger::KeyOf(const Charge& charge) {
  const Finding& finding = charge.finding;
  std::vector<VictimKey> victims;
  victims.reserve(charge.victims.size());
  for (const Victim& victim : charge.victims) {
    victims.emplace_back(PlaceKey(victim.place.object, victim.place.offset), victim.minds,
                         victim.party,
                         victim.minds == Minds::kIfManagesOnThread ? finding.thread : 0);
  }
  return {finding.kind, finding.call, PlaceKey(finding.culprit.object, finding.culprit.offset),
          PlaceKey(finding.victim.object, finding.victim.offset), std::move(victims)};
}

void Ledger::Add(const Charge& charge) {
  Key key = KeyOf(charge);
  const auto found = charges_.find(key);
  if (found != charges_.end()) {
    // Which chain it has must agree with where its victims are in it.
    Charge& known = found->second;
    const std::uint64_t count = known.finding.count + charge.finding.count;
    if (OrderOf(charge.finding) < OrderOf(known.finding)) {
      known = charge;
    }
    known.finding.count = count;
  } else if (charges_.size() < kLedgerLimit) {
    charges_.emplace(std::move(key), charge);
  }
}

void Ledger::EndThread(std::uint32_t thread, const Habits& habits) {
  std::vector<Charge> decided;
  for (auto i = charges_.begin(); i != charges_.end();) {
    const Charge& charge = i->second;
    const bool depends = charge.finding.thread == thread &&
                         std::any_of(charge.victims.begin(), charge.victims.end(),
                                     [](auto& v) { return v.minds == Minds::kIfManagesOnThread; });
    if (!depends) {
      ++i;
      continue;
    }
    if (const std::optional<Finding> finding = Decide(charge, habits)) {
      decided.push_back({*finding, {}});
    }
    i = charges_.erase(i);
  }
  for (const Charge& charge : decided) {
    Add(charge);
  }
}

std::vector<Finding> Ledger::Findings(const Habits& habits) const {
  std::map<Key, Finding> merged;
  for (const auto& entry : charges_) {
    if (const std::optional<Finding> finding = Decide(entry.second, habits)) {
      const auto [at, is_new] = merged.emplace(KeyOf({*finding, {}}), *finding);
      if (!is_new) {
        Merge(*finding, &at->second);
      }
    }
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

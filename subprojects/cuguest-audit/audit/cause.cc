// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/cause.h"

#include <algorithm>

namespace cuguest::audit {

std::vector<Caller> CallersOf(const Chain& chain, const Parties& parties) {
  std::vector<Caller> callers;
  const PartyId interpreter = parties.interpreter();
  const bool has_functions =
      interpreter != 0 && std::any_of(chain.begin(), chain.end(), [&](const Frame& frame) {
        return parties.IsPython(frame.object);
      });
  for (std::size_t i = chain.size(); i > 0; --i) {
    const Frame& frame = chain[i - 1];
    const PartyId party = parties.Of(frame.object);
    if (party == 0 || (has_functions && party == interpreter)) {
      continue;
    }
    if (callers.empty() || callers.back().party != party) {
      callers.push_back({party, frame.address, i - 1});
    }
    callers.back().frame = i - 1;
  }
  return callers;
}

Cause::Cause(const Event& event, const Parties& parties)
    : call(event.name),
      thread(event.thread),
      os_thread(event.os_thread),
      time_ns(event.time_ns),
      result(event.result),
      device(event.device),
      after(event.after),
      chain(event.chain != nullptr ? event.chain : std::make_shared<const Chain>()),
      callers(CallersOf(*chain, parties)) {}

Place Cause::PlaceOf(std::size_t frame) const {
  return frame < chain->size() ? Place{(*chain)[frame].object, (*chain)[frame].offset} : Place{};
}

std::size_t Cause::frame() const { return callers.empty() ? chain->size() : callers.back().frame; }

bool Cause::Has(PartyId party) const {
  return std::any_of(callers.begin(), callers.end(),
                     [&](const Caller& caller) { return caller.party == party; });
}

const Caller* HolderOf(const Cause& cause, const Parties& parties) {
  const auto holder =
      std::find_if(cause.callers.rbegin(), cause.callers.rend(), [&](const Caller& caller) {
        return !parties.ActsForCaller(cause.PlaceOf(caller.frame).object);
      });
  if (holder != cause.callers.rend()) {
    return &*holder;
  }
  return cause.callers.empty() ? nullptr : &cause.callers.back();
}

Finding FindingOf(FindingKind kind, const Cause& cause) {
  if (!cause.callers.empty()) {
    return FindingOf(kind, cause, cause.callers.back());
  }
  // Of a chain without a party, which has no frame of its either.
  return FindingOf(kind, cause, {0, 0, cause.chain->size()});
}

Finding FindingOf(FindingKind kind, const Cause& cause, const Caller& culprit) {
  Finding finding;
  finding.kind = kind;
  finding.call = cause.call;
  finding.culprit = cause.PlaceOf(culprit.frame);
  finding.culprit_frame = culprit.frame;
  if (culprit.party != 0) {
    const auto returned =
        std::find_if(cause.chain->begin(), cause.chain->end(),
                     [&](const Frame& frame) { return frame.address == culprit.address; });
    finding.returned_frame = static_cast<std::size_t>(returned - cause.chain->begin());
  }
  finding.count = 1;
  finding.thread = cause.thread;
  finding.os_thread = cause.os_thread;
  finding.time_ns = cause.time_ns;
  finding.result = cause.result;
  finding.device = cause.device;
  finding.chain = cause.chain;
  finding.victim_frame = cause.chain->size();
  finding.victim_chain = std::make_shared<const Chain>();
  return finding;
}

void SetVictim(const Cause& made, const Cause& cause, Finding* finding) {
  finding->victim = made.place();
  finding->victim_chain = made.chain;
  for (const Caller& caller : cause.callers) {
    if (caller.party == made.party()) {
      finding->victim = cause.PlaceOf(caller.frame);
      finding->victim_frame = caller.frame;
    }
  }
}

}  // namespace cuguest::audit

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A call as the analysis remembers it: what it was and whose.
//
// Thread-safe: no; these are values.

#ifndef CUGUEST_AUDIT_CAUSE_H_
#define CUGUEST_AUDIT_CAUSE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "audit/event.h"
#include "audit/finding.h"
#include "audit/party.h"

namespace cuguest::audit {

// Consecutive frames of one party in a chain, with those between them that are of no party.
struct Caller {
  PartyId party = 0;
  std::uint64_t address = 0;  // of its outermost frame: as long as that is there, the party has not
                              // returned
  std::size_t frame = 0;      // index of its innermost one
};

// Outermost first. Frames of no party that called the outermost are left out. The interpreter of
// Python is a party only where the functions that it runs are not known.
std::vector<Caller> CallersOf(const Chain& chain, const Parties& parties);

struct Cause {
  Cause(const Event& event, const Parties& parties);

  // Who made the call; 0: it is not known.
  [[nodiscard]] PartyId party() const { return callers.empty() ? 0 : callers.back().party; }
  // What made the call; of the caller if nothing is said. {} for a frame that there is not.
  [[nodiscard]] Place place() const { return PlaceOf(frame()); }
  [[nodiscard]] Place PlaceOf(std::size_t frame) const;
  [[nodiscard]] std::size_t frame() const;
  // Whether `party` made the call or is among those who called, at any depth.
  [[nodiscard]] bool Has(PartyId party) const;

  std::string call;
  std::uint32_t thread = 0;
  std::shared_ptr<const OsThread> os_thread;  // null: not known
  std::uint64_t time_ns = 0;
  int result = 0;
  int device = -1;
  ContextId after = 0;
  bool at_end = false;                 // after exit() was called
  std::shared_ptr<const Chain> chain;  // not null
  std::vector<Caller> callers;
};

// The caller that holds what the call is about. A library that acts for the owner of a handle of
// its own, as libcublas.so does, is passed over for its caller. Null: it is not known who called.
const Caller* HolderOf(const Cause& cause, const Parties& parties);

// A finding of `kind` about the call, with no victim.
Finding FindingOf(FindingKind kind, const Cause& cause);
// The same, with one of the cause's callers as the culprit.
Finding FindingOf(FindingKind kind, const Cause& cause, const Caller& culprit);

// Makes the code that made the call `made` the victim of `cause`, of which the finding is.
void SetVictim(const Cause& made, const Cause& cause, Finding* finding);

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_CAUSE_H_

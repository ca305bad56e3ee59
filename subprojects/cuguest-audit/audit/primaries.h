// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The holders of the primary contexts of a process, and the calls that take these from them.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_PRIMARIES_H_
#define CUGUEST_AUDIT_PRIMARIES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "audit/cause.h"
#include "audit/contexts.h"
#include "audit/ledger.h"

namespace cuguest::audit {

class Primaries {
 public:
  // Both must outlive it.
  Primaries(const Contexts* contexts, Ledger* ledger) : contexts_(contexts), ledger_(ledger) {}

  // Calls that succeeded.
  void Retain(int device, Runtime runtime, const std::shared_ptr<const Cause>& cause);
  // A party may release what it retained and what it had another retain. Returns whether the last
  // reference that is known of is gone.
  bool Release(int device, Runtime runtime, const Cause& cause);
  // `on_stack`: a call of another party that put the context on a stack where it still is and
  // matters; null: there is none.
  void Reset(int device, const Cause& cause, const Cause* on_stack);

  // References of parties that nobody has released: of the call that retained last, with their
  // number.
  [[nodiscard]] std::vector<Finding> Leaks() const;

  // The primary context that was made, or null: is it to be charged, and to whom?
  // `others`: who may mind if nobody of another party called.
  static bool ChargeOf(const ContextFacts& facts, ContextNote note, std::vector<Victim> others,
                       Charge* charge);
  // Who retained it last, through that runtime or by a call of the party's own; null: no one.
  [[nodiscard]] std::shared_ptr<const Cause> HolderOf(int device, Runtime runtime,
                                                      PartyId party) const;

 private:
  struct Held {
    std::uint64_t count = 0;
    std::uint64_t of_runtime = 0;       // of them, which a runtime in the party's object keeps
    std::shared_ptr<const Cause> last;  // retain
  };
  using Holders = std::map<PartyId, Held>;

  // The shared runtime, which holds one for all of its callers. It releases that when the process
  // ends: nobody calls it then.
  static constexpr PartyId kRuntime = ~PartyId{0};

  // Who retained it, and not because `party` had it do that; null: no one.
  const Cause* HolderBut(PartyId party, int device) const;
  void Add(FindingKind kind, int device, const Cause& cause, const Cause& victim);

  const Contexts* const contexts_;
  Ledger* const ledger_;
  std::map<int, Holders> holders_;  // by device
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_PRIMARIES_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The findings of a process that stand: counted where they are the same, and shown where there is a
// victim.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_LEDGER_H_
#define CUGUEST_AUDIT_LEDGER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "audit/finding.h"
#include "audit/party.h"

namespace cuguest::audit {

// When code is the victim of something.
enum class Minds : std::uint8_t {
  kAlways,
  kIfManagesOnThread,  // its party makes calls on the stack itself, in the same thread, at any time
  kIfManages,          // in any thread
};

struct Victim {
  PartyId party = 0;
  Place place;
  std::size_t frame = 0;  // in the chain of the finding; its size: it was not among the callers
  Minds minds = Minds::kAlways;
  std::shared_ptr<const Chain> chain = nullptr;  // of the call that made it one; null: it called
};

// A finding, and who may be its victim: the first one that minds.
struct Charge {
  Finding finding;
  std::vector<Victim> victims;      // empty: it needs none, or has one already
  std::vector<Victim> unless = {};  // one of them minds: the same harm is charged for it already
};

// What is known of parties, in which later events may change who minds what happened earlier.
class Habits {
 public:
  void SetManages(PartyId party, std::uint32_t thread);
  void ForgetThread(std::uint32_t thread);
  [[nodiscard]] bool IsVictim(const Victim& victim, std::uint32_t thread) const;

 private:
  std::set<std::pair<std::uint32_t, PartyId>> manage_on_thread_;
  std::set<PartyId> manage_;
};

// Different ones that are kept, and of each thread those that depend on it. There are as many as
// there are places in the program that do harm.
inline constexpr std::size_t kLedgerLimit = 16384;

class Ledger {
 public:
  void Add(const Charge& charge);
  // No event of that thread is to come: whether a party minds is then known, in so far as it
  // depends on the thread.
  void EndThread(std::uint32_t thread, const Habits& habits);
  // In the order of their first times.
  [[nodiscard]] std::vector<Finding> Findings(const Habits& habits) const;
  // How often one was dropped because there were kLedgerLimit.
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

  // Another limit was reached, so that findings may be missing: which one, for people.
  void Reach(const std::string& limit) { limits_.insert(limit); }
  [[nodiscard]] const std::set<std::string>& limits() const { return limits_; }

 private:
  using PlaceKey = std::pair<std::uint32_t, std::uint64_t>;
  using VictimKey = std::tuple<PlaceKey, Minds, PartyId>;
  using Key = std::tuple<FindingKind, std::string, PlaceKey, PlaceKey, std::vector<VictimKey>,
                         std::vector<VictimKey>>;
  using Charges = std::map<Key, Charge>;

  static Key KeyOf(const Charge& charge);
  static std::vector<VictimKey> KeysOf(const std::vector<Victim>& victims);

  void AddTo(const Charge& charge, Charges* charges);

  std::uint64_t dropped_ = 0;
  std::set<std::string> limits_;
  Charges charges_;
  // Those whose victims depend on what happens in a thread, by its number.
  std::map<std::uint32_t, Charges> of_threads_;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_LEDGER_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The contexts of a process: what they are and who made them.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_CONTEXTS_H_
#define CUGUEST_AUDIT_CONTEXTS_H_

#include <cstddef>
#include <deque>
#include <map>
#include <memory>

#include "audit/cause.h"
#include "audit/event.h"
#include "audit/finding.h"

namespace cuguest::audit {

// A party's work in a context.
struct Worker {
  std::shared_ptr<const Cause> first;  // call that made something there
  bool unaware = false;  // the context was current because a library that it had called left it so
};

// Parties whose work in one context is remembered.
inline constexpr std::size_t kWorkerLimit = 16;

struct ContextFacts {
  int device = -1;
  bool primary = false;
  bool used = false;                       // something was done in it
  bool after_others = false;               // when it was made there were some, all on other devices
  std::shared_ptr<const Cause> made;       // null: before the first event
  std::shared_ptr<const Cause> destroyed;  // null: it is there
  std::shared_ptr<const Cause> reset;      // null: what was made in it is there as long as it is
  std::map<PartyId, Worker> workers;       // that have freed nothing there
};

// Destroyed contexts that are remembered.
inline constexpr std::size_t kDestroyedLimit = 1024;

class Contexts {
 public:
  // Null if it is not known.
  [[nodiscard]] const ContextFacts* Find(ContextId id) const;
  [[nodiscard]] ContextNote NoteOf(ContextId id) const;
  // The primary context of `device` that was made last; 0: none.
  [[nodiscard]] ContextId PrimaryOf(int device) const;

  // A primary replaces the one that its device had, which counts as destroyed by the same call.
  ContextFacts* Make(ContextId id, int device, bool primary, std::shared_ptr<const Cause> made);
  void SetUsed(ContextId id);
  // False if there are kWorkerLimit others.
  bool AddWorker(ContextId id, const std::shared_ptr<const Cause>& work, bool unaware);
  // It frees what it made.
  void RemoveWorker(ContextId id, PartyId party);
  void Destroy(ContextId id, std::shared_ptr<const Cause> destroyed);
  void Reset(ContextId id, std::shared_ptr<const Cause> reset);
  // The call that ended what the context had; null: it is not known.
  [[nodiscard]] const Cause* EndOf(ContextId id) const;
  // Whether it was destroyed, and kDestroyedLimit others since.
  [[nodiscard]] bool IsForgotten(ContextId id) const {
    return id <= last_forgotten_ && Find(id) == nullptr;
  }

  template <typename Visit>
  void ForEachLiving(const Visit& visit) const {
    for (const auto& [id, facts] : facts_) {
      if (facts.destroyed == nullptr) {
        visit(id, facts);
      }
    }
  }

 private:
  std::map<ContextId, ContextFacts> facts_;
  std::map<int, ContextId> primaries_;  // by device
  std::deque<ContextId> destroyed_;     // the oldest first
  ContextId last_forgotten_ = 0;        // the highest
  bool had_any_ = false;
  bool had_device_zero_ = false;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_CONTEXTS_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One thread: its context stack, who is being called in it, and what those who returned left on the
// stack.
//
// Note [Entered and returned]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
// An activation is a party's outermost frame on the thread's stack, with the depth that the context
// stack had before the first event seen within it. It has returned when a chain no longer has that
// frame. Then the entries that it found are compared with those that are there, and each that is
// gone, another or new is charged to the call that made it so; the victim is the next activation
// outwards, if it minds (Ledger). An outer activation compares with what it found itself, so what a
// caller in between has repaired does not reach it.
//
// Outermost frames at different addresses are different stacks of frames: fibers, or chains that
// could not be followed to their end. Each is a strand with activations of its own, and a chain
// says nothing of other strands'.
//
// Note [Enter and leave]
// ~~~~~~~~~~~~~~~~~~~~~~
// A charge stays with the stack's entry that it is about. When the entry goes, the one who takes it
// away decides: the culprit, or who was called by the victim, takes the charge back; anybody else,
// who repairs it, makes it stand. It also stands when the victim returns, or the thread ends. What
// is missing then is missing for the victim's callers, too: who pushes it again leaks nothing.
//
// Note [Who works in what was left]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A party that uses the runtime leaves a primary context current, and nobody minds. What another
// party's callee leaves there instead is its loss if it goes on in that: it works in a context of
// which it does not know. It is the victim where the caller does not mind. A primary context that
// is left is the runtime's to choose, and no loss.
//
// Note [Whose pop was one too many]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A function pushes, calls another one of its library that pops, and pops itself: the last pop
// takes an entry of somebody else's, and is right. A pop goes with a push if both were called from
// the same depth below the function that encloses both. If a pop that goes with no push took an
// entry before, and this one goes with the push of that entry, the former is charged.
//
// Note [Chains that end early]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A chain ends at code without unwind tables, such as what calls the static destructors of a
// library in dlclose(). Where its outermost frame is closely below the frames of a strand, on the
// same memory, it continues those: the activations above it may not have returned, and the thread's
// outermost party, if it put there what the culprit took, is the victim.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_THREAD_MODEL_H_
#define CUGUEST_AUDIT_THREAD_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "audit/cause.h"
#include "audit/contexts.h"
#include "audit/event.h"
#include "audit/ledger.h"

namespace cuguest::audit {

// Strands of a thread that are known; the one last seen longest ago is forgotten.
inline constexpr std::size_t kStrandLimit = 8;
// How far below a strand's innermost frame a chain may end that continues it.
inline constexpr std::uint64_t kStrandGap = 64 * 1024;

class ThreadModel {
 public:
  // All must outlive the model.
  ThreadModel(const Contexts* contexts, const Habits* habits, Ledger* ledger);

  // What an event says before it has done anything: the current context, unless `before` is
  // kUnknown, and who is there. The calls of those who are not have returned.
  static constexpr ContextId kUnknown = ~ContextId{0};
  void Arrive(ContextId before, const Cause& cause);
  // What the call did to the stack.
  void Push(ContextId context, bool by_push, const std::shared_ptr<const Cause>& cause);
  void Pop(const std::shared_ptr<const Cause>& cause);
  void Replace(ContextId context, const std::shared_ptr<const Cause>& cause);
  // A call that leaves the stack as it is. See Note [Who works in what was left].
  void Work(const Cause& cause);
  // Makes `context` current without knowing how that came.
  void Reconcile(ContextId context);
  // All have returned.
  void End();

  [[nodiscard]] ContextId current() const { return stack_.empty() ? 0 : stack_.back().context; }
  [[nodiscard]] std::vector<ContextId> Stack() const;
  // Who put `context` on the stack, topmost; null if it is not there, or that is not known.
  [[nodiscard]] std::shared_ptr<const Cause> PutBy(ContextId context) const;

  // Of the innermost activation of the last event; 0: there is none. Never that of another.
  [[nodiscard]] std::uint64_t activation() const { return activation_; }
  [[nodiscard]] bool IsOpen(std::uint64_t activation) const;

  // Adds the charges that stand if nothing more happens.
  void AddOpenCharges(Ledger* ledger) const;
  // The same if all have returned.
  void AddChargesOfReturned(Ledger* ledger) const;

 private:
  using CausePointer = std::shared_ptr<const Cause>;

  // What a position of the stack has.
  struct Content {
    ContextId context = 0;
    CausePointer put;      // null: not known
    bool by_push = false;  // not set where nothing was
    bool charged = false;
    std::vector<Victim> passed_over = {};  // that did not mind when it might have been charged
  };
  // A charge that may be taken back.
  struct Pending {
    Charge charge;
    PartyId culprit;
    PartyId returned;      // whom the victim had called
    std::uint64_t victim;  // activation
    Content expected;      // by the victim, at that position
    std::size_t position;  // of the stack
    bool stands = false;
    bool at_end = false;      // exit() has been called, and the victim not seen since
    bool has_worker = false;  // Note [Who works in what was left]
  };
  struct Entry : Content {
    std::vector<Pending> pending = {};
  };
  struct Removal {
    CausePointer cause;  // null: not known
    bool charged = false;
    std::vector<Victim> passed_over = {};
  };
  struct Lost {
    Content content;
    std::shared_ptr<Removal> removal;  // one for all activations that it concerns
  };
  struct Activation {
    PartyId party;
    std::uint64_t address;
    std::uint64_t number;
    std::size_t depth;            // of the stack when it began
    std::vector<Lost> lost = {};  // of the entries that it found, the topmost first
    bool has_pending = false;
    FindingRef suffered = {};  // the first charge of which it is the victim
  };
  struct Strand {
    std::uint32_t object;   // of the outermost frame
    std::uint64_t address;  // likewise
    std::uint64_t last_seen;
    std::uint64_t innermost = 0;               // frame of the last chain
    std::vector<Activation> activations = {};  // outermost first
  };

  // The victim makes a call after all.
  void Awake(PartyId victim);
  // Whether `cause` takes it back, not repairs it.
  static bool IsOwn(const Pending& pending, const Cause& cause);

  Strand* StrandOf(const Chain& chain);
  // The strand whose innermost frames end just above the chain: see Note [Chains that end early].
  Strand* StrandAbove(const Chain& chain);
  [[nodiscard]] std::size_t depth() const { return base_ + stack_.size(); }
  Entry* At(std::size_t position);
  // `charged`: nobody is to be charged with that.
  Entry TakeTop(const CausePointer& cause, bool charged = false);
  // Whether what is to be put is what activations found there, and had lost: then it was never
  // gone, and `content` is that.
  bool Regain(Content* content);
  void Put(Entry entry);
  void CloseInnermost(Strand* strand);
  // Charges what `returned` left to the innermost one that is open in `strand`.
  void Compare(const Activation& returned, Strand* strand);
  // Charges what `cause` did at `position`; false if nobody minds, as far as is known now. Adds
  // who may mind later to `passed_over`: then the others outwards are not its victims.
  bool Charged(FindingKind kind, const CausePointer& cause, const Activation& returned,
               Strand* strand, const Content& expected, std::size_t position,
               std::vector<Victim>* passed_over, std::vector<Pending>* pending);
  void SettleVictim(const Activation& victim, Strand* strand);
  // What `victim` found and is missing is missing for `outer`, too.
  void PassOn(const Activation& victim, std::vector<Pending> missing, Activation* outer);
  void Settle(Pending* pending) const;
  void Settle(std::vector<Pending>* pending);

  const Contexts* const contexts_;
  const Habits* const habits_;
  Ledger* ledger_;
  std::deque<Entry> stack_;
  std::size_t base_ = 0;          // entries below those in stack_
  std::vector<Pending> missing_;  // charges about positions where the expected entry is not
  std::vector<Strand> strands_;
  // See Note [Whose pop was one too many].
  struct Mispaired {
    std::size_t position;  // of the entry
    CausePointer put;
    CausePointer pop;          // null: nothing
    std::uint64_t activation;  // in which both were
  };

  // The pop to be charged if `cause` takes an entry that is not its own.
  CausePointer PopInPlaceOf(const CausePointer& cause) const;

  Mispaired mispaired_ = {};
  std::uint64_t activations_ = 0;  // numbers given
  std::uint64_t activation_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_THREAD_MODEL_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/thread_model.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "audit/analysis.h"
#include "audit/call_rule.h"

namespace cuguest::audit {
namespace {

PartyId PartyOf(const std::shared_ptr<const Cause>& cause) {
  return cause == nullptr ? 0 : cause->party();
}

// Frames of `chain` within the innermost one that it has in common with `other`.
std::size_t DepthBeside(const Chain& chain, const Chain& other) {
  std::size_t common = 0;
  while (common < chain.size() && common < other.size()) {
    const Frame& mine = chain[chain.size() - 1 - common];
    const Frame& others = other[other.size() - 1 - common];
    if (mine.address != others.address || mine.object != others.object) {
      break;
    }
    ++common;
  }
  return chain.size() - common;
}

// See Note [Whose pop was one too many].
bool GoTogether(const Cause& put, const Cause& pop) {
  return DepthBeside(*put.chain, *pop.chain) == DepthBeside(*pop.chain, *put.chain);
}

}  // namespace

ThreadModel::ThreadModel(const Contexts* contexts, const Habits* habits, Ledger* ledger)
    : contexts_(contexts), habits_(habits), ledger_(ledger) {}

void ThreadModel::Arrive(ContextId before, const Cause& cause) {
  if (before != kUnknown) {
    Reconcile(before);
  }
  if (cause.callers.empty()) {
    activation_ = 0;
    return;
  }
  Strand* const above = StrandAbove(*cause.chain);
  Strand* strand = above != nullptr ? above : StrandOf(*cause.chain);
  strand->last_seen = ++events_;
  strand->innermost = cause.chain->front().address;
  std::vector<Activation>& open = strand->activations;
  // Those that a chain which ends early may not show.
  std::size_t hidden = 0;
  while (above != nullptr && hidden < open.size() &&
         open[hidden].address > cause.chain->back().address) {
    ++hidden;
  }
  std::size_t same = 0;
  while (hidden + same < open.size() && same < cause.callers.size() &&
         open[hidden + same].party == cause.callers[same].party &&
         open[hidden + same].address == cause.callers[same].address) {
    ++same;
  }
  while (open.size() > hidden + same) {
    CloseInnermost(strand);
  }
  for (std::size_t i = same; i < cause.callers.size(); ++i) {
    open.push_back({cause.callers[i].party, cause.callers[i].address, ++activations_, depth()});
  }
  activation_ = open.back().number;
  // Not the beginning of the program, from which exit() calls what is to run then.
  if (cause.at_end && !cause.call.empty() && cause.frame() == 0) {
    Awake(cause.party());
  }
}

void ThreadModel::Awake(PartyId victim) {
  const auto awake = [&](std::vector<Pending>* all) {
    for (Pending& pending : *all) {
      pending.at_end = pending.at_end && pending.charge.victims.front().party != victim;
    }
  };
  awake(&missing_);
  for (Entry& entry : stack_) {
    awake(&entry.pending);
  }
}

ThreadModel::Strand* ThreadModel::StrandAbove(const Chain& chain) {
  const std::uint64_t end = chain.back().address;
  Strand* found = nullptr;
  for (Strand& strand : strands_) {
    if (strand.object == chain.back().object && strand.address == end) {
      return nullptr;  // it is that one
    }
    if (end < strand.address && strand.innermost < end + kStrandGap &&
        end < strand.innermost + kStrandGap && !strand.activations.empty()) {
      found = &strand;
    }
  }
  return found;
}

ThreadModel::Strand* ThreadModel::StrandOf(const Chain& chain) {
  const Frame& outermost = chain.back();
  auto found = std::find_if(strands_.begin(), strands_.end(), [&](const Strand& strand) {
    return strand.object == outermost.object && strand.address == outermost.address;
  });
  if (found == strands_.end()) {
    if (strands_.size() == kStrandLimit) {
      const auto oldest = std::min_element(
          strands_.begin(), strands_.end(),
          [](const Strand& a, const Strand& b) { return a.last_seen < b.last_seen; });
      // Of less than two nobody is left with what the other did.
      if (oldest->activations.size() > 1) {
        ledger_->Reach("a thread ran more than " + std::to_string(kStrandLimit) +
                       " stacks of calls, as fibers do: what was left in the oldest is not found");
      }
      strands_.erase(oldest);
    }
    found = strands_.insert(strands_.end(), {outermost.object, outermost.address, 0});
  }
  return &*found;
}

void ThreadModel::Reconcile(ContextId context) {
  if (current() == context) {
    return;
  }
  const auto found = std::find_if(stack_.rbegin(), stack_.rend(),
                                  [&](const Entry& entry) { return entry.context == context; });
  if (context == 0 || found != stack_.rend()) {
    while (depth() > 0 && current() != context) {
      TakeTop(nullptr);
    }
    return;
  }
  if (depth() > 0) {
    TakeTop(nullptr);
  }
  Put({{context, nullptr}});
}

bool ThreadModel::IsOwn(const Pending& pending, const Cause& cause) {
  return cause.party() == pending.culprit || cause.party() == pending.returned;
}

void ThreadModel::Push(ContextId context, bool by_push, const CausePointer& cause) {
  Entry entry{{context, cause, by_push}};
  // What was missing here may be back: by whom decides.
  for (std::size_t i = missing_.size(); i > 0; --i) {
    Pending& pending = missing_[i - 1];
    if (pending.position == depth() && pending.expected.context == context) {
      static_cast<Content&>(entry) = pending.expected;  // who pushed it leaks nothing
      if (!IsOwn(pending, *cause)) {
        Settle(&pending);
      }
      missing_.erase(missing_.begin() + static_cast<std::ptrdiff_t>(i - 1));
    }
  }
  Regain(&entry);
  Put(std::move(entry));
}

ThreadModel::CausePointer ThreadModel::PopInPlaceOf(const CausePointer& cause) const {
  const bool is_one_too_many =
      mispaired_.pop != nullptr && !IsDestruction(cause->call) &&
      mispaired_.activation == activation_ && mispaired_.position == depth() &&
      mispaired_.put->party() == cause->party() && GoTogether(*mispaired_.put, *cause);
  return is_one_too_many ? mispaired_.pop : cause;
}

void ThreadModel::Pop(const CausePointer& cause) {
  if (depth() == 0) {
    return;
  }
  // One who takes back what it left pops nothing that anybody expects.
  const bool is_taken_back =
      !stack_.empty() &&
      std::any_of(stack_.back().pending.begin(), stack_.back().pending.end(),
                  [&](const Pending& pending) { return IsOwn(pending, *cause); });
  const CausePointer blamed = PopInPlaceOf(cause);
  Entry entry = TakeTop(blamed, is_taken_back);
  if (entry.by_push && entry.put != nullptr && entry.put->party() == cause->party() &&
      !IsDestruction(cause->call) && !GoTogether(*entry.put, *blamed)) {
    mispaired_ = {depth(), entry.put, blamed, activation_};
  }
  for (Pending& pending : entry.pending) {
    if (!IsOwn(pending, *cause)) {
      Settle(&pending);
    } else if (pending.charge.finding.kind == FindingKind::kReplacedContext) {
      missing_.push_back(std::move(pending));  // it is not back yet
    }
  }
}

void ThreadModel::Replace(ContextId context, const CausePointer& cause) {
  Entry entry = TakeTop(cause);
  Entry next{{context, cause, entry.by_push}};
  const bool is_back = Regain(&next);
  for (Pending& pending : entry.pending) {
    const bool is_own = IsOwn(pending, *cause);
    const bool is_expected = pending.charge.finding.kind == FindingKind::kReplacedContext &&
                             pending.expected.context == context;
    if (is_expected) {
      static_cast<Content&>(next) = pending.expected;
    }
    if (is_expected || is_back) {
      if (!is_own) {
        Settle(&pending);
      }
    } else {
      next.charged = next.charged || (entry.charged && is_own);
      next.pending.push_back(std::move(pending));
    }
  }
  Put(std::move(next));
}

void ThreadModel::Work(const Cause& cause) {
  const ContextFacts* facts = contexts_->Find(current());
  if (cause.party() == 0 || facts == nullptr || facts->primary) {
    return;
  }
  const PartyId leaver = PartyOf(stack_.back().put);
  for (auto entry = stack_.rbegin(); entry != stack_.rend(); ++entry) {
    if (PartyOf(entry->put) != leaver) {
      return;
    }
    bool is_charged = false;
    for (Pending& pending : entry->pending) {
      const bool is_others =
          pending.culprit != cause.party() && PartyOf(pending.expected.put) == cause.party();
      if (pending.stands || pending.has_worker || !is_others) {
        continue;
      }
      pending.has_worker = true;
      Charge& charge = pending.charge;
      const Victim victim{cause.party(), cause.place(), charge.finding.chain->size(),
                          Minds::kAlways, cause.chain};
      (is_charged ? charge.unless : charge.victims).push_back(victim);
      is_charged = true;
    }
  }
}

ThreadModel::Entry* ThreadModel::At(std::size_t position) {
  return position < base_ || position >= depth() ? nullptr : &stack_[position - base_];
}

ThreadModel::Entry ThreadModel::TakeTop(const CausePointer& cause, bool charged) {
  Entry entry;
  if (stack_.empty()) {
    --base_;
  } else {
    entry = std::move(stack_.back());
    stack_.pop_back();
  }
  std::shared_ptr<Removal> removal;
  for (Strand& strand : strands_) {
    for (Activation& activation : strand.activations) {
      if (activation.depth - activation.lost.size() == depth() + 1) {
        if (removal == nullptr) {
          removal = std::make_shared<Removal>(Removal{cause, charged});
        }
        activation.lost.push_back({entry, removal});
      }
    }
  }
  return entry;
}

bool ThreadModel::Regain(Content* content) {
  bool is_back = false;
  for (Strand& strand : strands_) {
    for (Activation& activation : strand.activations) {
      std::vector<Lost>& lost = activation.lost;
      const bool is_here = !lost.empty() && activation.depth - lost.size() == depth();
      if (is_here && lost.back().content.context == content->context) {
        *content = lost.back().content;
        lost.pop_back();
        is_back = true;
      }
    }
  }
  return is_back;
}

void ThreadModel::Put(Entry entry) {
  stack_.push_back(std::move(entry));
  if (stack_.size() > kStackLimit) {
    ledger_->Reach("a stack had more than " + std::to_string(kStackLimit) +
                   " contexts: what is done to those below is not found");
    Settle(&stack_.front().pending);
    stack_.pop_front();
    ++base_;
  }
}

void ThreadModel::CloseInnermost(Strand* strand) {
  const Activation returned = std::move(strand->activations.back());
  strand->activations.pop_back();
  if (!strand->activations.empty()) {
    Compare(returned, strand);
  }
  SettleVictim(returned, strand);
}

void ThreadModel::Compare(const Activation& returned, Strand* strand) {
  const Content nothing;
  const std::size_t found = returned.depth;
  const std::size_t kept = found - returned.lost.size();
  for (std::size_t position = kept; position < std::max(found, depth()); ++position) {
    const Lost* lost = position < found ? &returned.lost[found - 1 - position] : nullptr;
    Entry* entry = At(position);
    if (lost == nullptr) {
      if (entry == nullptr || entry->charged) {
        continue;
      }
      const Entry* below = position > 0 ? At(position - 1) : nullptr;
      const FindingKind kind =
          position > 0 || entry->by_push ? FindingKind::kLeakedPush : FindingKind::kLeftContext;
      entry->charged = Charged(kind, entry->put, returned, strand,
                               below != nullptr ? static_cast<const Content&>(*below) : nothing,
                               position, &entry->passed_over, &entry->pending);
    } else if (position >= depth()) {
      const CausePointer& cause = lost->removal->cause;
      if (!lost->removal->charged && cause != nullptr && !IsDestruction(cause->call)) {
        lost->removal->charged =
            Charged(FindingKind::kExtraPop, cause, returned, strand, lost->content, position,
                    &lost->removal->passed_over, &missing_);
      }
    } else if (entry != nullptr && !entry->charged && entry->context != lost->content.context) {
      entry->charged = Charged(FindingKind::kReplacedContext, entry->put, returned, strand,
                               lost->content, position, &entry->passed_over, &entry->pending);
    }
  }
}

bool ThreadModel::Charged(FindingKind kind, const CausePointer& cause, const Activation& returned,
                          Strand* strand, const Content& expected, std::size_t position,
                          std::vector<Victim>* passed_over, std::vector<Pending>* pending) {
  Activation* const outer = &strand->activations.back();
  const PartyId culprit = PartyOf(cause);
  const PartyId owner = PartyOf(expected.put);
  const bool is_lost = kind == FindingKind::kExtraPop || kind == FindingKind::kReplacedContext;
  if (culprit == 0 || culprit == outer->party || (is_lost && expected.context == 0)) {
    return false;
  }
  // Its own, or what somebody has put there whom it had called.
  if (is_lost && owner != 0 && owner != outer->party && expected.put->Has(culprit)) {
    return false;
  }
  const auto caller =
      std::find_if(cause->callers.begin(), cause->callers.end(), [&](const Caller& candidate) {
        return candidate.party == outer->party && candidate.address == outer->address;
      });
  const bool is_victims = owner != 0 && owner == outer->party;
  Victim victim{outer->party, {}, cause->chain->size(), Minds::kIfManagesOnThread};
  if (caller != cause->callers.end()) {
    victim.place = cause->PlaceOf(caller->frame);
    victim.frame = caller->frame;
  } else if (is_victims && cause->chain->back().address < strand->address) {
    victim.place = expected.put->place();  // the chain ended early
  } else {
    return false;  // of another strand: who called whom is not known
  }
  const ContextFacts* facts = contexts_->Find(expected.context);
  // A context that is somebody's own, whom none of the callers is: the outermost one's.
  const bool is_users = strand->activations.size() == 1 && facts != nullptr && !facts->primary &&
                        facts->made != nullptr && facts->made->party() != culprit &&
                        owner != culprit;
  if (is_users || is_victims) {
    victim.minds = Minds::kAlways;
  }
  Finding finding = FindingOf(kind, *cause);
  finding.before = contexts_->NoteOf(expected.context);
  finding.after = contexts_->NoteOf(current());
  // Of the call itself, not of all that was left since.
  const auto place = static_cast<std::int64_t>(position);
  const auto found = static_cast<std::int64_t>(returned.depth);
  finding.depth = kind == FindingKind::kReplacedContext ? 0
                  : place < found                       ? place - found
                                                        : place - found + 1;
  if (is_victims) finding.victim_chain = expected.put->chain;
  if (culprit == returned.party) finding.cause = returned.suffered;
  if (outer->suffered.call.empty()) {
    outer->suffered = {kind, finding.call, finding.culprit};
  }
  if (pending->size() >= kStackLimit) {
    Settle(pending);
  }
  const bool is_victim = habits_->IsVictim(victim, cause->thread);
  pending->push_back({{std::move(finding), {victim}, *passed_over},
                      culprit,
                      returned.party,
                      outer->number,
                      expected,
                      position,
                      /*stands=*/false,
                      cause->at_end});
  outer->has_pending = true;
  if (!is_victim) passed_over->push_back(std::move(victim));
  return is_victim;
}

void ThreadModel::SettleVictim(const Activation& victim, Strand* strand) {
  if (!victim.has_pending) {
    return;
  }
  const auto settle = [&](std::vector<Pending>* all) {
    const auto kept = std::stable_partition(all->begin(), all->end(), [&](const Pending& pending) {
      return pending.victim != victim.number;
    });
    for (auto i = kept; i != all->end(); ++i) {
      Settle(&*i);
    }
    std::vector<Pending> settled(std::make_move_iterator(kept),
                                 std::make_move_iterator(all->end()));
    all->erase(kept, all->end());
    return settled;
  };
  std::vector<Pending> missing = settle(&missing_);
  if (!strand->activations.empty()) {
    PassOn(victim, std::move(missing), &strand->activations.back());
  }
  const std::size_t kept = victim.depth - victim.lost.size();
  for (std::size_t position = std::max(base_, kept); position < depth(); ++position) {
    settle(&At(position)->pending);
  }
}

void ThreadModel::PassOn(const Activation& victim, std::vector<Pending> missing,
                         Activation* outer) {
  for (Pending& pending : missing) {
    const std::size_t kept = victim.depth - victim.lost.size();
    const bool was_there = kept <= pending.position && pending.position < victim.depth;
    if (!was_there || victim.lost[victim.depth - 1 - pending.position].content.context !=
                          pending.expected.context) {
      continue;
    }
    pending.victim = outer->number;
    outer->has_pending = true;
    missing_.push_back(std::move(pending));
  }
}

void ThreadModel::Settle(Pending* pending) const {
  if (!pending->stands && !pending->at_end) {
    ledger_->Add(pending->charge);
  }
  pending->stands = true;
}

void ThreadModel::Settle(std::vector<Pending>* pending) {
  for (Pending& each : *pending) {
    Settle(&each);
  }
  pending->clear();
}

void ThreadModel::End() {
  for (Strand& strand : strands_) {
    while (!strand.activations.empty()) {
      CloseInnermost(&strand);
    }
  }
  AddOpenCharges(ledger_);
  stack_.clear();
  base_ = 0;
  missing_.clear();
  activation_ = 0;
}

void ThreadModel::AddChargesOfReturned(Ledger* ledger) const {
  ThreadModel returned = *this;
  returned.ledger_ = ledger;
  returned.End();
}

std::vector<ContextId> ThreadModel::Stack() const {
  std::vector<ContextId> contexts;
  contexts.reserve(stack_.size());
  for (const Entry& entry : stack_) {
    contexts.push_back(entry.context);
  }
  return contexts;
}

std::shared_ptr<const Cause> ThreadModel::PutBy(ContextId context) const {
  for (auto entry = stack_.rbegin(); entry != stack_.rend(); ++entry) {
    if (entry->context == context) {
      return entry->put;
    }
  }
  return nullptr;
}

bool ThreadModel::IsOpen(std::uint64_t activation) const {
  for (const Strand& strand : strands_) {
    for (const Activation& open : strand.activations) {
      if (open.number == activation) {
        return true;
      }
    }
  }
  return false;
}

void ThreadModel::AddOpenCharges(Ledger* ledger) const {
  for (const Entry& entry : stack_) {
    for (const Pending& pending : entry.pending) {
      if (!pending.at_end) {
        ledger->Add(pending.charge);
      }
    }
  }
  for (const Pending& pending : missing_) {
    if (!pending.stands && !pending.at_end) {
      ledger->Add(pending.charge);
    }
  }
}

}  // namespace cuguest::audit

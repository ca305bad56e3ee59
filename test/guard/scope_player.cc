// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/guard/scope_player.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "cudasim/sim.h"
#include "cuguest/c.h"
#include "cuguest/context_guard.h"
#include "cuguest/internal/this_thread.h"
#include "test/support/raw_driver.h"

namespace scope_sequence {
namespace {

using cudasim::Sim;
using cuguest::Incident;
using cuguest_test::OwnContext;
using cuguest_test::TheDriver;
using scope_cases::HasContext;
using scope_cases::Kind;
using scope_cases::Scope;
using Does = Step::Does;

constexpr cuguest::Location kWhere{"a random sequence", 1};

// The contexts of all sequences: one that is over is another one for the next.
class Contexts {
 public:
  Contexts() {
    int devices = 0;
    BOOST_REQUIRE(TheDriver().DeviceGetCount(&devices) == CUDA_SUCCESS);
    for (int device = 0; device < std::min(devices, 2); ++device) primaries_['P' + device] = {};
  }
  void Renew() {
    died_.clear();
    for (const char letter : std::string(kCreated)) {
      if (own_.count(letter) == 0) own_.emplace(letter, 0);
    }
    for (auto& [letter, primary] : primaries_) Retain(letter);
    died_.clear();
  }
  // On a machine of one device Q is no context.
  bool IsAlive(char letter) const {
    const auto primary = primaries_.find(letter);
    return primary != primaries_.end() ? primary->second.is_alive : own_.count(letter) != 0;
  }
  bool HasDied(char letter) const { return died_.count(letter) != 0; }
  CUcontext at(char letter) const {
    const auto primary = primaries_.find(letter);
    return primary != primaries_.end() ? primary->second.context : own_.at(letter).get();
  }
  bool Retain(char letter) {
    const auto primary = primaries_.find(letter);
    if (primary == primaries_.end() || primary->second.is_alive) return false;
    primary->second.is_alive = true;
    return RAW(cuDevicePrimaryCtxRetain)(&primary->second.context, letter - 'P') == CUDA_SUCCESS;
  }
  // Its handle stays known, to tell its entries by.
  bool End(char letter) {
    if (!IsAlive(letter)) return false;
    died_[letter] = at(letter);
    const auto primary = primaries_.find(letter);
    const bool is_primary = primary != primaries_.end();
    if (is_primary) primary->second.is_alive = false;
    CUresult code = CUDA_SUCCESS;
    std::thread([&] {
      code = is_primary ? RAW(cuDevicePrimaryCtxReset)(letter - 'P')
                        : TheDriver().CtxDestroy(own_.at(letter).release());
    }).join();
    own_.erase(letter);
    return code == CUDA_SUCCESS;
  }
  char LetterOf(CUcontext context) const {
    if (context == nullptr) return '0';
    for (const auto& [letter, own] : own_) {
      if (own.get() == context) return letter;
    }
    for (const auto& [letter, primary] : primaries_) {
      if (primary.context == context) return letter;
    }
    for (const auto& [letter, died] : died_) {
      if (died == context) return letter;
    }
    return '?';
  }

 private:
  struct Primary {
    CUcontext context = nullptr;
    bool is_alive = false;
  };
  std::map<char, OwnContext> own_;
  std::map<char, Primary> primaries_;
  std::map<char, CUcontext> died_;
};

// The same entry several times one after the other counts as one: such pushes go unseen.
std::string WithoutRepeats(std::string stack) {
  stack.erase(std::unique(stack.begin(), stack.end()), stack.end());
  return stack;
}

class Player {
 public:
  Player(Contexts* contexts, const Sequence& sequence)
      : contexts_(*contexts), sequence_(sequence), is_clean_(sequence.its == Class::kClean) {}

  Outcome Play() {
    Prepare();
    for (const Step& step : sequence_.steps) Do(step);
    Finish();
    Check();
    return std::move(outcome_);
  }

 private:
  // What is to be ended, the innermost last.
  struct Open {
    int scope;  // kPush: of cuguest_push()
    Kind kind;
    char context;
    bool is_disturbed = false;  // there was a fault inside it, or it was taken out
    bool may_be_gone = false;   // a HostScope that took it out has ended
  };
  static constexpr int kPush = -1;
  static constexpr int kExact = kScopes;

  void Prepare() {
    contexts_.Renew();
    host_.clear();
    for (const char letter : sequence_.host) {
      const char upper = static_cast<char>(std::toupper(letter));
      if (!contexts_.IsAlive(upper)) continue;
      Expect(TheDriver().CtxPushCurrent(contexts_.at(upper)) == CUDA_SUCCESS, "cannot begin");
      host_ += upper;
    }
    has_twice_ = std::set<char>(host_.begin(), host_.end()).size() < host_.size();
    if (sequence_.host.find('m') != std::string::npos) contexts_.End('M');
    static_cast<void>(cuguest_test::TakeIncidents());
    if (sequence_.its != Class::kExactGuard) return;
    Step exact{Does::kEnter};
    exact.scope = kExact;
    exact.kind = Kind::kExact;
    Do(exact);
  }

  void Finish() {
    while (!open_.empty()) {
      Step last{open_.back().scope == kPush ? Does::kPop : Does::kEnd};
      last.scope = open_.back().scope;
      Do(last);
    }
    // Closes what was ended elsewhere, or before a push that was popped by hand.
    const cuguest::ContextGuard looks(contexts_.at('Y'));
    Expect(looks.ok(), "cannot enter at the end");
    for (auto& scope : scopes_) scope.reset();
  }

  // Those of cuguest_push() may be there until the next that looks.
  static bool HasOpenScope() {
    const auto& here = *cuguest::internal::CallingThread();
    using State = cuguest::internal::Record::State;
    return std::any_of(here.records, here.records + std::min(here.depth, here.kRoom),
                       [](const auto& record) {
                         return record.state <= State::kEnded &&
                                record.owner != cuguest::internal::Record::Owner::kNobody;
                       });
  }

  void Check() {
    outcome_.faults = faults_;
    const bool is_push_over = std::any_of(pushed_.begin(), pushed_.end(),
                                          [&](char context) { return contexts_.HasDied(context); });
    is_at_limit_ = is_at_limit_ || (HasPairs() && is_push_over);
    is_at_limit_ = is_at_limit_ || (HasOpenScope() && HasPairs() && is_repeated_);
    outcome_.is_at_limit = is_at_limit_;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    static_cast<void>(TheDriver().ThreadExchangeStreamCaptureMode(&mode));
    Expect(mode == CU_STREAM_CAPTURE_MODE_GLOBAL, "another capture mode is left");
    const auto incidents = cuguest_test::TakeIncidents();
    for (const Incident& incident : incidents) {  // the end of a scope that waited gives no code
      says_over_ = says_over_ || incident.result == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
                   incident.kind == Incident::Kind::kDestroyed;
    }
    const std::string stack = TakeStack();
    const char caller = host_.empty() ? '0' : host_.back();
    const char current = stack.empty() ? '0' : stack.back();
    const bool is_over = contexts_.HasDied(caller) && says_over_;
    outcome_.entries_more = static_cast<long>(stack.size()) - static_cast<long>(host_.size());
    const std::string is = "[" + stack + "] and not [" + host_ + "]";
    Expect(current == caller || is_over || is_at_limit_, "another context is current: " + is);
    const bool has_doubt = HasPairs() || is_repeated_ || has_twice_ || contexts_.HasDied('M');
    if (is_certain_ && faults_ == 1 && !has_doubt && !is_at_limit_) {
      Expect(stack == host_, "after a fault that leaves no doubt the stack is " + is);
    }
    if (IsExact(sequence_.its) && !is_at_limit_) Expect(stack == host_, "the stack is " + is);
    const bool is_seen = WithoutRepeats(stack) != WithoutRepeats(host_);
    Expect(!is_seen || !incidents.empty() || is_at_limit_ || looks_same_ || says_over_,
           "the stack is " + is + " and no incident says so");
    Expect(std::labs(outcome_.entries_more) <= Bound() || is_at_limit_, "the stack is " + is);
    for (const Incident& incident : incidents) {
      // What was asked of MoveTo() and Reassert() alone counts as not asked.
      const bool is_ours = incident.kind == Incident::Kind::kElsewhere ||
                           incident.kind == Incident::Kind::kUnasked ||
                           (HasPairs() && is_repeated_) || is_at_limit_;
      Expect(!is_clean_ || is_ours, std::string("an incident: ") + cuguest::Name(incident.kind));
    }
    if (is_clean_ && !is_at_limit_) Expect(!HasOpenScope(), "a scope is left open");
  }

  void Expect(bool is_so, const std::string& otherwise) {
    if (!is_so) outcome_.wrong += (outcome_.wrong.empty() ? "" : "; ") + otherwise;
  }

  // Each scope that could not be understood leaves its own entry, and puts its caller's on top;
  // where the host has a context twice, what lies between can be treated as leaked pushes. An entry
  // whose context is over cannot be put back.
  long Bound() const {
    const auto dead = std::count_if(host_.begin(), host_.end(),
                                    [&](char entry) { return contexts_.HasDied(entry); });
    return faults_ + 2 * entered_ + (has_twice_ ? static_cast<long>(host_.size()) : dead);
  }

  std::string TakeStack() {
    std::string stack;
    CUcontext popped = nullptr;
    while (TheDriver().CtxPopCurrent(&popped) == CUDA_SUCCESS && popped != nullptr) {
      stack.insert(stack.begin(), contexts_.LetterOf(popped));
    }
    return stack;
  }

  // The innermost that has to do with the stack; nullptr if there is none.
  Open* Top() {
    for (auto open = open_.rbegin(); open != open_.rend(); ++open) {
      if (open->kind != Kind::kCapture) return &*open;
    }
    return nullptr;
  }
  Open* Find(int scope) {
    for (Open& open : open_) {
      if (open.scope == scope) return &open;
    }
    return nullptr;
  }
  void Forget(const Open* open) { open_.erase(open_.begin() + (open - open_.data())); }

  void Do(const Step& step) {
    code_ = CUDA_SUCCESS;
    if (!Apply(step)) return;
    outcome_.steps += "\n    " + TextOf(step);
    if (code_ != CUDA_SUCCESS) outcome_.steps += ": " + std::to_string(code_);
  }

  // False if the step does not apply.
  bool Apply(const Step& step) {
    switch (step.does) {
      case Does::kEnter:
        return Enter(step);
      case Does::kEnd:
        return End(step);
      case Does::kEndElsewhere:
        return EndElsewhere(step);
      case Does::kMoveTo:
      case Does::kReassert:
        return MoveOrReassert(step);
      case Does::kPush:
        return Push(step);
      case Does::kPop:
        return Pop(step);
      case Does::kPopByHand:
        return PopByHand();
      case Does::kCalleePushes:
      case Does::kCalleePops:
      case Does::kCalleeReplaces:
        return Fault(step);
      case Does::kReset:
      case Does::kDestroy:
        return contexts_.End(step.context);
      case Does::kRetain:
        return contexts_.Retain(step.context);
    }
    return false;
  }

  // A call of the library, in which a driver call may fail.
  template <typename Call>
  void Ask(const Step& step, Call call) {
    if (step.failing != nullptr) {
      Sim::FailCall(step.failing, step.nth, CUDA_ERROR_OPERATING_SYSTEM);
    }
    code_ = call();
    if (step.failing != nullptr) Sim::ClearFaults();
    if (code_ == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
      says_over_ = true;
      for (Open& open : open_) open.is_disturbed = true;
    }
    const bool looks = step.does != Does::kEndElsewhere &&
                       (step.does != Does::kEnter || step.kind != Kind::kCapture);
    if (looks) has_mail_ = false;
  }
  void ExpectOfClean(bool is_so) {
    if (is_clean_ && !is_at_limit_) Expect(is_so, "a code is " + std::to_string(code_));
  }

  bool Enter(const Step& step) {
    if (Find(step.scope) != nullptr) return false;
    if (HasContext(step.kind) && !contexts_.IsAlive(step.context)) return false;
    auto& scope = scopes_[step.scope];
    scope = scope_cases::Make(step.language, step.kind);
    const CUcontext entered = step.kind == Kind::kCapture ? Scope::AsContext(ModeOf(step.context))
                              : HasContext(step.kind)     ? contexts_.at(step.context)
                                                          : nullptr;
    CUcontext current = nullptr;
    TheDriver().CtxGetCurrent(&current);
    Ask(step, [&] { return scope->Enter(entered, kWhere); });
    const bool can_refuse = step.kind == Kind::kExact || step.kind == Kind::kNone;
    ExpectOfClean(code_ == CUDA_SUCCESS || (can_refuse && contexts_.HasDied('M')));
    if (step.kind == Kind::kHost && code_ != CUDA_SUCCESS) MayBeGone();
    if (code_ != CUDA_SUCCESS) return true;
    if (step.kind == Kind::kHost) {
      for (Open& open : open_) open.is_disturbed = true;
    }
    NoteEntered(step, scope_cases::Elides(step.kind) && current == entered);
    open_.push_back({step.scope, step.kind, step.context});
    if (step.kind == Kind::kHost) ExpectMode(CU_STREAM_CAPTURE_MODE_GLOBAL);
    return true;
  }

  // Of a capture guard, in place of a context.
  static CUstreamCaptureMode ModeOf(char context) {
    return context == 'A' ? CU_STREAM_CAPTURE_MODE_THREAD_LOCAL : CU_STREAM_CAPTURE_MODE_RELAXED;
  }
  static CUstreamCaptureMode ThreadMode() {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    static_cast<void>(TheDriver().ThreadExchangeStreamCaptureMode(&mode));
    CUstreamCaptureMode same = mode;
    static_cast<void>(TheDriver().ThreadExchangeStreamCaptureMode(&same));
    return mode;
  }
  // A callback without a HostScope may look as if it were there where something is at a limit.
  void ExpectMode(CUstreamCaptureMode mode) {
    if (!is_clean_ || HasPairs() || is_at_limit_) return;
    Expect(ThreadMode() == mode, "the capture mode is " + std::to_string(ThreadMode()));
    ++outcome_.modes;
  }
  // After a host scope, where none is open and none waits: the innermost capture guard's.
  void ExpectModeOfGuards() {
    if (code_ != CUDA_SUCCESS || waits_for_host_ || HasHost()) return;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    for (const Open& open : open_) {
      if (open.kind == Kind::kCapture) mode = ModeOf(open.context);
    }
    ExpectMode(mode);
  }

  // A push that was popped by hand can be one that is there.
  bool IsNowhere(char context) const {
    return host_.find(context) == std::string::npos && pairs_.find(context) == std::string::npos &&
           std::none_of(open_.begin(), open_.end(),
                        [&](const Open& open) { return open.context == context; });
  }
  void NoteEntered(const Step& step, bool is_elided) {
    ++entered_;
    is_repeated_ = is_repeated_ || (!is_elided && !IsNowhere(step.context));
  }

  bool End(const Step& step) {
    Open* const open = Find(step.scope);
    if (open == nullptr) return false;
    const bool is_innermost = open == &open_.back() || open == Top();
    const bool may_be_gone = open->may_be_gone;  // then it may have said so already
    const bool is_host = open->kind == Kind::kHost;
    if (is_host && !is_innermost && sequence_.its == Class::kExactGuard) return false;
    if (open->kind == Kind::kHost) MayBeGone();
    Forget(open);
    Ask(step, [&] { return scopes_[step.scope]->End(); });
    ExpectEnd(is_innermost, may_be_gone);
    waits_for_host_ = waits_for_host_ || (is_host && code_ == CUDA_ERROR_NOT_READY);
    if (is_host) ExpectModeOfGuards();
    waits_ = waits_ || (!is_innermost && Find(kPush) != nullptr);
    return true;
  }
  void MayBeGone() {
    for (Open& open : open_) open.may_be_gone = !is_clean_ || open.may_be_gone;
  }

  bool EndElsewhere(const Step& step) {
    Open* const open = Find(step.scope);
    if (open == nullptr) return false;
    if (open->kind == Kind::kHost && sequence_.its == Class::kExactGuard) return false;
    if (open->kind == Kind::kHost) {  // what it took out does not come back
      waits_for_host_ = true;
      for (Open& each : open_) each.may_be_gone = true;
    }
    Forget(open);
    waits_ = waits_ || Find(kPush) != nullptr;
    std::thread([&] { Ask(step, [&] { return scopes_[step.scope]->End(); }); }).join();
    ExpectOfClean(code_ == CUDA_ERROR_NOT_READY);
    has_mail_ = true;
    return true;
  }

  static bool CanMove(Kind kind) {
    return kind == Kind::kElide || kind == Kind::kAlwaysPush || kind == Kind::kByRef;
  }
  static bool CanReassert(Kind kind) {
    return CanMove(kind) || kind == Kind::kScope || kind == Kind::kExact || kind == Kind::kHome;
  }

  bool MoveOrReassert(const Step& step) {
    const bool moves = step.does == Does::kMoveTo;
    Open* const open = Find(step.scope);
    if (open == nullptr || !(moves ? CanMove(open->kind) : CanReassert(open->kind))) return false;
    if (moves && !contexts_.IsAlive(step.context)) return false;
    const bool is_top = open == Top();
    const bool may_be_gone = open->may_be_gone;
    if (may_be_gone && !is_top) return false;
    auto& scope = scopes_[step.scope];
    Ask(step, [&] {
      return moves ? scope->MoveTo(contexts_.at(step.context), kWhere) : scope->Reassert();
    });
    const bool is_refused = code_ == CUDA_ERROR_ILLEGAL_STATE && (!is_top || may_be_gone);
    ExpectOfClean(code_ == CUDA_SUCCESS || is_refused);
    if (moves && code_ == CUDA_SUCCESS) open->context = step.context;
    if (code_ == CUDA_SUCCESS || !(is_top || may_be_gone)) return true;
    Do(Step{Does::kEnd, step.scope});  // it may be outside
    return true;
  }

  bool Push(const Step& step) {
    if (!contexts_.IsAlive(step.context)) return false;
    CUcontext current = nullptr;
    TheDriver().CtxGetCurrent(&current);
    // What waits is closed first, and what is current then is not known.
    has_twice_ = has_twice_ || has_mail_ || current == contexts_.at(step.context);
    cuguest_ref ref = CUGUEST_REF_INIT;
    const bool by_ref = step.language == scope_cases::Language::kC;
    if (by_ref) Expect(cuguest_ref_borrow(&ref, contexts_.at(step.context)) == 0, "no reference");
    Ask(step, [&] {
      return static_cast<CUresult>(by_ref ? cuguest_push_ref(&ref)
                                          : cuguest_push(contexts_.at(step.context)));
    });
    ExpectOfClean(code_ == CUDA_SUCCESS);
    if (code_ != CUDA_SUCCESS) return true;
    NoteEntered(step, false);
    pushed_ += step.context;
    open_.push_back({kPush, Kind::kAlwaysPush, step.context});
    return true;
  }

  // The innermost push, whatever is open inside it.
  bool Pop(const Step& step) {
    for (auto open = open_.rbegin(); open != open_.rend(); ++open) {
      if (open->scope != kPush) continue;
      const bool is_innermost = open == open_.rbegin();
      if (HasPairs() && !is_innermost) return false;
      open_.erase(std::next(open).base());
      Ask(step, [] { return static_cast<CUresult>(cuguest_pop()); });
      const bool can_be_limit = !is_clean_ || (HasPairs() && is_repeated_);
      is_at_limit_ = is_at_limit_ || (code_ == CUDA_ERROR_ILLEGAL_STATE && can_be_limit);
      // A fault in an outer push: it can be treated as an inner one that was popped by hand.
      is_at_limit_ =
          is_at_limit_ || (HasPairs() && !host_.empty() && contexts_.HasDied(host_.back()));
      ExpectEnd(is_innermost, false);
      return true;
    }
    return false;
  }

  // Where the same contexts are on the stack twice, a push that was popped by hand can look as if
  // it were open: the end of the scope around it says so.
  void ExpectEnd(bool is_innermost, bool may_be_gone) {
    const bool is_open = code_ == CUDA_ERROR_NOT_READY;
    const bool can_be_limit = HasPairs() && (!is_clean_ || (is_innermost && is_repeated_));
    is_at_limit_ = is_at_limit_ || (is_open && can_be_limit);
    ExpectOfClean(code_ == CUDA_SUCCESS || (is_open && !is_innermost) || may_be_gone);
  }

  // Only where it takes off what cuguest_push() left, as far as the program can know.
  bool PopByHand() {
    const Open* const top = Top();
    if (top == nullptr || top->scope != kPush || has_mail_) return false;
    for (const Open& open : open_) {
      if (open.scope == kPush && open.is_disturbed) return false;
    }
    if (is_clean_ && (has_twice_ || contexts_.HasDied('M'))) return false;
    pairs_ += top->context;
    is_at_limit_ = is_at_limit_ || callees_.find(top->context) != std::string::npos;
    is_at_limit_ = is_at_limit_ || (!is_clean_ && (waits_ || has_twice_));
    has_mail_ = waits_;
    Forget(top);
    CUcontext popped = nullptr;
    code_ = TheDriver().CtxPopCurrent(&popped);
    return true;
  }

  bool HasPairs() const { return !pairs_.empty(); }
  bool HasHost() const {
    return std::any_of(open_.begin(), open_.end(),
                       [](const Open& open) { return open.kind == Kind::kHost; });
  }

  // Inside a guard or a push: what happens elsewhere is the host's own.
  bool Fault(const Step& step) {
    const Open* const top = Top();
    if (top == nullptr || top->kind == Kind::kHost || has_mail_) return false;
    if (HasPairs() && Find(kPush) != nullptr) return false;
    if (IsExact(sequence_.its) && HasHost()) return false;  // is the host's own
    if (top->may_be_gone) {                                 // who goes on in it has to ask
      const bool asks = top->scope != kPush && CanReassert(top->kind);
      if (top->scope == kPush) return false;
      const int scope = top->scope;
      Do(Step{asks ? Does::kReassert : Does::kEnd, scope});
      if (Open* const open = Find(scope)) open->may_be_gone = false;
      return false;
    }
    const bool pops = step.does == Does::kCalleePops;
    if (!pops && !contexts_.IsAlive(step.context)) return false;
    for (Open& open : open_) {
      open.is_disturbed = true;
      looks_same_ = looks_same_ || (!pops && open.context == step.context);
    }
    looks_same_ = looks_same_ || has_twice_;
    is_at_limit_ = is_at_limit_ || (!pops && pairs_.find(step.context) != std::string::npos);
    if (!pops) callees_ += step.context;
    looks_same_ = looks_same_ || (!pops && !host_.empty() && host_.back() == step.context);
    ++faults_;
    is_certain_ = sequence_.its == Class::kRawFaults && !pops && IsNowhere(step.context);
    CUcontext popped = nullptr;
    code_ = pops ? TheDriver().CtxPopCurrent(&popped)
            : step.does == Does::kCalleePushes
                ? TheDriver().CtxPushCurrent(contexts_.at(step.context))
                : TheDriver().CtxSetCurrent(contexts_.at(step.context));
    return true;
  }

  Contexts& contexts_;
  const Sequence& sequence_;
  const bool is_clean_;
  std::string host_;
  std::vector<Open> open_;
  std::unique_ptr<Scope> scopes_[kScopes + 1];
  CUresult code_ = CUDA_SUCCESS;
  bool says_over_ = false;
  bool has_mail_ = false;        // a scope was ended elsewhere, and is not closed yet
  std::string callees_;          // contexts that callees have left on the stack
  std::string pushed_;           // by cuguest_push()
  std::string pairs_;            // of a cuguest_push() and a pop by hand: the contexts
  bool is_repeated_ = false;     // a scope or a push entered what is on the stack
  bool has_twice_ = false;       // the host has a context on its stack twice
  bool looks_same_ = false;      // a callee has pushed what a scope has, or found
  bool waits_for_host_ = false;  // a HostScope has ended out of turn, or elsewhere
  bool waits_ = false;           // a scope has ended, perhaps before a push inside it
  bool is_at_limit_ = false;
  long faults_ = 0;
  long entered_ = 0;
  bool is_certain_ = false;  // the last fault brought a context that is nowhere else
  Outcome outcome_;
};

}  // namespace

Outcome Play(const Sequence& sequence) {
  static Contexts* const contexts = new Contexts;
  Outcome outcome;
  std::thread([&] { outcome = Player(contexts, sequence).Play(); }).join();
  return outcome;
}

namespace {

// Leaves out what can be, in pieces of `size`.
template <typename List, typename Fails>
bool LeaveOut(List* list, std::size_t size, Fails fails) {
  bool has_left_out = false;
  for (std::size_t at = 0; at + size <= list->size();) {
    List without = *list;
    without.erase(without.begin() + static_cast<long>(at),
                  without.begin() + static_cast<long>(at + size));
    std::swap(*list, without);
    if (fails()) {
      has_left_out = true;
    } else {
      std::swap(*list, without);
      ++at;
    }
  }
  return has_left_out;
}

}  // namespace

Sequence Shrunk(Sequence sequence) {
  const auto fails = [&] { return !Play(sequence).wrong.empty(); };
  for (std::size_t size = sequence.steps.size() / 2; size > 1; size /= 2) {
    LeaveOut(&sequence.steps, size, fails);
  }
  while (LeaveOut(&sequence.steps, 1, fails) || LeaveOut(&sequence.host, 1, fails)) {
  }
  return sequence;
}

}  // namespace scope_sequence

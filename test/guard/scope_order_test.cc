// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scopes that end in any order, of C++, of C and of both together. One that ends while another of
// its thread is open above it touches nothing and is not ready; it is closed when those above it
// have ended. So in whatever order they end the caller's stack is what it was, and the places of
// their records are free.
//
// Stacks are written bottom first, one letter an entry: X and A are the caller's, B and C are
// others, P is the device's primary context.

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cuguest/internal/this_thread.h"
#include "cuguest/location.h"
#include "test/guard/scope_cases.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(scope_order)

namespace {

using cuguest::Incident;
using cuguest::Location;
using scope_cases::Cast;
using scope_cases::Commit;
using scope_cases::Elides;
using scope_cases::Has;
using scope_cases::HasContext;
using scope_cases::kAllKinds;
using scope_cases::Kind;
using scope_cases::kNotReady;
using scope_cases::kOutOfTurn;
using scope_cases::Language;
using scope_cases::Make;
using scope_cases::NameOf;
using scope_cases::RequireNone;
using scope_cases::Scope;
using scope_cases::Wrong;
using Order = std::vector<int>;
using Kinds = std::vector<Incident::Kind>;

Cast* g_cast = nullptr;
void MakeCast() { g_cast = new Cast("XABC"); }
void DropCast() { delete std::exchange(g_cast, nullptr); }

// A scope of a plan, and what it enters: a letter, or of a capture guard the mode.
struct Part {
  Language language;
  Kind kind;
  char context;
  CUstreamCaptureMode mode;
};

enum class Form {
  kEnded,       // by the function that gives a code, and then once more
  kDropped,     // by its destructor, or the cleanup function
  kOverwritten  // likewise, and the object's memory is used for something else
};

struct Plan {
  std::string caller;
  std::vector<Part> parts;
  Order order;  // in which they end
  std::string fault = "";
  Form form = Form::kEnded;
  int elsewhere = -1;  // the place in `order` of the one that ends on another thread
};

std::string KeyOf(const Plan& plan) {
  constexpr const char* kForms[] = {"ended", "dropped", "overwritten"};
  std::string key = "[" + plan.caller + "]";
  for (const Part& part : plan.parts) {
    key += ", " + NameOf(part.language, part.kind);
    if (HasContext(part.kind)) key += std::string(" ") + part.context;
  }
  if (!plan.fault.empty()) key += "; " + plan.fault;
  key += std::string("; ") + kForms[static_cast<int>(plan.form)];
  for (const int each : plan.order) key += " " + std::to_string(each);
  if (plan.elsewhere >= 0) key += ", elsewhere " + std::to_string(plan.order[plan.elsewhere]);
  return key;
}

// What the scopes of one thread are to do.
class Model {
 public:
  explicit Model(std::string caller) : caller_(std::move(caller)) {}

  void Enter(const Part& part) {
    Close();
    const int self = static_cast<int>(entries_.size());
    if (part.kind == Kind::kHost) {
      for (Entry& each : entries_) {
        const bool is_guard = each.part.kind != Kind::kHost;
        if (is_guard && !each.is_closed && each.taken_out_by < 0) each.taken_out_by = self;
      }
    }
    entries_.push_back({part});
  }
  CUresult End(int which) {
    Close();
    const bool is_out = entries_[which].taken_out_by >= 0;
    const bool is_in_turn = is_out || !HasOpenAbove(which);
    SetEnded(which);
    if (is_in_turn) Close();
    return is_in_turn ? CUDA_SUCCESS : kNotReady;
  }
  // Its own thread closes it when that next ends or enters one. What a HostScope took out stays so.
  void EndElsewhere(int which) {
    SetEnded(which);
    entries_[which].is_lost = entries_[which].part.kind == Kind::kHost;
  }
  // Closes those on top that have ended.
  void Close() {
    CloseOf(true);
    CloseOf(false);
  }

  std::string Stack() const {
    std::string stack = caller_;
    for (const Entry& each : entries_) {
      if (each.is_closed || each.taken_out_by >= 0 || each.part.kind == Kind::kHost) continue;
      if (each.part.kind == Kind::kNone) stack.clear();
      if (!HasContext(each.part.kind)) continue;
      const bool is_current = !stack.empty() && stack.back() == each.part.context;
      if (!Elides(each.part.kind) || !is_current) stack += each.part.context;
    }
    return stack;
  }
  CUstreamCaptureMode Mode() const {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    for (const Entry& each : entries_) {
      const bool is_in = !each.is_closed && each.taken_out_by < 0;
      if (is_in && each.part.kind == Kind::kCapture) mode = each.part.mode;
    }
    return mode;
  }

 private:
  struct Entry {
    Part part;
    bool has_ended = false;
    bool is_closed = false;
    bool is_lost = false;   // a HostScope that cannot bring anything back
    int taken_out_by = -1;  // the HostScope, or -1
  };

  static bool IsOfCapture(const Entry& entry) { return entry.part.kind == Kind::kCapture; }
  bool HasOpenAbove(int which) const {
    return std::any_of(entries_.begin() + which + 1, entries_.end(), [&](const Entry& each) {
      const bool is_lost = each.taken_out_by >= 0 && entries_[each.taken_out_by].is_lost;
      return !each.has_ended && !is_lost && IsOfCapture(each) == IsOfCapture(entries_[which]);
    });
  }
  void SetEnded(int which) {
    Entry& entry = entries_[which];
    entry.has_ended = true;
    if (entry.taken_out_by >= 0) entry.is_closed = true;
  }
  void CloseOf(bool capture) {
    for (int i = static_cast<int>(entries_.size()) - 1; i >= 0; --i) {
      if (IsOfCapture(entries_[i]) != capture || entries_[i].is_closed) continue;
      if (!entries_[i].has_ended) return;
      entries_[i].is_closed = true;
      for (Entry& each : entries_) {
        if (each.taken_out_by == i && !entries_[i].is_lost) each.taken_out_by = -1;
      }
    }
  }

  const std::string caller_;
  std::vector<Entry> entries_;
};

// The calling thread's, which is left as it is.
CUstreamCaptureMode CaptureMode() {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  RAW(cuThreadExchangeStreamCaptureMode)(&mode);
  CUstreamCaptureMode mine = mode;
  RAW(cuThreadExchangeStreamCaptureMode)(&mine);
  return mode;
}
void SetCaptureMode(CUstreamCaptureMode mode) { RAW(cuThreadExchangeStreamCaptureMode)(&mode); }

struct Outcome {
  std::string wrong;                  // the first thing that is; "" if nothing is
  bool leaves_wrong_context = false;  // when all have ended
};

// Plays a plan, and compares with the model after each step.
class Run {
 public:
  Run(Cast& cast, const Plan& plan) : cast_(cast), plan_(plan), model_(plan.caller) {}

  Outcome operator()() {
    cast_.Set(plan_.caller);
    SetCaptureMode(CU_STREAM_CAPTURE_MODE_GLOBAL);
    for (const Part& part : plan_.parts) Enter(part);
    Commit(cast_, plan_.fault);
    for (int place = 0; place < static_cast<int>(plan_.order.size()); ++place) EndAt(place);
    if (plan_.elsewhere >= 0) Flush();
    Finish();
    return outcome_;
  }

 private:
  void Fail(const std::string& what) {
    if (outcome_.wrong.empty()) outcome_.wrong = what;
  }
  void Enter(const Part& part) {
    scopes_.push_back(Make(part.language, part.kind));
    const CUcontext context =
        HasContext(part.kind) ? cast_.at(part.context) : Scope::AsContext(part.mode);
    const CUresult code = scopes_.back()->Enter(context, Location::Here());
    if (code != CUDA_SUCCESS) Fail("entering gives " + std::to_string(code));
    model_.Enter(part);
    CompareStack("entering");
  }
  void EndAt(int place) {
    const int which = plan_.order[place];
    const std::string what = "end of " + std::to_string(which);
    Scope& scope = *scopes_[which];
    if (place == plan_.elsewhere) {
      std::thread([&] { EndOnThisOtherThread(scope, what); }).join();
      model_.EndElsewhere(which);
      expected_.push_back(Incident::Kind::kElsewhere);
    } else {
      const CUresult expected = model_.End(which);
      const bool is_dropped = plan_.form != Form::kEnded;
      if (is_dropped) {
        scope.Drop(plan_.form == Form::kOverwritten);
        if (expected == kNotReady) expected_.push_back(kOutOfTurn);
      } else {
        CompareCode(what, scope.End(), expected);
      }
    }
    CompareStack(what);
    if (plan_.form == Form::kEnded) {
      CompareCode("second " + what, scope.End(), scope.CodeOfSecondEnd());
      // It may close what ended elsewhere.
      if (place != plan_.elsewhere) CompareStack("second " + what);
    }
  }
  void EndOnThisOtherThread(Scope& scope, const std::string& what) {
    cast_.Set("XC");
    if (plan_.form == Form::kEnded) {
      CompareCode(what, scope.End(), kNotReady);
    } else {
      scope.Drop(plan_.form == Form::kOverwritten);
    }
    if (cast_.Get() != "XC") Fail(what + " changes the other thread's stack");
    cuguest_test::SetStack({});
  }
  // What ended elsewhere is closed at the latest when its own thread enters something.
  void Flush() {
    for (const Kind kind : {Kind::kAlwaysPush, Kind::kCapture}) {
      const Part part{Language::kCpp, kind, 'B', CU_STREAM_CAPTURE_MODE_RELAXED};
      Enter(part);
      const CUresult expected = model_.End(static_cast<int>(scopes_.size()) - 1);
      CompareCode("a last end", scopes_.back()->End(), expected);
      CompareStack("a last end");
    }
  }
  void Finish() {
    const std::string left = cast_.Get();
    const char current = left.empty() ? '0' : left.back();
    if (current != (plan_.caller.empty() ? '0' : plan_.caller.back())) {
      outcome_.leaves_wrong_context = true;
      Fail("[" + left + "] is left");
    }
    Kinds found;
    for (const auto& incident : cuguest_test::TakeIncidents()) found.push_back(incident.kind);
    if (plan_.fault.empty()) {
      if (left != plan_.caller) Fail("[" + left + "] is left");
      if (CaptureMode() != CU_STREAM_CAPTURE_MODE_GLOBAL) Fail("a capture mode is left");
      if (found != expected_) Fail("incidents" + TextOf(found) + ", and not" + TextOf(expected_));
    }
    const unsigned in_use = cuguest::internal::t_this_thread.depth;
    if (in_use != 0) Fail(std::to_string(in_use) + " records are in use");
    scopes_.clear();
    cuguest_test::SetStack({});
    cuguest_test::TakeIncidents();
  }

  static std::string TextOf(const Kinds& kinds) {
    std::string text;
    for (const Incident::Kind kind : kinds) text += " " + std::to_string(static_cast<int>(kind));
    return text.empty() ? " none" : text;
  }
  // After a fault the depth may be anything until all have ended, and so may be the codes.
  void CompareCode(const std::string& what, CUresult code, CUresult expected) {
    if (!plan_.fault.empty() || code == expected) return;
    Fail(what + " gives " + std::to_string(code) + ", and not " + std::to_string(expected));
  }
  void CompareStack(const std::string& what) {
    if (!plan_.fault.empty() || !outcome_.wrong.empty()) return;
    const std::string stack = cast_.Get();
    if (stack != model_.Stack()) {
      Fail("[" + stack + "] after the " + what + ", and not [" + model_.Stack() + "]");
    }
    if (CaptureMode() != model_.Mode()) Fail("another capture mode after the " + what);
  }

  Cast& cast_;
  const Plan& plan_;
  Model model_;
  std::vector<std::unique_ptr<Scope>> scopes_;
  Kinds expected_;
  Outcome outcome_;
};

// A sanitizer looks at how a plan is carried out, which is alike in many, and takes ten times as
// long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr long kOneOf = 7;
#else
constexpr long kOneOf = 1;
#endif

// Runs plans on a thread of their own. Where one goes wrong the thread's scopes may be anything, so
// that the next one has another thread.
class Walk {
 public:
  explicit Walk(const char* what) : what_(what) {}

  void Add(Plan plan) {
    if (added_++ % kOneOf != 0) return;
    plans_.push_back(std::move(plan));
    if (plans_.size() == 1000) Flush();
  }
  void Finish(long at_least) {
    Flush();
    RequireNone(what_, walked_, at_least / kOneOf, wrong_);
    BOOST_TEST_MESSAGE("  of those " << wrong_contexts_ << " leave a wrong context current");
  }

 private:
  void Flush() {
    std::size_t next = 0;
    while (next < plans_.size()) {
      std::thread([&] {
        while (next < plans_.size() && IsRight(plans_[next++])) {
        }
      }).join();
    }
    plans_.clear();
  }
  bool IsRight(const Plan& plan) {
    const Outcome outcome = Run(*g_cast, plan)();
    ++walked_;
    if (outcome.leaves_wrong_context) ++wrong_contexts_;
    if (!outcome.wrong.empty()) wrong_.Add(KeyOf(plan) + ": " + outcome.wrong);
    return outcome.wrong.empty();
  }

  const char* const what_;
  std::vector<Plan> plans_;
  long added_ = 0;
  long walked_ = 0;
  long wrong_contexts_ = 0;
  Wrong wrong_;
};

struct Sort {
  Language language;
  Kind kind;
};
std::vector<Sort> Sorts(const std::vector<Language>& languages) {
  std::vector<Sort> sorts;
  for (const Language language : languages) {
    for (const Kind kind : kAllKinds) {
      if (Has(language, kind)) sorts.push_back({language, kind});
    }
  }
  return sorts;
}
const std::vector<Language> kCppOnly = {Language::kCpp};
const std::vector<Language> kCOnly = {Language::kC};
const std::vector<Language> kBoth = {Language::kCpp, Language::kC};
const std::vector<std::string> kCallers = {"", "A", "XA"};
const std::vector<std::string> kFaults = {"+C", "=P", "-", "+own"};

// Calls `take` with every sequence of `count` of `sorts`, in every context: A, which may be the
// caller's, B, and C where B was before.
template <typename Take>
void EachParts(const std::vector<Sort>& sorts, int count, const Take& take,
               std::vector<Part> parts = {}) {
  constexpr CUstreamCaptureMode kModes[] = {CU_STREAM_CAPTURE_MODE_RELAXED,
                                            CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                            CU_STREAM_CAPTURE_MODE_GLOBAL};
  if (count == 0) return take(parts);
  const bool has_b =
      std::any_of(parts.begin(), parts.end(), [](const Part& part) { return part.context == 'B'; });
  for (const Sort& sort : sorts) {
    const std::string contexts = !HasContext(sort.kind) ? " " : has_b ? "ABC" : "AB";
    for (const char context : contexts) {
      parts.push_back({sort.language, sort.kind, context, kModes[parts.size() % 3]});
      EachParts(sorts, count - 1, take, parts);
      parts.pop_back();
    }
  }
}

template <typename Take>
void EachOrder(int count, const Take& take) {
  Order order(count);
  std::iota(order.begin(), order.end(), 0);
  do {
    take(order);
  } while (std::next_permutation(order.begin(), order.end()));
}

// The fault as its steps; "" where nobody is to repair it: a callee of the host's may do to the
// host's stack what it likes.
std::string StepsOf(const std::string& fault, const std::vector<Part>& parts) {
  const auto innermost = std::find_if(parts.rbegin(), parts.rend(),
                                      [](const Part& part) { return part.kind != Kind::kCapture; });
  if (innermost == parts.rend() || innermost->kind == Kind::kHost) return "";
  if (fault != "+own") return fault;
  return HasContext(innermost->kind) ? std::string("+") + innermost->context : "";
}

void AddOrders(Walk& walk, const std::vector<Sort>& sorts, int count,
               const std::vector<std::string>& callers, const std::vector<Form>& forms) {
  EachParts(sorts, count, [&](const std::vector<Part>& parts) {
    EachOrder(count, [&](const Order& order) {
      for (const std::string& caller : callers) {
        for (const Form form : forms) walk.Add({caller, parts, order, "", form});
      }
    });
  });
}

void AddFaults(Walk& walk, const std::vector<Sort>& sorts, int count,
               const std::vector<std::string>& callers) {
  EachParts(sorts, count, [&](const std::vector<Part>& parts) {
    for (const std::string& fault : kFaults) {
      const std::string steps = StepsOf(fault, parts);
      if (steps.empty()) continue;
      EachOrder(count, [&](const Order& order) {
        for (const std::string& caller : callers) walk.Add({caller, parts, order, steps});
      });
    }
  });
}

void AddElsewhere(Walk& walk, const std::vector<Sort>& sorts, int count,
                  const std::vector<std::string>& callers) {
  EachParts(sorts, count, [&](const std::vector<Part>& parts) {
    EachOrder(count, [&](const Order& order) {
      for (const std::string& caller : callers) {
        for (const Form form : {Form::kEnded, Form::kDropped}) {
          for (int place = 0; place < count; ++place) {
            walk.Add({caller, parts, order, "", form, place});
          }
        }
      }
    });
  });
}

const std::vector<Sort> kFew = {{Language::kCpp, Kind::kElide},
                                {Language::kC, Kind::kAlwaysPush},
                                {Language::kCpp, Kind::kHost}};
const std::vector<Sort> kSome = {{Language::kCpp, Kind::kScope},
                                 {Language::kC, Kind::kElide},
                                 {Language::kCpp, Kind::kAlwaysPush},
                                 {Language::kCpp, Kind::kNone},
                                 {Language::kC, Kind::kHost}};
const std::vector<Form> kEndedAndDropped = {Form::kEnded, Form::kDropped};

}  // namespace

BOOST_AUTO_TEST_SUITE(with_one_cast, *boost::unit_test::fixture(&MakeCast, &DropCast))

BOOST_AUTO_TEST_CASE(two_scopes_end_in_any_order) {
  Walk walk("orders of up to two, of both languages");
  for (const int count : {1, 2}) {
    AddOrders(walk, Sorts(kBoth), count, kCallers, kEndedAndDropped);
  }
  walk.Finish(9400);
}

BOOST_AUTO_TEST_CASE(three_scopes_end_in_any_order) {
  Walk cpp("orders of three, C++");
  AddOrders(cpp, Sorts(kCppOnly), 3, {"XA"}, kEndedAndDropped);
  cpp.Finish(59000);
  Walk c("orders of three, C");
  AddOrders(c, Sorts(kCOnly), 3, {"XA"}, kEndedAndDropped);
  c.Finish(22000);
  Walk both("orders of three, C++ and C");
  AddOrders(both, kSome, 3, kCallers, kEndedAndDropped);
  both.Finish(26000);
}

BOOST_AUTO_TEST_CASE(four_scopes_end_in_any_order) {
  Walk walk("orders of four, C++ and C");
  AddOrders(walk, kFew, 4, {"A"}, {Form::kEnded});
  walk.Finish(29000);
}

BOOST_AUTO_TEST_CASE(a_fault_before_they_end) {
  Walk two("orders of up to two after a fault, of both languages");
  for (const int count : {1, 2}) AddFaults(two, Sorts(kBoth), count, kCallers);
  two.Finish(17000);
  Walk three("orders of three after a fault, C++ and C");
  AddFaults(three, kSome, 3, kCallers);
  three.Finish(45000);
  Walk four("orders of four after a fault, C++ and C");
  AddFaults(four, kFew, 4, {"A"});
  four.Finish(100000);
}

BOOST_AUTO_TEST_CASE(one_ends_on_another_thread) {
  Walk two("orders of up to two and one elsewhere, of both languages");
  for (const int count : {1, 2}) AddElsewhere(two, Sorts(kBoth), count, {"XA"});
  two.Finish(6200);
  Walk three("orders of three and one elsewhere, C++ and C");
  AddElsewhere(three, kFew, 3, {"A"});
  three.Finish(6600);
}

namespace {

// Elided, and pushed: with nested scopes of either.
struct Deep {
  const char* name;
  std::string contexts;
};
const Deep kDeeps[] = {{"elided", "A"}, {"pushed", "BC"}, {"both", "BBCA"}};

// What goes wrong, or "".
std::string RunDeep(const Sort& sort, const std::string& contexts, const Order& order) {
  Cast& cast = *g_cast;
  cast.Set("XA");
  std::vector<std::unique_ptr<Scope>> scopes;
  std::string wrong;
  for (int i = 0; i < static_cast<int>(order.size()); ++i) {
    scopes.push_back(Make(sort.language, sort.kind));
    const CUcontext context = cast.at(contexts[i % contexts.size()]);
    if (scopes[i]->Enter(context, Location::Here()) != CUDA_SUCCESS) wrong = "cannot enter";
  }
  int open = static_cast<int>(order.size());
  std::vector<bool> has_ended(order.size());
  for (const int which : order) {
    while (open > 0 && has_ended[open - 1]) --open;
    const CUresult expected = which == open - 1 ? CUDA_SUCCESS : kNotReady;
    const CUresult code = scopes[which]->End();
    has_ended[which] = true;
    if (wrong.empty() && code != expected) {
      wrong = "end of " + std::to_string(which) + " gives " + std::to_string(code);
    }
  }
  const std::string left = cast.Get();
  if (left != "XA") wrong = "[" + left.substr(0, 20) + "] is left, " + wrong;
  scopes.clear();
  cuguest_test::SetStack({});
  if (!cuguest_test::TakeIncidents().empty() && wrong.empty()) wrong = "an incident";
  return wrong;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_thousand_nested_scopes) {
  long walked = 0;
  Wrong wrong;
  std::mt19937 random(1);
  for (const Sort& sort : Sorts(kBoth)) {
    const bool is_bounded = sort.kind == Kind::kExact || !HasContext(sort.kind);
    if (is_bounded) continue;
    for (const Deep& deep : kDeeps) {
      for (const int depth : {1, 16, 17, 1000}) {
        Order forward(depth);
        std::iota(forward.begin(), forward.end(), 0);
        const Order reverse(forward.rbegin(), forward.rend());
        Order shuffled = forward;
        std::shuffle(shuffled.begin(), shuffled.end(), random);
        const std::pair<const char*, Order> orders[] = {
            {"reverse", reverse}, {"forward", forward}, {"random", shuffled}};
        for (const auto& [name, order] : orders) {
          std::string text;
          std::thread([&, &order = order] { text = RunDeep(sort, deep.contexts, order); }).join();
          ++walked;
          if (text.empty()) continue;
          wrong.Add(NameOf(sort.language, sort.kind) + ", " + deep.name + ", " +
                    std::to_string(depth) + ", " + name + ": " + text);
        }
      }
    }
  }
  RequireNone("nests", walked, 9 * 36, wrong);
}

BOOST_AUTO_TEST_CASE(hand_over_hand) {
  long walked = 0;
  Wrong wrong;
  for (const Sort& first : Sorts(kBoth)) {
    const Language other = first.language == Language::kC ? Language::kCpp : Language::kC;
    if (first.kind == Kind::kExact || !HasContext(first.kind)) continue;
    for (const bool is_mixed : {false, true}) {
      if (is_mixed && !Has(other, first.kind)) continue;
      for (const std::string contexts : {"A", "BC", "BBCA"}) {
        std::string text;
        std::thread([&] {
          const Cast& cast = *g_cast;
          cast.Set("XA");
          std::unique_ptr<Scope> outer;
          for (int round = 0; round < 10000; ++round) {
            auto inner = Make(is_mixed && round % 2 != 0 ? other : first.language, first.kind);
            const char letter = contexts[round % contexts.size()];
            const CUresult entered = inner->Enter(cast.at(letter), Location::Here());
            const CUresult ended = outer != nullptr ? outer->End() : kNotReady;
            if (text.empty() &&
                (entered != CUDA_SUCCESS || ended != kNotReady || cast.Current() != letter)) {
              text = "round " + std::to_string(round) + ": entered " + std::to_string(entered) +
                     ", ended " + std::to_string(ended) + ", in " + cast.Current();
            }
            if (outer != nullptr) outer->Drop(true);
            outer = std::move(inner);
          }
          if (outer->End() != CUDA_SUCCESS && text.empty()) text = "the last one's end fails";
          const std::string left = cast.Get();
          if (left != "XA") text = "[" + left.substr(0, 20) + "] is left, " + text;
          outer.reset();
          cuguest_test::SetStack({});
          if (!cuguest_test::TakeIncidents().empty() && text.empty()) text = "an incident";
        }).join();
        ++walked;
        if (text.empty()) continue;
        wrong.Add(NameOf(first.language, first.kind) + (is_mixed ? " and the other language" : "") +
                  ", " + contexts + ": " + text);
      }
    }
  }
  RequireNone("hand over hand", walked, 40, wrong);
}

// What ended out of turn is not read any more. Last, since an engine that reads it may crash.
BOOST_AUTO_TEST_CASE(memory_of_ended_scopes_is_reused) {
  Walk walk("orders with memory that is used again, of both languages");
  for (const int count : {1, 2}) AddOrders(walk, Sorts(kBoth), count, {"XA"}, {Form::kOverwritten});
  AddOrders(walk, kSome, 3, {"XA"}, {Form::kOverwritten});
  walk.Finish(5900);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE_END()

// SPDX-License-Identifier: Apache-2.0
//
// Note [How a guard restores] of context_guard.h as a test: every fault a callee can
// commit, in every mode, from every position of the caller. A row that does not end
// with the caller's exact stack, or is not seen, is one of the cases of Note [What is
// inferred], and stands in `kExceptions`; everything else must be repaired exactly.
//
// Stacks are written bottom first, one letter an entry: X and A are the caller's, T is
// the guard's context, C and D are a callee's, P is the device's primary context.

#include "test/support/test.h"
// The data extension needs the framework's own header before it.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/driver.h"
#include "cuguest/primary_context.h"
#include "cuguest/testing/sim.h"

BOOST_AUTO_TEST_SUITE(repair_table)

namespace {

namespace bdata = boost::unit_test::data;
using cuguest::ContextGuard;
using cuguest::GuardMode;
using cuguest::Incident;
using cuguest::IncidentKind;
using cuguest::Repair;

// The letters of one case, with contexts behind them.
class Cast {
 public:
  Cast() {
    for (const char letter : std::string("XATCD")) own_.emplace(letter, 0);
    primary_ = std::move(cuguest::PrimaryContext::Retain(cuguest::Device::Borrow(0))).value();
  }
  CUcontext at(char letter) const { return letter == 'P' ? primary_.get() : own_.at(letter).get(); }
  // Destroys T as a callee would; it comes back for the next case.
  void DestroyT() {
    const cuguest::Driver& driver = **cuguest::Driver::Get();
    BOOST_REQUIRE(driver.CtxDestroy(at('T')) == CUDA_SUCCESS);
    t_is_dead_ = true;
  }
  void ReviveT() {
    if (!std::exchange(t_is_dead_, false)) return;
    own_.at('T').release();
    own_.erase('T');
    own_.emplace('T', 0);
  }
  void Set(const std::string& stack) const {
    std::vector<CUcontext> entries;
    for (const char letter : stack) entries.push_back(at(letter));
    cuguest_test::SetStack(entries);
  }
  std::string Get() const {
    std::string letters;
    for (const CUcontext entry : cuguest_test::GetStack()) letters += LetterOf(entry);
    return letters;
  }
  char LetterOf(CUcontext context) const {
    if (context == nullptr) return '0';
    if (context == primary_.get()) return 'P';
    for (const auto& [letter, own] : own_) {
      if (own.get() == context) return letter;
    }
    return '?';
  }

 private:
  std::map<char, cuguest_test::OwnContext> own_;
  cuguest::PrimaryContext primary_;
  bool t_is_dead_ = false;
};

// One cast for the whole table, since a context takes a tenth of a second to make.
Cast* g_cast = nullptr;
void MakeCast() { g_cast = new Cast; }
void DropCast() { delete std::exchange(g_cast, nullptr); }

// What a callee does, one step a character pair: "+C" pushes C, "=P" replaces the top by
// P, "-" pops, "!" destroys T, "0" is cuCtxSetCurrent(nullptr).
void Commit(Cast& cast, const std::string& fault) {
  const cuguest::Driver& driver = **cuguest::Driver::Get();
  CUcontext popped = nullptr;
  for (std::size_t i = 0; i < fault.size(); ++i) {
    CUresult code = CUDA_SUCCESS;
    switch (fault[i]) {
      case '+':
        code = driver.CtxPushCurrent(cast.at(fault[++i]));
        break;
      case '=':
        code = driver.CtxSetCurrent(cast.at(fault[++i]));
        break;
      case '-':
        code = driver.CtxPopCurrent(&popped);
        break;
      case '0':
        code = driver.CtxSetCurrent(nullptr);
        break;
      case '!':
        cast.DestroyT();
        break;
    }
    // A pop that meets an empty stack is part of some faults.
    BOOST_REQUIRE(code == CUDA_SUCCESS || code == CUDA_ERROR_INVALID_CONTEXT);
  }
}

const char* const kFaults[] = {
    "",      // clean
    "+C-",   // clean, with a push and a pop of its own
    "=P",    // cudaSetDevice
    "=C",    // cuCtxSetCurrent, not restored
    "-+C",   // the same by hand
    "+C",    // a push left behind
    "+C+C",  // two of the same, as a loop leaves them
    "+C+D",  // two different ones
    "+T",    // a push of the guard's own context left behind
    "+A",    // a push of the caller's context left behind
    "=P+C",  // replaced, and a push left behind
    "-",     // one pop too many
    "0",     // the same, as cuCtxSetCurrent(nullptr)
    "--",    // two pops too many
    "--+T",  // two pops, and the guard's own context pushed again
    "!",     // the guard's context destroyed
    "!+C",   // and a push left behind
};

// Which caller: the guard's context is current, another is, or none is.
const char* const kCallers[] = {"XT", "XA", "A", "", "T"};

const GuardMode kModes[] = {GuardMode::kElide, GuardMode::kAlwaysPush, GuardMode::kExact};

const char* ModeName(GuardMode mode) {
  return mode == GuardMode::kElide ? "elide" : mode == GuardMode::kExact ? "exact" : "push";
}

// "none", or "replaced", "replaced inferred", ...
std::string Seen(const std::vector<Incident>& incidents) {
  if (incidents.empty()) return "none";
  constexpr const char* kKinds[] = {"replaced", "leak", "pop", "destroyed", "failed"};
  std::string text = kKinds[static_cast<int>(incidents[0].kind)];
  if (incidents[0].repair == Repair::kInferred) text += " inferred";
  if (incidents[0].repair == Repair::kUnrepaired) text += " unrepaired";
  return incidents.size() == 1 ? text : text + " and more";
}

std::string KindOf(const std::string& fault) {
  if (fault[0] == '=' || fault == "-+C") return "replaced";
  if (fault[0] == '+') return "leak";
  if (fault[0] == '!') return "destroyed";
  return "pop";
}

// What must be seen where nothing is ambiguous. For certain only with the whole stack known.
std::string Expected(const std::string& fault, const std::string& caller, GuardMode mode) {
  if (fault.empty() || fault == "+C-") return "none";
  return KindOf(fault) + (caller.empty() || mode == GuardMode::kExact ? "" : " inferred");
}

// The rows that are not repaired exactly, or read as another fault, and why.
struct Exception {
  std::string seen;
  std::string stack;
};
const std::map<std::string, Exception> kExceptions = {
    // A leaked push of our own context: see Note [What is inferred].
    {"elide [A] +T", {"none", "AT"}},
    {"elide [T] +T", {"none", "TT"}},
    {"elide [XA] +T", {"none", "XAT"}},
    {"elide [XT] +T", {"none", "XTT"}},
    {"elide [] +T", {"none", "T"}},
    {"push [T] +T", {"none", "TT"}},
    {"push [XT] +T", {"none", "XTT"}},
    // Two pops and a push of our own context: unseen likewise, or nothing at all is wrong,
    // because there was only one entry to pop.
    {"elide [A] --+T", {"none", ""}},
    {"elide [T] --+T", {"none", "T"}},
    {"elide [XA] --+T", {"none", "X"}},
    {"elide [XT] --+T", {"none", "T"}},
    {"elide [] --+T", {"none", ""}},
    {"exact [] --+T", {"none", ""}},
    {"push [] --+T", {"none", ""}},
    {"push [A] --+T", {"pop inferred", "A"}},
    {"push [XA] --+T", {"pop inferred", "XA"}},
    // Elided: another context on top, not primary, and not ours beneath, is read as an extra pop.
    {"elide [T] +C+D", {"pop inferred", "TCDT"}},
    {"elide [T] -+C", {"pop inferred", "CT"}},
    {"elide [T] =C", {"pop inferred", "CT"}},
    {"elide [T] =P+C", {"pop inferred", "PCT"}},
    {"elide [XT] +C+D", {"pop inferred", "XTCDT"}},
    {"elide [XT] -+C", {"pop inferred", "XCT"}},
    {"elide [XT] =C", {"pop inferred", "XCT"}},
    {"elide [XT] =P+C", {"pop inferred", "XPCT"}},
    // Elided: a primary context on top is read as a replacement, and a top that is gone as a pop.
    {"elide [T] -", {"pop inferred", "T"}},
    {"elide [T] --", {"pop inferred", "T"}},
    {"elide [T] 0", {"pop inferred", "T"}},
    {"elide [T] =P", {"replaced inferred", "T"}},
    {"elide [XT] -", {"pop inferred", "XT"}},
    {"elide [XT] --", {"pop inferred", "T"}},
    {"elide [XT] 0", {"pop inferred", "XT"}},
    {"elide [XT] =P", {"replaced inferred", "XT"}},
    // Pushed: the stack is restored, on the likeliest reading of what was found.
    {"elide [A] --", {"pop inferred", "A"}},
    {"elide [A] =P+C", {"replaced inferred", "A"}},
    {"elide [XA] --", {"pop inferred", "XA"}},
    {"elide [XA] =P+C", {"replaced inferred", "XA"}},
    {"push [A] --", {"pop inferred", "A"}},
    {"push [A] =P+C", {"replaced inferred", "A"}},
    {"push [T] --", {"pop inferred", "T"}},
    {"push [T] =P+C", {"replaced inferred", "T"}},
    {"push [XA] --", {"pop inferred", "XA"}},
    {"push [XA] =P+C", {"replaced inferred", "XA"}},
    {"push [XT] --", {"pop inferred", "XT"}},
    {"push [XT] =P+C", {"replaced inferred", "XT"}},
    // The caller's own context was destroyed: its entry cannot come back.
    {"elide [T] !", {"destroyed unrepaired", ""}},
    {"elide [T] !+C", {"destroyed unrepaired", "C"}},
    {"elide [XT] !", {"destroyed unrepaired", "X"}},
    {"elide [XT] !+C", {"destroyed unrepaired", "XC"}},
    {"exact [T] !", {"destroyed unrepaired", ""}},
    {"exact [T] !+C", {"destroyed unrepaired", ""}},
    {"exact [XT] !", {"destroyed unrepaired", "X"}},
    {"exact [XT] !+C", {"destroyed unrepaired", "X"}},
    {"push [T] !", {"destroyed unrepaired", ""}},
    {"push [XT] !", {"destroyed unrepaired", "X"}},
};

struct Outcome {
  std::string seen;
  std::string stack;
  CUcontext current;
  int line;
  std::vector<Incident> incidents;
};

Outcome Run(Cast& cast, const std::string& caller, const std::string& fault, GuardMode mode) {
  Outcome outcome;
  cast.Set(caller);
  {
    ContextGuard guard(cast.at('T'), mode);
    outcome.line = __LINE__ - 1;
    BOOST_REQUIRE_EQUAL(guard.result(), CUDA_SUCCESS);
    BOOST_TEST((cast.Get().back() == 'T'));
    Commit(cast, fault);
  }
  outcome.stack = cast.Get();
  const auto stack = cuguest_test::GetStack();
  outcome.current = stack.empty() ? nullptr : stack.back();
  outcome.incidents = cuguest_test::TakeIncidents();
  outcome.seen = Seen(outcome.incidents);
  cuguest_test::SetStack({});
  return outcome;
}

// The stack that can be expected where nothing is ambiguous: the caller's, less the
// entries of a context that no longer exists.
std::string Restored(const std::string& caller, const std::string& fault) {
  std::string stack = caller;
  if (fault[0] == '!' && !stack.empty() && stack.back() == 'T') stack.pop_back();
  return stack;
}

// What two guards, one after the other, or one that moves, do with a callee that commits `first` in
// the first context and one that commits `second` in the second.
struct Moved {
  std::string inside;  // as `second` found it
  std::string stack;
  std::string seen;
};

// By letters: each run has a T of its own, if the callee destroys it.
std::string Told(const Cast& cast) {
  std::string text;
  for (const Incident& incident : cuguest_test::TakeIncidents()) {
    text += std::to_string(static_cast<int>(incident.kind)) + "," +
            std::to_string(static_cast<int>(incident.repair)) + "," +
            cast.LetterOf(incident.expected) + "," + cast.LetterOf(incident.found) + " ";
  }
  return text;
}

Moved RunMoved(Cast& cast, const std::string& caller, GuardMode mode, char from, char to,
               const std::string& first, const std::string& second, bool moves) {
  cast.Set(caller);
  const cuguest::ContextRef destination = cuguest::ContextRef::Borrow(cast.at(to));
  Moved moved;
  {
    std::optional<ContextGuard> guard;
    guard.emplace(cast.at(from), cuguest::Location::Here(), mode);
    Commit(cast, first);
    if (moves) {
      BOOST_TEST(guard->MoveTo(destination) == CUDA_SUCCESS);
    } else {
      guard.reset();
      guard.emplace(destination, cuguest::Location::Here(), mode);
    }
    BOOST_TEST(guard->ok());
    BOOST_TEST(guard->get() == cast.at(to));
    moved.inside = cast.Get();
    Commit(cast, second);
  }
  moved.stack = cast.Get();
  moved.seen = Told(cast);
  cuguest_test::SetStack({});
  cast.ReviveT();
  return moved;
}

void CompareMoved(Cast& cast, const std::string& caller, GuardMode mode, char from, char to,
                  const std::string& first, const std::string& second) {
  const Moved two = RunMoved(cast, caller, mode, from, to, first, second, false);
  const Moved one = RunMoved(cast, caller, mode, from, to, first, second, true);
  BOOST_TEST_CONTEXT(ModeName(mode) << " [" << caller << "] " << first << ", from " << from
                                    << " to " << to << ", " << second) {
    const bool looks_at_the_top_only = from == to && mode != GuardMode::kExact;
    if (!looks_at_the_top_only) BOOST_TEST(one.inside == two.inside);
    BOOST_TEST(one.stack == two.stack);
    BOOST_TEST(one.seen == two.seen);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(with_one_cast, *boost::unit_test::fixture(&MakeCast, &DropCast))

BOOST_DATA_TEST_CASE(every_fault_in_every_mode,
                     bdata::make(kFaults) * bdata::make(kCallers) * bdata::xrange(3), fault, caller,
                     mode_index) {
  const GuardMode mode = kModes[mode_index];
  const std::string key = std::string(ModeName(mode)) + " [" + caller + "] " + fault;
  Cast& cast = *g_cast;
  const Outcome outcome = Run(cast, caller, fault, mode);
  std::string seen = Expected(fault, caller, mode);
  std::string stack = Restored(caller, fault);
  if (const auto exception = kExceptions.find(key); exception != kExceptions.end()) {
    seen = exception->second.seen;
    stack = exception->second.stack;
  }
  BOOST_TEST_CONTEXT(key) {
    BOOST_TEST(outcome.seen == seen);
    BOOST_TEST(outcome.stack == stack);
    for (const Incident& incident : outcome.incidents) {
      BOOST_TEST(incident.line == outcome.line);
      BOOST_TEST(std::string(incident.file) == __FILE__);
      BOOST_TEST(incident.expected == (fault[0] == '!' ? incident.expected : cast.at('T')));
      BOOST_TEST(incident.current == outcome.current);
    }
  }
  cast.ReviveT();
}

// "The caller's stack is what it was" is said only where it is: of every caller's stack of up to
// two entries, also of equal ones, after every callee of up to three calls, in every mode.
BOOST_AUTO_TEST_CASE(repaired_is_claimed_of_the_callers_stack_alone) {
  const Cast& cast = *g_cast;
  std::vector<std::string> callers = {""};
  for (std::size_t i = 0; i < callers.size() && callers[i].size() < 2; ++i) {
    for (const char letter : std::string("ATP")) callers.push_back(callers[i] + letter);
  }
  std::vector<std::string> faults = {""};
  std::vector<std::string> steps = {"-"};
  for (const char letter : std::string("ATP")) {
    for (const char step : std::string("+=")) steps.push_back(std::string{step, letter});
  }
  for (std::size_t begin = 0, length = 1; length <= 3; ++length) {
    const std::size_t end = faults.size();
    for (; begin < end; ++begin) {
      for (const std::string& step : steps) faults.push_back(faults[begin] + step);
    }
  }
  long claims = 0;
  std::vector<std::string> wrong;
  for (const GuardMode mode : kModes) {
    for (const std::string& caller : callers) {
      for (const std::string& fault : faults) {
        cast.Set(caller);
        {
          const ContextGuard guard(cast.at('T'), mode);
          BOOST_REQUIRE_EQUAL(guard.result(), CUDA_SUCCESS);
          Commit(*g_cast, fault);
        }
        const std::string left = cast.Get();
        cuguest_test::SetStack({});
        const auto incidents = cuguest_test::TakeIncidents();
        if (incidents.empty() || incidents[0].repair != Repair::kRepaired) continue;
        ++claims;
        if (left != caller) {
          wrong.push_back(std::string(ModeName(mode)) + " [" + caller + "] " + fault + ": [" +
                          left + "]");
        }
      }
    }
  }
  BOOST_TEST(claims > 1000);
  BOOST_TEST(wrong.empty(), wrong.size() << " of " << claims << " claims are wrong, the first: "
                                         << (wrong.empty() ? "" : wrong.front()));
}

// Every fault before the move, and every fault after it: as of two guards. Where it does not leave
// its context the end finds what the move did not.
BOOST_DATA_TEST_CASE(a_move_is_an_end_and_a_beginning,
                     bdata::make(kFaults) * bdata::make(kCallers) * bdata::xrange(3), fault, caller,
                     mode_index) {
  const GuardMode mode = kModes[mode_index];
  Cast& cast = *g_cast;
  // To destroy T and make it again takes a real driver a tenth of a second and more, four times for
  // each of the others.
  const bool is_slow = fault[0] == '!' && !cuguest::testing::Sim::IsActive();
  for (const char other : std::string(is_slow ? "A" : "ATD")) {
    // In T a callee commits the fault; then on to the others, or again to T unless it is gone.
    if (other != 'T' || fault[0] != '!') CompareMoved(cast, caller, mode, 'T', other, fault, "");
    CompareMoved(cast, caller, mode, other, 'T', "", fault);
  }
}

// Every exception is met: one that no longer occurs must leave the table.
BOOST_AUTO_TEST_CASE(the_exceptions_are_of_this_table) {
  for (const auto& [key, exception] : kExceptions) {
    bool met = false;
    for (const char* fault : kFaults) {
      for (const char* caller : kCallers) {
        for (const GuardMode mode : kModes) {
          met = met || key == std::string(ModeName(mode)) + " [" + caller + "] " + fault;
        }
      }
    }
    BOOST_TEST(met, key);
    BOOST_TEST((exception.seen != "" && exception.seen.find("failed") == std::string::npos));
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE_END()

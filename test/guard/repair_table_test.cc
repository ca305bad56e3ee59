// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Note [How a guard restores] of docs/notes.md as a test: every fault a callee can
// commit, in every mode, of C++ and of C, from every position of the caller. A row that does
// not end with the caller's exact stack, or is not seen, is one of the cases of Note [What is
// inferred], and stands in `kExceptions`; everything else must be repaired exactly. None ends
// unseen with another context current than the caller's.
//
// Stacks are written bottom first, one letter an entry: X and A are the caller's, T is
// the guard's context, C and D are a callee's, P is the device's primary context.

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/incident.h"
#include "cuguest/location.h"
#include "test/guard/scope_cases.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(repair_table)

namespace {

using cuguest::Incident;
using cuguest::Location;
using scope_cases::Cast;
using scope_cases::Commit;
using scope_cases::Kind;
using scope_cases::Language;
using scope_cases::Make;
using scope_cases::NameOf;
using scope_cases::RequireNone;
using scope_cases::Wrong;

// One cast for the whole table, since a context takes a tenth of a second to make.
Cast* g_cast = nullptr;
void MakeCast() { g_cast = new Cast("XATCD"); }
void DropCast() { delete std::exchange(g_cast, nullptr); }

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
    "+T+T",  // two of them
    "+T+C",  // and a push of another context
    "+C+T",  // the same in the other order
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

// What is walked, and which rows of kExceptions are its own: of a home those of a guard that
// always pushes, and of what elides, by reference or not, those of a guard that elides.
struct Row {
  Language language;
  Kind kind;
  const char* mode;
};
const Row kRows[] = {
    {Language::kCpp, Kind::kElide, "elide"},   {Language::kCpp, Kind::kByRef, "elide"},
    {Language::kCpp, Kind::kScope, "elide"},   {Language::kCpp, Kind::kAlwaysPush, "push"},
    {Language::kCpp, Kind::kHome, "push"},     {Language::kCpp, Kind::kExact, "exact"},
    {Language::kC, Kind::kElide, "elide"},     {Language::kC, Kind::kByRef, "elide"},
    {Language::kC, Kind::kAlwaysPush, "push"}, {Language::kC, Kind::kHome, "push"},
};

std::string KeyOf(const std::string& mode, const std::string& caller, const std::string& fault) {
  return mode + " [" + caller + "] " + fault;
}

// "none", or "replaced", "replaced inferred", ...
std::string Seen(const std::vector<Incident>& incidents) {
  if (incidents.empty()) return "none";
  constexpr const char* kKinds[] = {"replaced", "leak",  "pop",       "destroyed", "failed",
                                    "mode",     "error", "elsewhere", "unasked",   "out of turn"};
  std::string text = kKinds[static_cast<int>(incidents[0].kind)];
  if (incidents[0].repair == Incident::Repair::kInferred) text += " inferred";
  if (incidents[0].repair == Incident::Repair::kUnrepaired) text += " unrepaired";
  return incidents.size() == 1 ? text : text + " and more";
}

std::string KindOf(const std::string& fault) {
  if (fault[0] == '=' || fault == "-+C") return "replaced";
  if (fault[0] == '+') return "leak";
  if (fault[0] == '!') return "destroyed";
  return "pop";
}

// What must be seen where nothing is ambiguous. For certain only with the whole stack known.
std::string Expected(const std::string& fault, const std::string& caller, const std::string& mode) {
  if (fault.empty() || fault == "+C-") return "none";
  return KindOf(fault) + (caller.empty() || mode == "exact" ? "" : " inferred");
}

// The rows that are not repaired exactly, or read as another fault, and why.
struct Exception {
  std::string seen;
  std::string stack;
};
const std::map<std::string, Exception> kExceptions = {
    // A leaked push of our own context: see Note [What is inferred].
    {"elide [T] +T", {"none", "TT"}},
    {"elide [XT] +T", {"none", "XTT"}},
    {"push [T] +T", {"none", "TT"}},
    {"push [XT] +T", {"none", "XTT"}},
    // Two pops and a push of our own context: unseen likewise, or nothing at all is wrong,
    // because there was only one entry to pop.
    {"elide [A] --+T", {"pop inferred", "A"}},
    {"elide [T] --+T", {"none", "T"}},
    {"elide [XA] --+T", {"pop inferred", "XA"}},
    {"elide [XT] --+T", {"none", "T"}},
    {"elide [] --+T", {"none", ""}},
    {"exact [] --+T", {"none", ""}},
    {"push [] --+T", {"none", ""}},
    {"push [A] --+T", {"pop inferred", "A"}},
    {"push [XA] --+T", {"pop inferred", "XA"}},
    // Elided: another context on top, and ours not beneath, is read as a replaced top: as an extra
    // pop, each cuCtxSetCurrent grew the stack. Once and again: likeliest_reading_test.cc.
    {"elide [T] =P+C", {"replaced inferred", "PT"}},
    {"elide [XT] =P+C", {"replaced inferred", "XPT"}},
    {"elide [XT] -", {"replaced inferred", "T"}},
    {"elide [XT] 0", {"replaced inferred", "T"}},
    // An empty stack shows no more than that the last entry was popped.
    {"elide [XT] --", {"pop inferred", "T"}},
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
    {"push [T] !+C", {"destroyed unrepaired", ""}},
    {"push [XT] !", {"destroyed unrepaired", "X"}},
    {"push [XT] !+C", {"destroyed unrepaired", "X"}},
};

// Where a callee leaves pushes of our context and others, it is promised that the caller's context
// is current, and that the rest is not claimed: these are left so, or as every other row.
const std::map<std::string, Exception> kOwnPushes = {
    {"elide [A] +C+T", {"pop inferred", "ATCA"}},
    {"elide [A] +T+C", {"pop unrepaired", "ATTCA"}},
    {"elide [T] +C+T", {"none", "TCT"}},
    {"elide [T] +T+C", {"leak inferred", "TT"}},
    {"elide [T] +T+T", {"none", "TTT"}},
    {"elide [XA] +C+T", {"pop inferred", "XATCA"}},
    {"elide [XA] +T+C", {"pop unrepaired", "XATTCA"}},
    {"elide [XT] +C+T", {"none", "XTCT"}},
    {"elide [XT] +T+C", {"leak inferred", "XTT"}},
    {"elide [XT] +T+T", {"none", "XTTT"}},
    {"push [A] +C+T", {"pop inferred", "ATCA"}},
    {"push [A] +T+C", {"pop unrepaired", "ATTCA"}},
    {"push [T] +C+T", {"pop inferred", "TTCT"}},
    {"push [T] +T+C", {"leak inferred", "TT"}},
    {"push [T] +T+T", {"none", "TTT"}},
    {"push [XA] +C+T", {"pop inferred", "XATCA"}},
    {"push [XA] +T+C", {"pop unrepaired", "XATTCA"}},
    {"push [XT] +C+T", {"pop inferred", "XTTCT"}},
    {"push [XT] +T+C", {"leak inferred", "XTT"}},
    {"push [XT] +T+T", {"none", "XTTT"}},
};

struct Outcome {
  std::string seen;
  std::string stack;
  std::string incidents;  // what is wrong with them
};

// A thread of its own has no repair behind it, which would be evidence (likeliest_reading_test.cc).
template <typename Work>
auto OnNewThread(const Work& work) {
  decltype(work()) result;
  std::thread([&] { result = work(); }).join();
  return result;
}

Outcome RunHere(Cast& cast, const std::string& caller, const std::string& fault, const Row& row) {
  cast.Set(caller);
  const auto scope = Make(row.language, row.kind);
  const Location where = Location::Here();
  BOOST_REQUIRE_EQUAL(scope->Enter(cast.at('T'), where), CUDA_SUCCESS);
  Outcome outcome;
  if (cast.Get().back() != 'T') outcome.incidents += " T was not entered";
  const CUcontext ours = cast.at('T');
  Commit(cast, fault);
  scope->Drop(false);
  outcome.stack = cast.Get();
  const auto stack = cuguest_test::GetStack();
  const CUcontext current = stack.empty() ? nullptr : stack.back();
  const std::vector<Incident> incidents = cuguest_test::TakeIncidents();
  for (const Incident& incident : incidents) {
    if (incident.line != where.line || std::strcmp(incident.file, __FILE__) != 0) {
      outcome.incidents += " names another place";
    }
    if (fault[0] != '!' && incident.expected != ours) outcome.incidents += " expected another";
    if (incident.current != current) outcome.incidents += " tells another current context";
  }
  outcome.seen = Seen(incidents);
  cuguest_test::SetStack({});
  cast.ReviveT();
  return outcome;
}

Outcome Run(Cast& cast, const std::string& caller, const std::string& fault, const Row& row) {
  return OnNewThread([&] { return RunHere(cast, caller, fault, row); });
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

Moved RunMovedHere(Cast& cast, const std::string& caller, const Row& row, char from, char to,
                   const std::string& first, const std::string& second, bool moves) {
  cast.Set(caller);
  Moved moved;
  auto scope = Make(row.language, row.kind);
  CUresult code = scope->Enter(cast.at(from), Location::Here());
  BOOST_REQUIRE_EQUAL(code, CUDA_SUCCESS);
  Commit(cast, first);
  if (moves) {
    code = scope->MoveTo(cast.at(to), Location::Here());
  } else {
    scope->Drop(false);
    scope = Make(row.language, row.kind);
    code = scope->Enter(cast.at(to), Location::Here());
  }
  moved.inside = code == CUDA_SUCCESS ? cast.Get() : "code " + std::to_string(code);
  Commit(cast, second);
  scope->Drop(false);
  moved.stack = cast.Get();
  moved.seen = Told(cast);
  cuguest_test::SetStack({});
  cast.ReviveT();
  return moved;
}

Moved RunMoved(Cast& cast, const std::string& caller, const Row& row, char from, char to,
               const std::string& first, const std::string& second, bool moves) {
  return OnNewThread(
      [&] { return RunMovedHere(cast, caller, row, from, to, first, second, moves); });
}

// What one guard that moves did otherwise than two; "" if nothing.
std::string CompareMoved(Cast& cast, const std::string& caller, const Row& row, char from, char to,
                         const std::string& first, const std::string& second) {
  const Moved two = RunMoved(cast, caller, row, from, to, first, second, false);
  const Moved one = RunMoved(cast, caller, row, from, to, first, second, true);
  std::string text;
  const bool looks_at_the_top_only = from == to;
  if (one.inside.back() != to) text += " is in another context";
  if (!looks_at_the_top_only && one.inside != two.inside) {
    text += " inside [" + one.inside + "] and not [" + two.inside + "]";
  }
  if (one.stack != two.stack) text += " leaves [" + one.stack + "] and not [" + two.stack + "]";
  if (one.seen != two.seen) text += " sees " + one.seen + "and not " + two.seen;
  return text;
}

// A real driver takes a tenth of a second and half a GiB for each context that is destroyed and
// made again: there the guards of C++ stand for the others.
bool IsTooDear(const Row& row, const std::string& fault) {
  const bool is_guard = row.kind == scope_cases::Kind::kElide ||
                        row.kind == scope_cases::Kind::kAlwaysPush ||
                        row.kind == scope_cases::Kind::kExact;
  return fault[0] == '!' && !cudasim::Sim::IsActive() &&
         !(is_guard && row.language == scope_cases::Language::kCpp);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(with_one_cast, *boost::unit_test::fixture(&MakeCast, &DropCast))

BOOST_AUTO_TEST_CASE(every_fault_in_every_mode) {
  Cast& cast = *g_cast;
  long walked = 0;
  Wrong wrong;
  Wrong unseen;
  for (const Row& row : kRows) {
    for (const std::string caller : kCallers) {
      for (const std::string fault : kFaults) {
        if (IsTooDear(row, fault)) continue;
        const std::string key = KeyOf(row.mode, caller, fault);
        std::string seen = Expected(fault, caller, row.mode);
        std::string stack = Restored(caller, fault);
        if (const auto exception = kExceptions.find(key); exception != kExceptions.end()) {
          seen = exception->second.seen;
          stack = exception->second.stack;
        }
        const Outcome outcome = Run(cast, caller, fault, row);
        ++walked;
        if (const auto own = kOwnPushes.find(key);
            own != kOwnPushes.end() && outcome.stack == own->second.stack) {
          seen = own->second.seen;
          stack = own->second.stack;
        }
        const std::string what = NameOf(row.language, row.kind) + ": " + key + ": " + outcome.seen +
                                 " [" + outcome.stack + "]" + outcome.incidents;
        if (outcome.seen != seen || outcome.stack != stack || !outcome.incidents.empty()) {
          wrong.Add(what + ", and not " + seen + " [" + stack + "]");
        }
        const bool is_current = outcome.stack.empty()
                                    ? caller.empty()
                                    : !caller.empty() && outcome.stack.back() == caller.back();
        if (outcome.seen == "none" && !is_current) unseen.Add(what);
      }
    }
  }
  const long at_least = cudasim::Sim::IsActive() ? 1000 : 900;
  RequireNone("rows", walked, at_least, wrong);
  RequireNone("rows that end unseen with a wrong current context", walked, at_least, unseen);
}

// Every caller's stack of up to two entries, also of equal ones, and every callee of up to three
// calls. "The caller's stack is what it was" is said only where it is; and where nothing is said
// the caller's context is current.
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
  long walked = 0;
  long claims = 0;
  Wrong wrong;
  Wrong unseen;
  for (const Row& row : kRows) {
    for (const std::string& caller : callers) {
      for (const std::string& fault : faults) {
        cast.Set(caller);
        const auto scope = Make(row.language, row.kind);
        BOOST_REQUIRE_EQUAL(scope->Enter(cast.at('T'), Location::Here()), CUDA_SUCCESS);
        Commit(*g_cast, fault);
        scope->Drop(false);
        const std::string left = cast.Get();
        cuguest_test::SetStack({});
        const auto incidents = cuguest_test::TakeIncidents();
        ++walked;
        const std::string key =
            NameOf(row.language, row.kind) + " [" + caller + "] " + fault + ": [" + left + "]";
        const char current = left.empty() ? '0' : left.back();
        if (incidents.empty() && current != (caller.empty() ? '0' : caller.back())) unseen.Add(key);
        if (incidents.empty() || incidents[0].repair != Incident::Repair::kRepaired) continue;
        ++claims;
        if (left != caller) wrong.Add(key);
      }
    }
  }
  RequireNone("claims", claims, 3000, wrong);
  RequireNone("callees that end unseen with a wrong current context", walked, 50000, unseen);
}

// Every fault before the move, and every fault after it: as of two guards. Where it does not leave
// its context the end finds what the move did not.
BOOST_AUTO_TEST_CASE(a_move_is_an_end_and_a_beginning) {
  Cast& cast = *g_cast;
  long walked = 0;
  Wrong wrong;
  const auto compare = [&](const std::string& caller, const Row& row, char from, char to,
                           const std::string& first, const std::string& second) {
    const std::string text = CompareMoved(cast, caller, row, from, to, first, second);
    ++walked;
    if (text.empty()) return;
    wrong.Add(NameOf(row.language, row.kind) + " [" + caller + "] " + from + " " + first + ", " +
              to + " " + second + ":" + text);
  };
  for (const Row& row : kRows) {
    const bool moves =
        row.kind == Kind::kElide || row.kind == Kind::kAlwaysPush || row.kind == Kind::kByRef;
    if (!moves) continue;
    for (const std::string caller : kCallers) {
      for (const std::string fault : kFaults) {
        // To destroy T and make it again takes a real driver a tenth of a second and more, four
        // times for each of the others.
        const bool is_slow = fault[0] == '!' && !cudasim::Sim::IsActive();
        for (const char other : std::string(is_slow ? "A" : "ATD")) {
          // In T a callee commits the fault; then on to the others, or again to T unless it is
          // gone.
          if (other != 'T' || fault[0] != '!') compare(caller, row, 'T', other, fault, "");
          compare(caller, row, other, 'T', "", fault);
        }
      }
    }
  }
  RequireNone("moves", walked, cudasim::Sim::IsActive() ? 3000 : 2500, wrong);
}

// Every exception is met: one that no longer occurs must leave the table.
BOOST_AUTO_TEST_CASE(the_exceptions_are_of_this_table) {
  std::set<std::string> keys;
  for (const Row& row : kRows) {
    for (const char* caller : kCallers) {
      for (const char* fault : kFaults) keys.insert(KeyOf(row.mode, caller, fault));
    }
  }
  for (const auto& [key, own] : kOwnPushes) {
    BOOST_TEST((keys.count(key) == 1U && kExceptions.count(key) == 0U), key);
  }
  for (const auto& [key, exception] : kExceptions) {
    BOOST_TEST(keys.count(key) == 1U, key);
    BOOST_TEST((exception.seen != "" && exception.seen.find("failed") == std::string::npos));
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE_END()

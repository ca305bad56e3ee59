// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Note [What is inferred] of docs/notes.md, for an elided guard, as a table: what a callee did
// (replaced the top, popped, pushed, destroyed the context) x what lies beneath (nothing, one
// entry, two, equal handles) x whose context the callee used (a primary, a created, a green one),
// once and again and again. Stacks are written bottom first; T is the guard's context, O the
// callee's.

#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/incident.h"
#include "test/guard/scope_cases.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(likeliest_reading)

namespace {

using cuguest::ContextGuard;
using cuguest::Incident;
using cuguest_test::GetStack;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;
using cuguest_test::TheDriver;

enum class Other { kPrimary, kCreated, kGreen };

class Cast {
 public:
  explicit Cast(Other other) : other_(other) {
    for (const char letter : std::string("XATUV")) own_.emplace(letter, 0);
    if (other == Other::kPrimary) {
      BOOST_REQUIRE(RAW(cuDevicePrimaryCtxRetain)(&o_, 0) == CUDA_SUCCESS);
    } else if (other == Other::kGreen) {
      BOOST_REQUIRE(RAW(cuGreenCtxCreate)(&green_, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM) ==
                    CUDA_SUCCESS);
      BOOST_REQUIRE(RAW(cuCtxFromGreenCtx)(&o_, green_) == CUDA_SUCCESS);
    } else {
      own_.emplace('O', 0);
      o_ = own_.at('O').get();
    }
  }
  Cast(const Cast&) = delete;
  Cast& operator=(const Cast&) = delete;
  ~Cast() {
    if (other_ == Other::kPrimary) RAW(cuDevicePrimaryCtxRelease)(0);
    if (other_ == Other::kGreen) RAW(cuGreenCtxDestroy)(green_);
  }
  CUcontext at(char letter) const { return letter == 'O' ? o_ : own_.at(letter).get(); }
  void Set(const std::string& letters) const {
    std::vector<CUcontext> entries;
    for (const char letter : letters) entries.push_back(at(letter));
    SetStack(entries);
  }
  std::string Get() const {
    std::string letters;
    for (const CUcontext entry : GetStack()) {
      char found = entry == o_ ? 'O' : '?';
      for (const auto& [letter, own] : own_) found = own.get() == entry ? letter : found;
      letters += found;
    }
    return letters;
  }
  void Commit(const std::string& fault) const {
    CUcontext popped = nullptr;
    for (std::size_t i = 0; i < fault.size(); ++i) {
      if (fault[i] == '-') TheDriver().CtxPopCurrent(&popped);
      if (fault[i] == '=')
        TheDriver().CtxSetCurrent(at(fault[++i]));
      else if (fault[i] == '+')
        TheDriver().CtxPushCurrent(at(fault[++i]));
    }
  }

 private:
  const Other other_;
  std::map<char, OwnContext> own_;
  CUgreenCtx green_ = nullptr;
  CUcontext o_ = nullptr;
};

bool Exists(Other other) {
  return other != Other::kGreen || cuguest_test::FindRawSymbol("cuGreenCtxCreate") != nullptr;
}
constexpr Other kOthers[] = {Other::kPrimary, Other::kCreated, Other::kGreen};

// A thread of its own remembers no repair of another row.
void OnNewThread(const std::function<void()>& work) { std::thread(work).join(); }

struct Row {
  const char* host;
  const char* fault;
  const char* once;
  const char* kind;   // what the first incident says; "" if there is none
  const char* again;  // after a second and every later time
};
const Row kRows[] = {
    // Replaced. Exact, but over an entry of the same context: as a push above that.
    {"T", "=O", "T", "replaced", "T"},
    {"XT", "=O", "XT", "replaced", "XT"},
    {"XAT", "=O", "XAT", "replaced", "XAT"},
    {"AAT", "=O", "AAT", "replaced", "AAT"},
    {"XAT", "-+O", "XAT", "replaced", "XAT"},
    {"XAT", "=A", "XAT", "replaced", "XAT"},
    {"XAT", "=X", "XAT", "replaced", "XAT"},
    {"TT", "=O", "T", "leak", "T"},
    {"XTT", "=O", "XT", "leak", "XT"},
    // Replaced, and a push left above that: one entry off, once.
    {"T", "=O+A", "OT", "replaced", "OT"},
    {"XT", "=O+A", "XOT", "replaced", "XOT"},
    // Popped. The first time as replaced: one entry less, once. Over an entry of the same context
    // it goes unseen.
    {"T", "-", "T", "pop", "T"},
    {"XT", "-", "T", "replaced", "T"},
    {"XAT", "-", "XT", "replaced", "XT"},
    {"AAT", "-", "AT", "replaced", "AT"},
    {"XXAAT", "-", "XXAT", "replaced", "XXAT"},
    {"TT", "-", "T", "", "T"},
    // Pushed. Exact, and beneath an entry of the same context, too.
    {"T", "+O", "T", "leak", "T"},
    {"XT", "+O", "XT", "leak", "XT"},
    {"XAT", "+O", "XAT", "leak", "XAT"},
    {"AAT", "+A", "AAT", "leak", "AAT"},
    {"XAT", "+O+O+A", "XAT", "leak", "XAT"},
    {"TT", "+O", "TT", "leak", "TT"},
    // The context lies beneath once more: an extra pop looks like a push above that one.
    {"TAT", "-", "T", "leak", "T"},
    {"TAT", "=O", "T", "leak", "T"},
};

std::string KindOf(const std::vector<Incident>& incidents) {
  if (incidents.empty()) return "";
  const bool is_inferred = incidents[0].repair == Incident::Repair::kInferred;
  if (incidents.size() != 1 || !is_inferred) return "not one repair by inference";
  switch (incidents[0].kind) {
    case Incident::Kind::kReplaced:
      return "replaced";
    case Incident::Kind::kLeakedPush:
      return "leak";
    case Incident::Kind::kExtraPop:
      return "pop";
    default:
      return "another kind";
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(once_and_again_and_again) {
  for (const Other other : kOthers) {
    if (!Exists(other)) continue;
    const Cast cast(other);
    for (const Row& row : kRows) {
      OnNewThread([&] {
        cast.Set(row.host);
        for (int time = 1; time <= 6; ++time) {
          BOOST_TEST_CONTEXT("other " << static_cast<int>(other) << " [" << row.host << "] "
                                      << row.fault << ", time " << time) {
            {
              const ContextGuard guard(cast.at('T'));
              BOOST_TEST(guard.elided());
              cast.Commit(row.fault);
            }
            BOOST_TEST(cast.Get() == (time == 1 ? row.once : row.again));
            const std::string kind = KindOf(TakeIncidents());
            if (time == 1) BOOST_TEST(kind == row.kind);
          }
        }
        SetStack({});
      });
    }
  }
}

// What the records of the thread know to lie beneath is evidence: nothing is wrong once.
BOOST_AUTO_TEST_CASE(scopes_around_it_are_evidence) {
  const Cast cast(Other::kCreated);
  for (const char* fault : {"-", "=O", "=A", "=X", "+O", "+O+A", "=O+A", "+X+O", "=A+X"}) {
    for (const bool is_known_below : {false, true}) {
      OnNewThread([&] {
        cast.Set("XA");
        for (int time = 1; time <= 3; ++time) {
          BOOST_TEST_CONTEXT(fault << ", time " << time) {
            const ContextGuard outermost(cast.at('U'));
            const ContextGuard outer(cast.at(is_known_below ? 'T' : 'U'));
            const ContextGuard pushed(cast.at('T'));
            const std::string before = cast.Get();
            {
              const ContextGuard guard(cast.at('T'));
              cast.Commit(fault);
            }
            BOOST_TEST(cast.Get() == before);
            BOOST_TEST(TakeIncidents().size() == 1U);
          }
        }
        BOOST_TEST(cast.Get() == "XA");
        BOOST_TEST(TakeIncidents().empty());
        SetStack({});
      });
    }
  }
}

// Two guards' contexts by turns, on one place of the stack and on one above the other.
BOOST_AUTO_TEST_CASE(by_turns_one_entry_at_most) {
  const Cast cast(Other::kCreated);
  const auto guarded = [&](char letter, const std::string& fault) {
    const ContextGuard guard(cast.at(letter));
    BOOST_TEST(guard.elided());
    cast.Commit(fault);
  };
  for (const std::string of_t : {"-", "=O", "=U", "+O", "+U", "=X"}) {
    for (const std::string of_u : {"-", "=O", "=T", "+O", "+T", "=X"}) {
      for (const std::string host : {"T", "XT", "XAT", "VXAT"}) {
        for (const bool is_above : {false, true}) {
          OnNewThread([&] {
            cast.Set(host);
            const auto size = static_cast<int>(host.size());
            for (int time = 1; time <= 12; ++time) {
              BOOST_TEST_CONTEXT("[" << host << "] T " << of_t << ", U " << of_u
                                     << (is_above ? " above" : "") << ", time " << time) {
                guarded('T', of_t);
                BOOST_TEST(std::abs(static_cast<int>(cast.Get().size()) - size) <= 1);
                if (is_above) cast.Commit("+U");
                if (!is_above) cast.Commit("=U");
                guarded('U', of_u);
                BOOST_TEST(cast.Get().back() == 'U');
                if (is_above) cast.Commit("-");
                if (!is_above) cast.Commit("=T");
                BOOST_TEST(std::abs(static_cast<int>(cast.Get().size()) - size) <= 1);
                if (cast.Get().empty() || cast.Get().back() != 'T') cast.Commit("=T");
              }
            }
            static_cast<void>(TakeIncidents());
            SetStack({});
          });
        }
      }
    }
  }
}

// What was left at one place of the stack is no evidence against the host's entries at another.
BOOST_AUTO_TEST_CASE(evidence_of_another_place) {
  const Cast cast(Other::kCreated);
  for (const char* fault : {"=O", "=A", "+O", "-+O"}) {
    OnNewThread([&] {
      const auto guarded = [&](const std::string& host) {
        cast.Set(host);
        {
          const ContextGuard guard(cast.at(host.back()));
          cast.Commit(fault);
        }
        BOOST_TEST(cast.Get() == host,
                   fault << ": [" << cast.Get() << "] and not [" << host << "]");
      };
      for (int time = 0; time < 3; ++time) {
        for (const char* host : {"T", "XT", "XAT", "XVUT", "VXUVT", "XAUV", "XV", "V"})
          guarded(host);
      }
      static_cast<void>(TakeIncidents());
      SetStack({});
    });
  }
}

BOOST_AUTO_TEST_CASE(kind_name_covers_both_readings) {
  const std::string text = cuguest::Name(Incident::Kind::kReplaced);
  BOOST_TEST(text == "replaced the current context, or popped it");
}

BOOST_AUTO_TEST_CASE(a_destroyed_context_leaves_the_rest) {
  for (const std::string host : {"T", "XT", "XAT", "AAT"}) {
    OnNewThread([&] {
      const OwnContext x;
      const OwnContext a;
      OwnContext t;
      std::vector<CUcontext> entries;
      for (const char letter : host)
        entries.push_back((letter == 'X' ? x : letter == 'A' ? a : t).get());
      SetStack(entries);
      ContextGuard guard(t.get());
      BOOST_TEST(TheDriver().CtxDestroy(t.release()) == CUDA_SUCCESS);
      BOOST_TEST(guard.Leave() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
      entries.pop_back();
      BOOST_TEST(GetStack() == entries);
      static_cast<void>(TakeIncidents());
      SetStack({});
    });
  }
  OwnContext::DestroyIdle();
}

BOOST_AUTO_TEST_SUITE_END()

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A callee leaves an entry whose context is over, of each kind, at each place where a callee can
// leave one. The caller's context is alive: it is current afterwards, and no code says that it is
// over. Stacks are written as in repair_table_test.cc; M is the context that ends.

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/c.h"
#include "cuguest/context_guard.h"
#include "cuguest/host_scope.h"
#include "test/guard/guard_kinds.h"
#include "test/guard/scope_cases.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(dead_entry)

namespace {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::HostScope;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;
using cuguest_test::TheDriver;
using guard_kinds::EachKind;
using guard_kinds::GuardOf;
using scope_cases::RequireNone;
using scope_cases::Wrong;

enum class Mortal { kCreated, kPrimary, kGreen, kOfAnotherDevice };
constexpr const char* kNames[] = {"created", "primary", "green", "of another device"};

// M, and its end on a thread that does not have it on its stack.
class EndingContext {
 public:
  explicit EndingContext(Mortal kind) {
    if (kind == Mortal::kPrimary) {
      BOOST_REQUIRE(RAW(cuDevicePrimaryCtxRetain)(&context_, 0) == CUDA_SUCCESS);
      end_ = [] { BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS); };
      release_ = [] { RAW(cuDevicePrimaryCtxRelease)(0); };
    } else if (kind == Mortal::kGreen) {
      CUgreenCtx green = nullptr;
      BOOST_REQUIRE(RAW(cuGreenCtxCreate)(&green, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM) ==
                    CUDA_SUCCESS);
      BOOST_REQUIRE(RAW(cuCtxFromGreenCtx)(&context_, green) == CUDA_SUCCESS);
      end_ = [green] { BOOST_TEST(RAW(cuGreenCtxDestroy)(green) == CUDA_SUCCESS); };
    } else {
      context_ = OwnContext(kind == Mortal::kOfAnotherDevice ? 1 : 0).release();
      end_ = [this] { BOOST_TEST(TheDriver().CtxDestroy(context_) == CUDA_SUCCESS); };
    }
  }
  EndingContext(const EndingContext&) = delete;
  EndingContext& operator=(const EndingContext&) = delete;
  ~EndingContext() {
    if (release_) release_();
  }
  CUcontext get() const { return context_; }
  void End() const { std::thread(end_).join(); }

 private:
  CUcontext context_ = nullptr;
  std::function<void()> end_;
  std::function<void()> release_;
};

bool Exists(Mortal kind) {
  if (kind == Mortal::kGreen) return cuguest_test::FindRawSymbol("cuGreenCtxCreate") != nullptr;
  int devices = 0;
  BOOST_TEST(TheDriver().DeviceGetCount(&devices) == CUDA_SUCCESS);
  return kind != Mortal::kOfAnotherDevice || devices > 1;
}

struct Cast {
  OwnContext x;
  OwnContext a;
  OwnContext t;
  OwnContext c;
  CUcontext at(char letter) const {
    return (letter == 'X' ? x : letter == 'A' ? a : letter == 'T' ? t : c).get();
  }
  std::vector<CUcontext> Stack(const std::string& letters) const {
    std::vector<CUcontext> entries;
    for (const char letter : letters) entries.push_back(at(letter));
    return entries;
  }
};

// "+M" pushes, "=M" replaces the top, "-" pops; then M ends.
void Commit(const Cast& cast, const std::string& fault, const EndingContext& mortal) {
  CUcontext popped = nullptr;
  for (std::size_t i = 0; i < fault.size(); ++i) {
    if (fault[i] == '-') {
      TheDriver().CtxPopCurrent(&popped);
      continue;
    }
    const bool pushes = fault[i++] == '+';
    const CUcontext context = fault[i] == 'M' ? mortal.get() : cast.at(fault[i]);
    BOOST_REQUIRE((pushes ? TheDriver().CtxPushCurrent(context)
                          : TheDriver().CtxSetCurrent(context)) == CUDA_SUCCESS);
  }
  mortal.End();
}

const char* const kPlaces[] = {
    "+M",   "+M+C",  "+M+C+C",   "+M+C+C+C",   // above what the guard left
    "=M",   "=M+C",  "=M+C+C",   "=M+C+C+C",   // in its place
    "-=M",  "-=M+C", "-=M+C+C",  "-=M+C+C+C",  // in the place of what was below it
    "--+M", "+M+M",  "+C+M+C+M", "+T+M",      "-=M=M+T", "-+M+A", "-+M+M+C+C+C", "+C+M",
};
const char* const kCallers[] = {"A", "XA", "T", "XT"};

// A scope that enters T, and what can be asked of it; a code that is not 0 may be any but 709.
struct Asked {
  const char* name;
  std::function<std::vector<int>(const Cast& cast, const std::function<void()>& callee)> run;
};

template <typename Guard>
void AddKind(std::vector<Asked>* all) {
  all->push_back({"Leave", [](const Cast& cast, const std::function<void()>& callee) {
                    Guard guard(cast.t.get());
                    callee();
                    return std::vector<int>{guard.Leave()};
                  }});
  all->push_back({"Reassert", [](const Cast& cast, const std::function<void()>& callee) {
                    Guard guard(cast.t.get());
                    callee();
                    const int first = guard.Reassert();
                    return std::vector<int>{first, guard.result(), guard.Leave()};
                  }});
  all->push_back({"HostScope", [](const Cast& cast, const std::function<void()>& callee) {
                    Guard guard(cast.t.get());
                    callee();
                    HostScope host = guard_kinds::HostOf(guard);
                    const int first = host.result();
                    const int second = host.Leave();
                    return std::vector<int>{first, second, guard.result(), guard.Leave()};
                  }});
}

std::vector<Asked> Everything() {
  std::vector<Asked> all;
  EachKind([&](auto kind) {
    using Guard = GuardOf<decltype(kind)>;
    AddKind<Guard>(&all);
  });
  for (const auto mode : {cuguest::GuardMode::kElide, cuguest::GuardMode::kAlwaysPush}) {
    all.push_back({"MoveTo", [mode](const Cast& cast, const std::function<void()>& callee) {
                     ContextGuard guard(cast.t.get(), mode);
                     callee();
                     const int first = guard.MoveTo(cast.c.get());
                     return std::vector<int>{first, guard.result(), guard.Leave()};
                   }});
  }
  all.push_back({"C", [](const Cast& cast, const std::function<void()>& callee) {
                   cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
                   std::vector<int> codes = {
                       cuguest_guard_enter(&guard, cast.t.get(), CUGUEST_ELIDE, CUGUEST_HERE)};
                   callee();
                   codes.push_back(cuguest_guard_reassert(&guard));
                   codes.push_back(cuguest_guard_move_to(&guard, cast.c.get(), CUGUEST_HERE));
                   codes.push_back(cuguest_guard_leave(&guard));
                   return codes;
                 }});
  return all;
}

// What is wrong, "" if nothing is. `arm` is called when the callee has returned.
std::string Play(const Cast& cast, const std::string& caller, const std::string& place, Mortal kind,
                 const Asked& asked, const std::function<void()>& arm) {
  const EndingContext mortal(kind);
  SetStack(cast.Stack(caller));
  const std::vector<int> codes = asked.run(cast, [&] {
    Commit(cast, place, mortal);
    arm();
  });
  Sim::ClearFaults();
  CUcontext current = nullptr;
  BOOST_TEST(TheDriver().CtxGetCurrent(&current) == CUDA_SUCCESS);
  std::string wrong;
  if (current != cast.at(caller.back())) wrong += " leaves another context current";
  for (const int code : codes) {
    if (code == CUDA_ERROR_CONTEXT_IS_DESTROYED) wrong += " says that the caller's is over";
  }
  const bool is_seen =
      place.back() != 'T' && place != "+T+M";  // an elided guard sees its own on top
  if (TakeIncidents().size() != 1 && is_seen) wrong += " does not report it once";
  SetStack({});
  return wrong;
}

}  // namespace

BOOST_AUTO_TEST_CASE(never_stands_for_the_callers) {
  const Cast cast;
  const bool is_sim = Sim::IsActive();
  long walked = 0;
  Wrong wrong;
  for (const Mortal kind :
       {Mortal::kCreated, Mortal::kPrimary, Mortal::kGreen, Mortal::kOfAnotherDevice}) {
    if (!Exists(kind)) continue;
    for (const Asked& asked : Everything()) {
      for (const std::string caller : kCallers) {
        for (const std::string place : kPlaces) {
          // A real driver takes a tenth of a second for each M.
          if (!is_sim && (caller != "XA" || (place != "-=M" && place != "=M+C"))) continue;
          const std::string text = Play(cast, caller, place, kind, asked, [] {});
          ++walked;
          if (text.empty()) continue;
          wrong.Add(std::string(kNames[static_cast<int>(kind)]) + ", " + asked.name + " [" +
                    caller + "] " + place + ":" + text);
        }
      }
    }
  }
  RequireNone("dead entries", walked, is_sim ? 1800 : 40, wrong);
  OwnContext::DestroyIdle();
}

BOOST_AUTO_TEST_CASE(one_more_call_fails_meanwhile, *cuguest_test::OnlySim()) {
  const Cast cast;
  long walked = 0;
  Wrong wrong;
  for (const Mortal kind : {Mortal::kCreated, Mortal::kPrimary}) {
    for (const Asked& asked : Everything()) {
      for (const std::string caller : {"XA", "XT"}) {
        for (const std::string place : kPlaces) {
          for (const char* entry : {"cuCtxGetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent",
                                    "cuCtxSetCurrent", "cuCtxGetId"}) {
            for (unsigned nth = 1; nth <= 12; ++nth) {
              const std::string text = Play(cast, caller, place, kind, asked, [&] {
                Sim::FailCall(entry, nth, CUDA_ERROR_OPERATING_SYSTEM);
              });
              ++walked;
              const bool is_current = text.find("current") == std::string::npos;
              const bool is_over = text.find("over") != std::string::npos;
              if (is_current && !is_over) continue;
              wrong.Add(std::string(kNames[static_cast<int>(kind)]) + ", " + asked.name + " [" +
                        caller + "] " + place + ", " + entry + " " + std::to_string(nth) + ":" +
                        text);
            }
          }
        }
      }
    }
  }
  RequireNone("calls that fail", walked, 20000, wrong);
}

// A guard whose caller's context is over may go on in its own, and its end returns the code.
BOOST_AUTO_TEST_CASE(of_the_caller_is_told) {
  for (int how = 0; how < 4; ++how) {
    const OwnContext x;
    OwnContext a;
    const OwnContext b;
    const OwnContext c;
    SetStack({x.get(), a.get()});
    {
      ContextGuard guard(b.get());
      CUcontext popped = nullptr;
      TheDriver().CtxPopCurrent(&popped);
      TheDriver().CtxPopCurrent(&popped);
      TheDriver().CtxDestroy(a.release());
      if (how == 1) BOOST_TEST(guard.Reassert() == CUDA_SUCCESS);
      if (how == 2) BOOST_TEST(guard.MoveTo(c.get()) == CUDA_SUCCESS);
      if (how != 3) BOOST_TEST(guard.Reassert() == CUDA_SUCCESS);
      const CUresult code = how == 3 ? HostScope(guard).result() : guard.Leave();
      BOOST_TEST(code == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    }
    BOOST_TEST(cuguest_test::GetStack() == std::vector<CUcontext>{x.get()});
    static_cast<void>(TakeIncidents());
    SetStack({});
  }
  OwnContext::DestroyIdle();
}

// Nor is it pushed, which would corrupt the driver's heap, and of which the simulation dies.
BOOST_AUTO_TEST_CASE(of_the_caller_while_a_call_fails, *cuguest_test::OnlySim()) {
  for (const char* entry : {"cuCtxGetCurrent", "cuCtxPopCurrent", "cuCtxGetId"}) {
    for (unsigned nth = 1; nth <= 12; ++nth) {
      for (const bool elides : {false, true}) {
        const OwnContext x;
        OwnContext a;
        const OwnContext b;
        SetStack({a.get()});
        ContextGuard guard((elides ? a : b).get());
        SetStack({x.get()});
        TheDriver().CtxDestroy(a.release());
        Sim::FailCall(entry, nth, CUDA_ERROR_OPERATING_SYSTEM);
        const CUresult code = guard.Leave();
        Sim::ClearFaults();
        BOOST_TEST(code != CUDA_SUCCESS, entry << " " << nth);
        static_cast<void>(TakeIncidents());
        SetStack({});
      }
    }
  }
  OwnContext::DestroyIdle();
}

BOOST_AUTO_TEST_SUITE_END()

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any driver call may fail at any point: it must come out as a refusal, a status or an
// incident, with the caller's stack restored, nothing leaked, and no crash.

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_scope.h"
#include "cuguest/device.h"
#include "cuguest/driver.h"
#include "cuguest/host_scope.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "test/guard/guard_kinds.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(injection, *cuguest_test::OnlySim())

namespace {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::GuardMode;
using cuguest::HostScope;
using cuguest::NoContextGuard;
using cuguest::PrimaryContext;
using cuguest_test::GetStack;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;
using cuguest_test::TheDriver;
using guard_kinds::EachKind;
using guard_kinds::GuardOf;
using Stack = std::vector<CUcontext>;

constexpr CUresult kInjected = CUDA_ERROR_OPERATING_SYSTEM;
constexpr unsigned kEvery = 40;  // more calls of one entry than any scenario makes

struct Fault {
  std::string entry;
  unsigned first;
  unsigned last;
};

// Each single call of each entry, and each entry failing for good.
std::vector<Fault> Faults(unsigned most_calls) {
  std::vector<Fault> faults;
  for (const char* entry :
       {"cuCtxGetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent", "cuCtxSetCurrent", "cuCtxGetId",
        "cuCtxGetDevice", "cuDevicePrimaryCtxGetState", "cuDevicePrimaryCtxRetain",
        "cuDevicePrimaryCtxRelease"}) {
    for (unsigned nth = 1; nth <= most_calls; ++nth) faults.push_back({entry, nth, nth});
    faults.push_back({entry, 1, kEvery});
    faults.push_back({entry, 2, kEvery});
    faults.push_back({entry, 3, kEvery});
  }
  return faults;
}

void Arm(const Fault& fault) {
  for (unsigned nth = fault.first; nth <= fault.last; ++nth) {
    Sim::FailCall(fault.entry.c_str(), nth, kInjected);
  }
}

struct Contexts {
  OwnContext x;
  OwnContext a;
  OwnContext t;
  OwnContext c;
};

// `work` returns what a guard or owner said of itself.
using Work = std::function<CUresult(const Contexts&)>;

void RunUnderEachFault(const std::string& name, const Stack& caller, const Contexts& contexts,
                       bool callee_is_clean, const Work& work) {
  for (const Fault& fault : Faults(12)) {
    BOOST_TEST_CONTEXT(name << ": " << fault.entry << " fails from call " << fault.first << " to "
                            << fault.last) {
      SetStack(caller);
      const auto before = Sim::Live();
      Arm(fault);
      const CUresult said = work(contexts);
      Sim::ClearFaults();
      const auto incidents = TakeIncidents();
      const Stack after = GetStack();
      BOOST_TEST((Sim::Live() == before), "leaked");
      // The right context is current whatever happened...
      BOOST_TEST((after.empty() ? nullptr : after.back()) ==
                 (caller.empty() ? nullptr : caller.back()));
      // ...and a stack that is not the caller's is never passed over in silence.
      if (after != caller) BOOST_TEST((!incidents.empty() || said != CUDA_SUCCESS));
      const bool once = fault.first == fault.last;
      if (once && callee_is_clean) BOOST_TEST(after == caller);
      for (const auto& incident : incidents) {
        if (once && callee_is_clean) BOOST_TEST(incident.result == kInjected);
      }
    }
  }
  SetStack({});
}

template <typename Guard>
CUresult Scope(CUcontext context) {
  Guard guard(context);
  return guard.ok() ? guard.Leave() : guard.result();
}

// What the first of the incidents gives that could not be repaired; takes them.
CUresult FirstUnrepaired() {
  for (const auto& incident : TakeIncidents()) {
    if (incident.repair != cuguest::Incident::Repair::kUnrepaired) continue;
    return incident.result != CUDA_SUCCESS ? incident.result : CUDA_ERROR_INVALID_CONTEXT;
  }
  return CUDA_SUCCESS;
}

// Of a guard that moves, which ExactGuard does not.
constexpr GuardMode kModes[] = {GuardMode::kElide, GuardMode::kAlwaysPush};

}  // namespace

BOOST_AUTO_TEST_CASE(a_guard_around_a_clean_callee) {
  const Contexts c;
  EachKind([&](auto kind) {
    using Guard = GuardOf<decltype(kind)>;
    for (const Stack& caller : {Stack{}, Stack{c.a.get()}, Stack{c.x.get(), c.a.get()},
                                Stack{c.t.get()}, Stack{c.x.get(), c.t.get()}}) {
      RunUnderEachFault(Guard::kName, caller, c, true,
                        [](const Contexts& contexts) { return Scope<Guard>(contexts.t.get()); });
    }
  });
}

BOOST_AUTO_TEST_CASE(a_guard_by_ref) {
  const Contexts c;
  const ContextRef ref = ContextRef::Borrow(c.t.get());
  RunUnderEachFault("ref", {c.a.get()}, c, true, [&ref](const Contexts&) {
    ContextGuard guard(ref);
    return guard.ok() ? guard.Leave() : guard.result();
  });
}

// Of every way to move. What fails leaves the guard inside, in the context that it names, or
// outside; and either way its end leaves the caller's stack.
BOOST_AUTO_TEST_CASE(a_guard_that_moves) {
  const Contexts c;
  for (const GuardMode mode : kModes) {
    for (const Stack& caller : {Stack{}, Stack{c.a.get()}, Stack{c.x.get(), c.t.get()}}) {
      for (const bool by_ref : {false, true}) {
        RunUnderEachFault("move", caller, c, true, [mode, by_ref](const Contexts& contexts) {
          const ContextRef refs[] = {ContextRef::Borrow(contexts.t.get()),
                                     ContextRef::Borrow(contexts.c.get()),
                                     ContextRef::Borrow(contexts.a.get())};
          CUresult first_failure = CUDA_SUCCESS;
          ContextGuard guard(mode);
          for (const int to : {0, 1, 1, 2, 0, 1}) {
            const CUresult code = by_ref && refs[to].ok()
                                      ? guard.MoveTo(refs[to])
                                      : guard.MoveTo(to == 0   ? contexts.t.get()
                                                     : to == 1 ? contexts.c.get()
                                                               : contexts.a.get());
            if (first_failure == CUDA_SUCCESS) first_failure = code;
            BOOST_TEST(code == guard.result());
          }
          const CUresult left = guard.Leave();
          return first_failure == CUDA_SUCCESS ? left : first_failure;
        });
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_failed_move_stays_or_is_outside) {
  const Contexts c;
  for (const GuardMode mode : kModes) {
    for (const CUcontext from : {c.a.get(), c.t.get()}) {
      for (const CUcontext to : {c.a.get(), c.c.get()}) {
        for (const Fault& fault : Faults(12)) {
          BOOST_TEST_CONTEXT("mode " << static_cast<int>(mode) << ": " << fault.entry
                                     << " fails from call " << fault.first << " to "
                                     << fault.last) {
            SetStack({c.a.get()});
            ContextGuard guard(from, mode);
            const Stack before = GetStack();
            Arm(fault);
            const CUresult code = guard.MoveTo(to);
            Sim::ClearFaults();
            BOOST_TEST(code == guard.result());
            if (code != CUDA_SUCCESS && fault.first == fault.last) {
              BOOST_TEST(GetStack() == before);
              BOOST_TEST(guard.get() == from);
            }
            const CUcontext expected = code == CUDA_SUCCESS ? to : from;
            const bool is_inside = guard.Reassert() == CUDA_SUCCESS;
            if (is_inside) BOOST_TEST(guard.get() == expected);
            if (is_inside) BOOST_TEST(GetStack().back() == expected);
            BOOST_TEST((is_inside || code != CUDA_SUCCESS));
            BOOST_TEST(guard.MoveTo(c.c.get()) == CUDA_SUCCESS);
            // The end returns what leaving gave.
            const CUresult owed = FirstUnrepaired();
            BOOST_TEST(guard.Leave() == owed);
            BOOST_TEST(GetStack().back() == c.a.get());
            BOOST_TEST(TakeIncidents().empty());
            SetStack({});
          }
        }
      }
    }
  }
}

// What leaving gave, on the way to another context or back, the end of the scope returns: once,
// also where it could not enter again, or a HostScope was in between.
BOOST_AUTO_TEST_CASE(an_end_returns_what_it_owes_once) {
  const Contexts c;
  enum class Callee { kNothing, kReplaces, kPops, kPushes, kDestroysTheCallers };
  enum class Then { kEnds, kMoves, kReasserts, kHosts, kEndsAndEnters };
  int owing = 0;
  const auto check = [&](GuardMode mode, Callee callee, Then then, bool moves, const Fault& fault) {
    OwnContext caller;
    SetStack({c.x.get(), caller.get()});
    cuguest::ContextScope scope;
    BOOST_TEST_REQUIRE(scope.Enter(ContextRef::Borrow(c.t.get()), mode) == CUDA_SUCCESS);
    if (callee == Callee::kReplaces) TheDriver().CtxSetCurrent(c.c.get());
    if (callee == Callee::kPushes) TheDriver().CtxPushCurrent(c.c.get());
    CUcontext popped = nullptr;
    if (callee >= Callee::kPops && callee != Callee::kPushes) TheDriver().CtxPopCurrent(&popped);
    if (callee == Callee::kPops) TheDriver().CtxPopCurrent(&popped);
    if (callee == Callee::kDestroysTheCallers) TheDriver().CtxDestroy(caller.release());
    Arm(fault);
    const CUresult code = moves ? scope.MoveTo(c.c.get()) : scope.Reassert();
    Sim::ClearFaults();
    const CUresult owed = FirstUnrepaired();
    if (owed != CUDA_SUCCESS) ++owing;
    if (then == Then::kMoves) BOOST_TEST(scope.MoveTo(c.a.get()) == CUDA_SUCCESS);
    if (then == Then::kReasserts) static_cast<void>(scope.Reassert());
    if (then == Then::kHosts) BOOST_TEST(HostScope().ok());
    // A move that went on from a stack that was not the caller's may find that again.
    const CUresult also = FirstUnrepaired();
    const CUresult left = scope.Leave();
    const CUresult found = FirstUnrepaired();
    const CUresult owes = owed != CUDA_SUCCESS ? owed : also;
    if (left == CUDA_ERROR_ILLEGAL_STATE) {  // it was outside
      BOOST_TEST(code != CUDA_SUCCESS);
      BOOST_TEST(owes == CUDA_SUCCESS);
    } else {
      BOOST_TEST(left == (found != CUDA_SUCCESS ? found : owes));
    }
    BOOST_TEST(scope.Leave() == CUDA_ERROR_ILLEGAL_STATE);
    if (then == Then::kEndsAndEnters) {  // what has its place owes nothing
      SetStack({c.x.get()});
      BOOST_TEST(scope.Enter(c.t.get(), mode) == CUDA_SUCCESS);
      BOOST_TEST(scope.MoveTo(c.a.get()) == CUDA_SUCCESS);
      BOOST_TEST(scope.Leave() == CUDA_SUCCESS);
    }
    static_cast<void>(TakeIncidents());
    SetStack({});
  };
  for (const GuardMode mode : kModes) {
    for (const Callee callee : {Callee::kNothing, Callee::kReplaces, Callee::kPops, Callee::kPushes,
                                Callee::kDestroysTheCallers}) {
      for (const Then then :
           {Then::kEnds, Then::kMoves, Then::kReasserts, Then::kHosts, Then::kEndsAndEnters}) {
        for (const bool moves : {false, true}) {
          for (const Fault& fault : Faults(12)) {
            // Nothing tells then that the caller's context is over.
            const bool is_hidden = fault.entry == "cuCtxGetId" && fault.first != fault.last;
            if (callee == Callee::kDestroysTheCallers && is_hidden) continue;
            BOOST_TEST_CONTEXT("mode "
                               << static_cast<int>(mode) << ", callee " << static_cast<int>(callee)
                               << ", then " << static_cast<int>(then) << ", moves " << moves << ": "
                               << fault.entry << " fails from call " << fault.first << " to "
                               << fault.last) {
              check(mode, callee, then, moves, fault);
            }
          }
        }
      }
    }
  }
  BOOST_TEST(owing > 100);
}

BOOST_AUTO_TEST_CASE(a_host_scope) {
  const Contexts c;
  EachKind([&](auto kind) {
    using Guard = GuardOf<decltype(kind)>;
    RunUnderEachFault("host", {c.a.get()}, c, true, [](const Contexts& contexts) {
      Guard guard(contexts.t.get());
      if (!guard.ok()) return guard.result();
      {
        const HostScope host = guard_kinds::HostOf(guard);
        if (!host.ok()) return host.result();
      }
      return guard.ok() ? guard.Leave() : guard.result();
    });
  });
}

// What could not be left is inside again, and so are the guards around it.
BOOST_AUTO_TEST_CASE(a_failed_host_scope) {
  const Contexts c;
  EachKind([&](auto kind) {
    using Guard = GuardOf<decltype(kind)>;
    for (const Fault& fault : Faults(12)) {
      BOOST_TEST_CONTEXT(Guard::kName << ": " << fault.entry << " fails from call " << fault.first
                                      << " to " << fault.last) {
        SetStack({c.a.get()});
        {
          const ContextGuard outer(c.x.get());
          Guard guard(c.t.get());
          const Stack inside = GetStack();
          Arm(fault);
          std::optional<HostScope> host;
          host.emplace();
          Sim::ClearFaults();
          const bool is_out = host->ok();
          BOOST_TEST((guard.ok() || !is_out));
          const CUcontext expected = is_out ? c.a.get() : guard.ok() ? c.t.get() : nullptr;
          if (is_out || fault.first == fault.last) BOOST_TEST(GetStack().back() == expected);
          host.reset();
          if (is_out || fault.first == fault.last) {
            BOOST_TEST(guard.ok());
            BOOST_TEST(outer.ok());
            BOOST_TEST(GetStack() == inside);
          }
          // What leaving gave the HostScope has returned.
          static_cast<void>(TakeIncidents());
          const CUresult left = guard.Leave();
          BOOST_TEST(left == FirstUnrepaired());
        }
        BOOST_TEST(GetStack().back() == c.a.get());
        static_cast<void>(TakeIncidents());
        SetStack({});
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(no_context) {
  const Contexts c;
  for (const Stack& caller : {Stack{}, Stack{c.a.get()}, Stack{c.x.get(), c.a.get()}}) {
    RunUnderEachFault("none", caller, c, true, [](const Contexts&) {
      NoContextGuard none;
      return none.ok() ? none.Leave() : none.result();
    });
  }
}

BOOST_AUTO_TEST_CASE(a_primary_context) {
  const Contexts c;
  RunUnderEachFault("primary", {c.a.get()}, c, true, [](const Contexts&) {
    PrimaryContext primary = PrimaryContext::RetainIfActive(Device::Borrow(0));
    if (!primary.ok()) primary = PrimaryContext::Retain(Device::Borrow(0));
    if (!primary.ok()) return kInjected;
    const absl::Status released = ToStatus(primary.Release());
    if (released.ok()) return CUDA_SUCCESS;
    // A release that the driver refuses leaves the reference with the driver: the status says so,
    // and the object is empty. The test gives it back, so that the next fault starts clean.
    BOOST_TEST(primary.get() == nullptr);
    Sim::ClearFaults();
    TheDriver().DevicePrimaryCtxRelease(0);
    return kInjected;
  });
}

namespace {

thread_local bool t_is_inside = false;
CUcontext g_hooks = nullptr;

// As a tool does that the driver calls at each of its entries.
void EnterInsideTheCall(const char*) {
  if (std::exchange(t_is_inside, true)) return;
  {
    const ContextGuard outer(g_hooks);
    const ContextGuard inner(g_hooks, GuardMode::kAlwaysPush);
    if (!outer.ok() || !inner.ok()) std::abort();
    std::free(std::malloc(1000));
  }
  t_is_inside = false;
}

}  // namespace

// Also where those in the call need memory that the guard's own record is in.
BOOST_AUTO_TEST_CASE(guards_inside_a_driver_call) {
  const Contexts c;
  const OwnContext hooks;
  g_hooks = hooks.get();
  for (const int depth : {0, 1, 14, 15, 16, 30, 31, 62}) {
    SetStack({c.x.get()});
    std::vector<std::unique_ptr<ContextGuard>> around;
    for (int i = 0; i < depth; ++i) {
      around.push_back(std::make_unique<ContextGuard>(
          (i % 2 == 0 ? c.a : c.x).get(), cuguest::GuardMode::kElide, cuguest::Location::Here()));
    }
    const auto above = std::make_unique<char[]>(5000);  // what is there cannot grow in place
    const Stack before = GetStack();
    Sim::OnEveryCall(&EnterInsideTheCall);
    ContextGuard guard(c.t.get());
    const CUresult moved = guard.MoveTo(c.c.get());
    const CUcontext caller = guard.caller();
    const CUresult restored = guard.Leave();
    Sim::OnEveryCall(nullptr);
    BOOST_TEST_CONTEXT("depth " << depth) {
      BOOST_TEST(moved == CUDA_SUCCESS);
      BOOST_TEST(caller == before.back());
      BOOST_TEST(restored == CUDA_SUCCESS);
      BOOST_TEST((GetStack() == before));
      BOOST_TEST(TakeIncidents().empty());
    }
    while (!around.empty()) around.pop_back();
    static_cast<void>(TakeIncidents());
    SetStack({});
  }
}

namespace {

// Scopes that the last of a thread's records at hand are left to, once, inside a push.
std::vector<cuguest::ContextScope>* g_left_open = nullptr;
void LeaveScopesOpen(const char* call) {
  auto* const scopes = g_left_open;
  if (scopes == nullptr || std::string(call) != "cuCtxPushCurrent") return;
  g_left_open = nullptr;
  for (int i = 0; i < 2; ++i) {
    scopes->emplace_back();
    BOOST_TEST(scopes->back().Enter(g_hooks) == CUDA_SUCCESS);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(scopes_left_open_inside_a_push) {
  const Contexts c;
  const OwnContext hooks;
  g_hooks = hooks.get();
  // First all records that are at hand are used once, as they are on any thread by and by.
  for (const int depth : {16, 14, 15}) {
    SetStack({c.x.get()});
    std::vector<std::unique_ptr<ContextGuard>> around;
    for (int i = 0; i < depth; ++i) {
      around.push_back(std::make_unique<ContextGuard>(c.x.get(), cuguest::GuardMode::kElide,
                                                      cuguest::Location::Here()));
    }
    if (depth == 16) {
      while (!around.empty()) around.pop_back();
      continue;
    }
    std::vector<cuguest::ContextScope> left_open;
    g_left_open = &left_open;
    Sim::OnEveryCall(&LeaveScopesOpen);
    std::optional<ContextGuard> guard;
    guard.emplace(c.t.get(), cuguest::GuardMode::kElide, cuguest::Location::Here());
    Sim::OnEveryCall(nullptr);
    BOOST_TEST(left_open.size() == 2U);
    BOOST_TEST(guard->ok());
    BOOST_TEST(GetStack().back() == c.t.get());
    guard.reset();
    while (!left_open.empty()) left_open.pop_back();
    while (!around.empty()) around.pop_back();
    BOOST_TEST((GetStack() == Stack{c.x.get()}));
    BOOST_TEST(TakeIncidents().empty());
    SetStack({});
  }
}

// The driver fails while a guard is already repairing what a callee did. The caller's
// context must be current in the end, unless the driver refuses the very calls that
// could make it so; then it must be said.
BOOST_AUTO_TEST_SUITE(into_repairs)

BOOST_AUTO_TEST_CASE(every_callee_fault) {
  const Contexts c;
  const std::pair<const char*, std::function<void()>> callees[] = {
      {"replaces the top", [&] { TheDriver().CtxSetCurrent(c.c.get()); }},
      {"leaves a push", [&] { TheDriver().CtxPushCurrent(c.c.get()); }},
      {"leaves two pushes",
       [&] {
         TheDriver().CtxPushCurrent(c.c.get());
         TheDriver().CtxPushCurrent(c.x.get());
       }},
      {"pops once too often",
       [] {
         CUcontext popped = nullptr;
         TheDriver().CtxPopCurrent(&popped);
       }},
  };
  for (const auto& [name, callee] : callees) {
    EachKind([&, name = name, &callee = callee](auto kind) {
      using Guard = GuardOf<decltype(kind)>;
      for (const Stack& caller :
           {Stack{}, Stack{c.a.get()}, Stack{c.x.get(), c.a.get()}, Stack{c.a.get(), c.t.get()}}) {
        for (const Fault& fault : Faults(12)) {
          BOOST_TEST_CONTEXT(name << ", " << Guard::kName << ", depth " << caller.size() << ": "
                                  << fault.entry << " fails from call " << fault.first << " to "
                                  << fault.last) {
            SetStack(caller);
            const auto before = Sim::Live();
            CUresult said = CUDA_SUCCESS;
            {
              Guard guard(c.t.get());
              BOOST_TEST_REQUIRE(guard.ok());
              callee();
              Arm(fault);
              said = guard.Leave();
              Sim::ClearFaults();
            }
            const auto incidents = TakeIncidents();
            const Stack after = GetStack();
            const bool current_is_right = (after.empty() ? nullptr : after.back()) ==
                                          (caller.empty() ? nullptr : caller.back());
            BOOST_TEST((Sim::Live().contexts == before.contexts));
            if (fault.first == fault.last) {
              BOOST_TEST(current_is_right);
            } else if (!current_is_right) {
              BOOST_TEST(said != CUDA_SUCCESS);
              BOOST_TEST(!incidents.empty());
            }
            SetStack({});
          }
        }
      }
    });
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE_END()

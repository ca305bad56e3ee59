// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A guard around a callee that does anything to the thread's stack of contexts: pushes, pops, sets,
// creates and destroys contexts, uses guards of its own. Then the stack is the caller's as far as
// Note [How a guard restores] and Note [What is inferred] of docs/notes.md say so, and nothing
// else is. On the simulated driver.
//
// The first bytes are the kind of guard, the guard's context and the caller's stack; the others are
// steps.

#include <dlfcn.h>

#include <algorithm>
#include <vector>

#include "cuguest/context_guard.h"
#include "cuguest/driver_table.h"
#include "cuguest/incident_listener.h"
#include "lib/core/failure.h"
#include "test/fuzz/input.h"
#include "test/guard/guard_kinds.h"

namespace {

using cuguest::ContextGuard;
using cuguest::GuardMode;
using cuguest::Incident;
using cuguest_fuzz::Input;
using Stack = std::vector<CUcontext>;

constexpr unsigned kCallers = 3;  // contexts that only the caller has
constexpr unsigned kCallees = 2;  // that only the callee has
constexpr unsigned kMostDeep = 8;

const cuguest::DriverTable& TheDriver() {
  static const cuguest::DriverTable& driver = [&]() -> const cuguest::DriverTable& {
    const cuguest::DriverTable* found = nullptr;
    FUZZ_CHECK(cuguest::internal::GetInitializedDriver(&found).ok());
    return *found;
  }();
  return driver;
}

CUcontext Create() {
  CUcontext context = nullptr;
  FUZZ_CHECK(TheDriver().CtxCreate(&context, 0, 0) == CUDA_SUCCESS);
  return context;
}

CUcontext CreateFloating() {
  const CUcontext context = Create();
  CUcontext popped = nullptr;
  FUZZ_CHECK(TheDriver().CtxPopCurrent(&popped) == CUDA_SUCCESS);
  return context;
}

CUcontext Current() {
  CUcontext context = nullptr;
  FUZZ_CHECK(TheDriver().CtxGetCurrent(&context) == CUDA_SUCCESS);
  return context;
}

// Bottom first. Nothing is current afterwards.
Stack TakeDown() {
  Stack stack;
  CUcontext popped = nullptr;
  while (TheDriver().CtxPopCurrent(&popped) == CUDA_SUCCESS) stack.push_back(popped);
  std::reverse(stack.begin(), stack.end());
  return stack;
}

void Put(const Stack& stack) {
  for (const CUcontext context : stack) {
    FUZZ_CHECK(TheDriver().CtxPushCurrent(context) == CUDA_SUCCESS);
  }
}

// They are never destroyed but `own`, which is the process's.
struct Cast {
  CUcontext guards = CreateFloating();
  Stack callers = {CreateFloating(), CreateFloating(), CreateFloating()};
  Stack callees = {CreateFloating(), CreateFloating()};

  CUcontext Any(Input* input) const {
    const unsigned which = input->Below(1 + kCallers + kCallees);
    if (which == 0) return guards;
    return which <= kCallers ? callers[which - 1] : callees[which - 1 - kCallers];
  }
};

// What a callee did, as it concerns the promises.
struct Done {
  std::vector<CUcontext> left;  // its pushes, above what it was called with
  bool went_below = false;      // it changed what it was called with
  bool left_foreign = true;     // all of `left` are contexts of its own
};

std::vector<Incident> g_incidents;

template <typename Guard>
Done RunCallee(const Cast& cast, Guard* guard, Input* input) {
  const cuguest::DriverTable& driver = TheDriver();
  Done done;
  const auto push = [&](CUcontext context) {
    FUZZ_CHECK(driver.CtxPushCurrent(context) == CUDA_SUCCESS);
    done.left.push_back(context);
  };
  const auto replace = [&](CUcontext context) {
    FUZZ_CHECK(driver.CtxSetCurrent(context) == CUDA_SUCCESS);
    if (done.left.empty()) {
      done.went_below = true;
    } else {
      done.left.back() = context;
    }
  };
  while (!input->empty() && done.left.size() < kMostDeep) {
    CUcontext popped = nullptr;
    switch (input->Below(7)) {
      case 0:
        push(cast.Any(input));
        break;
      case 1:
        if (driver.CtxPopCurrent(&popped) != CUDA_SUCCESS) break;
        if (done.left.empty()) {
          done.went_below = true;
        } else {
          done.left.pop_back();
        }
        break;
      case 2:
        replace(cast.Any(input));
        break;
      case 3:  // as pop, of what is current
        if (Current() == nullptr) break;
        FUZZ_CHECK(driver.CtxSetCurrent(nullptr) == CUDA_SUCCESS);
        if (done.left.empty()) {
          done.went_below = true;
        } else {
          done.left.pop_back();
        }
        break;
      case 4: {  // a context that it makes, uses and destroys
        const CUcontext own = Create();
        if (input->Byte() & 1) {
          FUZZ_CHECK(driver.CtxPopCurrent(&popped) == CUDA_SUCCESS && popped == own);
        }
        FUZZ_CHECK(driver.CtxDestroy(own) == CUDA_SUCCESS);
        break;
      }
      case 5: {  // a guard of its own
        const ContextGuard inner(cast.Any(input));
        FUZZ_CHECK(inner.ok());
        break;
      }
      case 6:
        // Replaces what the callee left on top by the guard's context, or does nothing.
        FUZZ_CHECK(guard->Reassert() == CUDA_SUCCESS && Current() == guard->get());
        done.went_below = done.went_below || !done.left.empty();
        break;
    }
  }
  for (const CUcontext context : done.left) {
    const bool is_own =
        std::find(cast.callees.begin(), cast.callees.end(), context) != cast.callees.end();
    done.left_foreign = done.left_foreign && is_own;
  }
  return done;
}

bool HasUnrepaired() {
  return std::any_of(g_incidents.begin(), g_incidents.end(), [](const Incident& incident) {
    return incident.repair == Incident::Repair::kUnrepaired;
  });
}

template <typename Guard>
void RunGuard(const Cast& cast, Input* input) {
  const CUcontext guards = (input->Byte() & 1) ? cast.callers[0] : cast.guards;
  Stack caller;
  for (unsigned depth = input->Below(5); depth > 0; --depth) {
    caller.push_back(cast.callers[input->Below(kCallers)]);
  }
  Put(caller);
  g_incidents.clear();

  Done done;
  CUresult restored = CUDA_SUCCESS;
  bool is_elided = false;
  bool owes = false;  // its end returns what Reassert() could not repair
  {
    Guard guard(guards);
    FUZZ_CHECK(guard.ok() && Current() == guards);
    is_elided = guard.elided();
    done = RunCallee(cast, &guard, input);
    owes = HasUnrepaired();
    g_incidents.clear();  // those of Reassert() and of the callee's own guards
    restored = guard.Leave();
  }
  const std::vector<Incident> incidents = g_incidents;
  const Stack after = TakeDown();

  const bool is_exact = after == caller;
  const bool is_unrepaired = HasUnrepaired();
  FUZZ_CHECK(incidents.size() <= 1);
  const bool is_clean = !done.went_below && done.left.empty();
  // What is current is the caller's, whatever happened, or an incident says that it is not.
  const CUcontext current = after.empty() ? nullptr : after.back();
  const CUcontext callers_current = caller.empty() ? nullptr : caller.back();
  FUZZ_CHECK(current == callers_current || is_unrepaired);
  // The driver refuses nothing here.
  FUZZ_CHECK(restored == CUDA_SUCCESS || is_unrepaired || owes);
  // The guard that knows the whole stack restores it, and certain is certain.
  if (Guard::kIsExact) FUZZ_CHECK(is_exact);
  if (!incidents.empty() && incidents[0].repair == Incident::Repair::kRepaired)
    FUZZ_CHECK(is_exact);
  // A callee that leaves what it found is not reported; pushes of its own contexts that it leaves
  // are, and are taken off. So are pushes of the guard's context, if it pushed that on another one.
  if (is_clean) FUZZ_CHECK(is_exact && incidents.empty());
  const bool is_run = std::all_of(done.left.begin(), done.left.end(),
                                  [&](CUcontext one) { return one == done.left.front(); });
  const bool is_guards = !done.left.empty() && is_run && done.left.front() == guards &&
                         !is_elided && guards != callers_current;
  const bool is_found = done.left_foreign || is_guards;
  if (!done.went_below && !done.left.empty() && is_found) {
    FUZZ_CHECK(is_exact && incidents.size() == 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Cast& cast = *new Cast;
  static const cuguest::IncidentListener& listener = *new cuguest::IncidentListener(
      [](const Incident& incident, void*) { g_incidents.push_back(incident); });
  static_cast<void>(listener);
  Input input(data, size);
  switch (input.Below(3)) {
    case 0:
      RunGuard<guard_kinds::InMode<GuardMode::kElide>>(cast, &input);
      break;
    case 1:
      RunGuard<guard_kinds::InMode<GuardMode::kAlwaysPush>>(cast, &input);
      break;
    default:
      RunGuard<guard_kinds::Exact>(cast, &input);
      break;
  }
  return 0;
}

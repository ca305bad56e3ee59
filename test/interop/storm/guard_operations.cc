// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Guards of every kind, around callees that behave.

#include <utility>
#include <vector>

#include "cuguest/acquire.h"
#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_scope.h"
#include "cuguest/host_scope.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/runtime/callee_scope.h"
#include "cuguest/runtime/context.h"
#include "cuguest/runtime/device_guard.h"
#include "cuguest/status.h"
#include "cuguest/thread_home.h"
#include "test/guard/guard_kinds.h"
#include "test/interop/storm/operations.h"
#include "test/support/raw_driver.h"

namespace storm {
namespace {

using cuguest::Acquired;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::GuardMode;

void RequireCurrent(CUcontext expected) {
  CUcontext current = nullptr;
  REQUIRE_CALL(RAW(cuCtxGetCurrent)(&current));
  Require(current == expected, "the guard's context is current");
}

template <typename Guard>
void RequireInside(const Guard& guard) {
  RequireOk(guard);
  RequireCurrent(guard.get());
}

// Two guards, one in the other.
template <typename Guard>
void Nest(Worker& worker) {
  const ContextRef& outer = worker.PickContext();
  const ContextRef& inner = worker.PickContext();
  Guard first(outer);
  RequireInside(first);
  {
    Guard second(inner.get());
    RequireInside(second);
    Require(second.caller() == outer.get(), "the first guard's context is the second's caller");
    Require(second.Leave(), "leave the inner guard");
  }
  RequireCurrent(outer.get());
  Require(first.Reassert(), "reassert");
  Require(first.Leave(), "leave the outer guard");
}

// The outer one ends first, and is closed with the inner one.
void EndOutOfTurn(Worker& worker) {
  const ContextRef& outer = worker.PickContext();
  const ContextRef& inner = worker.PickContext();
  ContextGuard first(outer);
  RequireInside(first);
  cuguest::ContextScope second;
  Require(second.Enter(inner), "enter a scope");
  Require(first.Leave() == CUDA_ERROR_NOT_READY, "the outer guard cannot be left yet");
  RequireCurrent(inner.get());
  cuguest::ContextScope moved(std::move(second));
  Require(moved.Leave(), "leave the inner scope");
  RequireCurrent(worker.top());
}

// A loop over objects in many contexts, with a guard inside here and there.
void Move(Worker& worker) {
  ContextGuard guard(worker.random.OneIn(3) ? GuardMode::kAlwaysPush : GuardMode::kElide);
  for (int moves = worker.random.Below(8); moves > 0; --moves) {
    const ContextRef& next = worker.PickContext();
    Require(worker.random.OneIn(2) ? guard.MoveTo(next) : guard.MoveTo(next.get()), "move");
    RequireInside(guard);
    Require(guard.get() == next.get(), "the guard's context is where it moved");
    if (worker.random.OneIn(4)) {
      const ContextGuard nested(worker.PickContext());
      RequireInside(nested);
    }
  }
  if (worker.random.OneIn(2)) Require(guard.Leave(), "leave the guard");
}

// A host's stack of scopes.
void StackScopes(Worker& worker) {
  std::vector<cuguest::ContextScope> scopes;
  for (int count = 1 + worker.random.Below(6); count > 0; --count) {
    const ContextRef& next = worker.PickContext();
    Require(scopes.emplace_back().Enter(next), "enter a scope");
    RequireCurrent(next.get());
  }
  while (!scopes.empty() && !worker.random.OneIn(8)) {
    RequireCurrent(scopes.back().get());
    Require(scopes.back().Leave(), "leave a scope");
    scopes.pop_back();
  }
  // A vector destroys the outermost first.
  for (std::size_t open = scopes.size(); open > 1; --open) {
    worker.ExpectIncident(cuguest::Incident::Kind::kOutOfTurn);
  }
}

void CallBack(Worker& worker) {
  const ContextRef& home = worker.PickContext();
  ContextGuard guard(home);
  RequireInside(guard);
  {
    const cuguest::HostScope host(guard);
    RequireOk(host);
    RequireCurrent(worker.top());
    const ContextGuard nested(worker.PickContext());
    RequireInside(nested);
  }
  RequireInside(guard);
}

void NoContext(Worker& worker) {
  cuguest::NoContextGuard none;
  RequireOk(none);
  RequireCurrent(nullptr);
  {
    const ContextGuard guard(worker.PickContext());
    RequireInside(guard);
  }
  Require(none.Leave(), "put the stack back");
}

void Reside(Worker& worker) {
  cuguest::ThreadHome home(worker.PickContext());
  Require(home.error().code, "make it its own");
  Require(home.Check().code, "check");
  Require(home.MoveTo(worker.PickContext()).code, "move to another context");
  RequireCurrent(home.context().get());
  Require(home.Leave().code, "leave");
}

void CallCallee(Worker& worker) {
  const ContextRef& home = worker.PickContext();
  cuguest::runtime::CalleeScope scope(home);
  RequireOk(scope);
  int device = -1;
  Require(scope.Note(cudaGetDevice(&device), "cudaGetDevice"), "cudaGetDevice");
  Require(scope.Reassert(), "reassert");
  Require(scope.Leave(), "leave a callee");
}

void OnDevice(Worker& worker) {
  const int device = worker.random.Below(worker.world().devices());
  cuguest::runtime::DeviceGuard guard(Device::Borrow(device), cuguest::IfInactive::kCreate);
  Require(ToStatus(guard));
  int said = -1;
  REQUIRE_CALL(cudaGetDevice(&said));
  Require(said == device, "cudaGetDevice says the guard's device");
  Require(guard.Reassert(), "reassert");
}

void RequireAcquired(const Acquired& acquired, const ContextRef& expected) {
  Require(acquired.context() == expected, "the context that was acquired is the owner");
  const ContextGuard guard(acquired.context());
  RequireInside(guard);
}

void FromStream(Worker& worker) {
  const Lane& lane = worker.LaneOf(worker.PickPlace());
  RequireAcquired(Value(cuguest::AcquireFromStream(lane.stream.get())), lane.context);
}

void FromPointer(Worker& worker) {
  const Lane& lane = worker.LaneOf(worker.PickPlace());
  RequireAcquired(Value(cuguest::AcquireFromPointer(lane.x.get() + 4)), lane.context);
}

void FromDevice(Worker& worker) {
  const int device = worker.random.Below(worker.world().devices());
  const auto acquired = Value(cuguest::AcquireOn(Device::Borrow(device)));
  if (acquired.source() == Acquired::Source::kCurrent) {
    Require(acquired.get() == worker.top(), "the current context is acquired");
  } else {
    RequireAcquired(acquired, worker.world().primary(device));
  }
}

void AskTheRuntime(Worker& worker) {
  using Kind = cuguest::runtime::RuntimeContext::Kind;
  const auto next = Value(cuguest::runtime::RuntimeContext::Query());
  const bool primary = worker.world().IsPrimary(worker.top());
  const Kind expected =
      worker.stack.empty() ? Kind::kBinds : (primary ? Kind::kPrimary : Kind::kUser);
  Require(next.kind == expected, "where the runtime would work: " + next.ToString());
}

void Relax(Worker& worker) {
  const auto mode = static_cast<CUstreamCaptureMode>(worker.random.Below(3));
  cuguest::CaptureModeGuard guard(mode);
  RequireOk(guard);
  const ContextGuard nested(worker.PickContext());
  RequireInside(nested);
  Require(guard.Leave(), "put the capture mode back");
}

}  // namespace

Operations GuardOperations() {
  return {{"guard, elide", 120, &Nest<guard_kinds::InMode<GuardMode::kElide>>},
          {"guard, always push", 50, &Nest<guard_kinds::InMode<GuardMode::kAlwaysPush>>},
          {"guard, exact", 20, &Nest<guard_kinds::Exact>},
          {"guard, out of turn", 20, &EndOutOfTurn},
          {"guard, move", 40, &Move},
          {"stack of scopes", 20, &StackScopes},
          {"host scope", 20, &CallBack},
          {"no context", 20, &NoContext},
          {"thread home", 20, &Reside},
          {"callee scope", 30, &CallCallee},
          {"device guard", 30, &OnDevice},
          {"acquire by stream", 30, &FromStream},
          {"acquire by pointer", 20, &FromPointer},
          {"acquire on device", 20, &FromDevice},
          {"runtime context", 15, &AskTheRuntime},
          {"capture mode", 20, &Relax}};
}

}  // namespace storm

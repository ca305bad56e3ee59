// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Callees that do not behave, inside scopes that put right what they did.

#include <set>

#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/runtime/callee_scope.h"
#include "test/guard/guard_kinds.h"
#include "test/interop/storm/operations.h"
#include "test/support/raw_driver.h"

namespace storm {
namespace {

using cuguest::ContextRef;
using cuguest::GuardMode;
using cuguest::Incident;

enum class Damage { kReplace, kLeak, kPop };

// What a callee does in a guard's scope.
struct Deed {
  Damage damage;
  ContextRef home;     // the guard's context
  ContextRef foreign;  // what is left on the stack
  int device = 0;      // of `foreign`, a primary context, for kReplace
};

Deed PickDeed(Worker& worker, Damage damage) {
  const ContextRef home = worker.PickContext();
  if (damage != Damage::kReplace) return {damage, home, worker.PickContext()};
  const int device = worker.random.Below(worker.world().devices());
  return {damage, home, worker.world().primary(device), device};
}

void Commit(const Deed& deed) {
  CUcontext popped = nullptr;
  switch (deed.damage) {
    case Damage::kReplace:
      REQUIRE_CALL(cudaSetDevice(deed.device));
      break;
    case Damage::kLeak:
      REQUIRE_CALL(RAW(cuCtxPushCurrent)(deed.foreign.get()));
      break;
    case Damage::kPop:
      REQUIRE_CALL(RAW(cuCtxPopCurrent)(&popped));
      break;
  }
}

bool ChangesNothing(const Deed& deed) {
  return deed.damage == Damage::kReplace && deed.foreign == deed.home;
}

Incident::Kind KindOf(Damage damage) {
  switch (damage) {
    case Damage::kReplace:
      return Incident::Kind::kReplaced;
    case Damage::kLeak:
      return Incident::Kind::kLeakedPush;
    case Damage::kPop:
      break;
  }
  return Incident::Kind::kExtraPop;
}

enum class Entry { kElide, kAlwaysPush, kExact };

// Calls `body` with a Kind of that guard.
template <typename Body>
void With(Entry entry, const Body& body) {
  using guard_kinds::InMode;
  using guard_kinds::Kind;
  switch (entry) {
    case Entry::kElide:
      return body(Kind<InMode<GuardMode::kElide>>());
    case Entry::kAlwaysPush:
      return body(Kind<InMode<GuardMode::kAlwaysPush>>());
    case Entry::kExact:
      return body(Kind<guard_kinds::Exact>());
  }
}

// Whether the top of the stack tells a guard all: see Note [What is inferred] of
// docs/notes.md. Any other case is for ExactGuard.
bool ShowsOnTop(Worker& worker, const Deed& deed, Entry entry) {
  std::set<CUcontext> seen;
  for (const auto& each : worker.stack) seen.insert(each.context);
  if (seen.size() != worker.stack.size()) return false;
  const std::size_t depth = worker.stack.size();
  const bool elided = entry == Entry::kElide && worker.top() == deed.home.get();
  if (!elided && seen.count(deed.home.get()) != 0) return false;
  // Replaced or popped is inferred where nothing was pushed, also by what other repairs left.
  if (elided && deed.damage == Damage::kReplace) return false;
  if (deed.damage == Damage::kPop) return !elided || depth < 2;
  // What leaves the guard's own context on top is seen by looking once more after the pop.
  if (deed.foreign == deed.home) return !elided;
  return seen.count(deed.foreign.get()) == 0;
}

void Suffer(Worker& worker, Damage damage) {
  const Deed deed = PickDeed(worker, damage);
  const auto entry = static_cast<Entry>(worker.random.Below(3));
  const bool shows = ShowsOnTop(worker, deed, entry);
  With(shows ? entry : Entry::kExact, [&](auto kind) {
    guard_kinds::GuardOf<decltype(kind)> guard(deed.home);
    RequireOk(guard);
    Commit(deed);
    Require(guard.Leave(), "repair the stack");
  });
  if (ChangesNothing(deed)) return;
  worker.ExpectIncident(shows ? std::optional(KindOf(damage)) : std::nullopt);
}

void Replace(Worker& worker) { Suffer(worker, Damage::kReplace); }
void Leak(Worker& worker) { Suffer(worker, Damage::kLeak); }
void PopTooOften(Worker& worker) { Suffer(worker, Damage::kPop); }

void Reassert(Worker& worker) {
  const Deed deed = PickDeed(worker, Damage::kReplace);
  const bool shows = ShowsOnTop(worker, deed, Entry::kElide);
  With(shows ? Entry::kElide : Entry::kExact, [&](auto kind) {
    guard_kinds::GuardOf<decltype(kind)> guard(deed.home);
    RequireOk(guard);
    Commit(deed);
    Require(guard.Reassert(), "reassert");
    CUcontext current = nullptr;
    REQUIRE_CALL(RAW(cuCtxGetCurrent)(&current));
    Require(current == deed.home.get(), "reasserting makes the guard's context current");
  });
  if (ChangesNothing(deed)) return;
  worker.ExpectIncident(shows ? std::optional(Incident::Kind::kReplaced) : std::nullopt);
}

// A callee that binds a primary context where it was to find none.
void BindFromNone(Worker& worker) {
  cuguest::NoContextGuard none;
  RequireOk(none);
  REQUIRE_CALL(cudaSetDevice(worker.random.Below(worker.world().devices())));
  worker.ExpectIncident(Incident::Kind::kLeakedPush);
}

void LeaveAnError(Worker& worker) {
  const cuguest::runtime::CalleeScope scope(worker.PickContext());
  RequireOk(scope);
  Require(cudaSetDevice(1 << 20) == cudaErrorInvalidDevice, "there is no such device");
  worker.ExpectIncident(Incident::Kind::kLastError);
}

void LeaveACaptureMode(Worker& worker) {
  const cuguest::CaptureModeGuard guard(CU_STREAM_CAPTURE_MODE_RELAXED);
  RequireOk(guard);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  REQUIRE_CALL(RAW(cuThreadExchangeStreamCaptureMode)(&mode));
  worker.ExpectIncident(Incident::Kind::kCaptureMode);
}

}  // namespace

Operations HostileOperations() {
  return {{"cudaSetDevice", 40, &Replace},
          {"leaked push", 40, &Leak},
          {"extra pop", 40, &PopTooOften},
          {"reassert", 20, &Reassert},
          {"bound from none", 10, &BindFromNone},
          {"last error left", 10, &LeaveAnError},
          {"capture mode left", 5, &LeaveACaptureMode}};
}

}  // namespace storm

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What keeps a context: primary ones, shared ones, the thread's own; and what is cached in
// them.

#include "cuguest/context_guard.h"
#include "cuguest/per_context.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "test/interop/storm/operations.h"

namespace storm {
namespace {

using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::PrimaryContext;
using cuguest::SharedContext;
using cuguest::Stream;

void RetainPrimary(Worker& worker) {
  const int device = worker.random.Below(worker.world().devices());
  auto primary = worker.random.OneIn(2)
                     ? Value(PrimaryContext::Retain(Device::Borrow(device)))
                     : Value(PrimaryContext::RetainIfActive(Device::Borrow(device)));
  Require(primary.context() == worker.world().primary(device), "it is the same incarnation");
  Require(!primary.WasReset(), "nobody has reset it");
  Require(ToStatus(primary.Release()));
}

void Attach(Worker& worker) {
  const ContextRef& context = worker.PickContext();
  SharedContext mine = worker.random.OneIn(2) ? Value(SharedContext::Attach(context))
                                              : Value(SharedContext::Attach(context.get()));
  const SharedContext copy = mine;
  Require(mine.context() == context, "it is the same incarnation");
  Require(mine.use_count() >= 2 || mine.owner() == SharedContext::Owner::kPrimary,
          "both references are counted");
  Require(ToStatus(mine.Release()));
  const ContextGuard guard(copy.context());
  RequireOk(guard);
}

Slot& PickSlot(Worker& worker) {
  auto& slots = worker.world().slots();
  return slots[static_cast<std::size_t>(worker.random.Below(static_cast<int>(slots.size())))];
}

// Whatever the others do to the slot, the context is alive as long as the visit.
void Visit(Worker& worker) {
  const SharedContext visited = PickSlot(worker).Attach();
  const ContextGuard guard(visited.context());
  RequireOk(guard);
  Require(visited.owner() == SharedContext::Owner::kShared, "the last holder destroys it");
  Require(visited.context().IsAlive(), "it lives while it is visited");
}

void FindMark(Worker& worker) {
  const ContextRef& context = worker.PickContext();
  const auto mark = Value(
      worker.world().marks().GetOrMake(context, [](const ContextRef& here) -> absl::StatusOr<Mark> {
        absl::StatusOr<Stream> stream = Stream::Create(here);
        if (!stream.ok()) return stream.status();
        return Mark{here.id(), *std::move(stream)};
      }));
  Require(mark->id == context.id(), "the value found is of this incarnation of the context");
  Require(mark->stream.context() == context, "so is what it owns");
}

void ForgetMark(Worker& worker) { worker.world().marks().Forget(worker.PickContext()); }

void ReplaceSlot(Worker& worker) {
  Slot& slot = PickSlot(worker);
  SharedContext context = Value(SharedContext::Create(slot.device()));
  slot.Replace(&context);
}

// Not while it is in the thread's stack, where it would stay as a dead entry.
void MakeOrEndOwn(Worker& worker) {
  if (!worker.has_own()) return worker.MakeOwn();
  if (!worker.IsInStack(worker.ContextOf(Worker::kOwn).get())) worker.EndOwn();
}

}  // namespace

Operations OwnershipOperations() {
  return {{"retain primary", 30, &RetainPrimary},
          {"attach, detach", 40, &Attach},
          {"visit a slot", 40, &Visit},
          {"find a value", 60, &FindMark},
          {"forget a value", 4, &ForgetMark}};
}

Operations HeavyOperations() {
  return {{"replace a slot", 1, &ReplaceSlot}, {"own context", 2, &MakeOrEndOwn}};
}

}  // namespace storm

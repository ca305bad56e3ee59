// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code of 0.1.0's lib/context/registry.cc.

#include "test/embed/release_0_1/registry.h"

#include <memory>
#include <mutex>
#include <new>

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {
int ThisThreadsStripe() { return static_cast<int>(ThreadNumber() % unsigned{Slot::kStripes}); }
void Open(Slot* slot, const ContextRef& context, Ending ending, CUdevice device) {
  slot->id.store(context.id(), std::memory_order_relaxed);
  slot->ending.store(static_cast<std::uint64_t>(ending), std::memory_order_relaxed);
  slot->device.store(static_cast<std::uint64_t>(device), std::memory_order_relaxed);
  slot->context.store(reinterpret_cast<std::uintptr_t>(context.get()), std::memory_order_release);
  slot->root.store(Slot::kOpen | Slot::kStriped | 1, std::memory_order_release);
  for (Stripe& stripe : slot->stripes) {
    stripe.word.store(Stripe::kOpen, std::memory_order_release);
  }
}
void Gather(Slot* slot) {
  std::uint64_t sum = 0;
  for (Stripe& stripe : slot->stripes) {
    sum += stripe.word.exchange(0, std::memory_order_acq_rel) - Stripe::kOpen;
  }
  slot->root.fetch_add(sum - Slot::kBias - Slot::kStriped, std::memory_order_acq_rel);
}
bool HasNothingToEnd(const Slot& slot) {
  const Ending ending = slot.GetEnding();
  return ending == Ending::kNothing || ending == Ending::kRetired;
}
CUresult End(const Slot& slot) {
  if (slot.GetEnding() == Ending::kReleasePrimary) {
    return ReleasePrimary(static_cast<CUdevice>(slot.device.load(std::memory_order_relaxed)));
  }
  const auto handle = static_cast<std::uintptr_t>(slot.context.load(std::memory_order_relaxed));
  return DestroyLife(reinterpret_cast<CUcontext>(handle), slot.id.load(std::memory_order_relaxed));
}
bool CountIfOpen(Atomic<std::uint64_t>* word, std::uint64_t open, std::uint64_t change) {
  std::uint64_t now = word->load(std::memory_order_relaxed);
  while ((now & open) != 0) {
    if (word->compare_exchange_weak(now, now + change, std::memory_order_acq_rel)) return true;
  }
  return false;
}
bool TakeOffRoot(Slot* slot) {
  const bool is_idle_at_zero = HasNothingToEnd(*slot);
  std::uint64_t now = slot->root.load(std::memory_order_acquire);
  for (;;) {
    const bool gathers = now == (Slot::kOpen | Slot::kStriped | 1);
    const bool closes = now == (Slot::kOpen | 1) && !is_idle_at_zero;
    const std::uint64_t next = gathers ? now + Slot::kBias : closes ? 0 : now - 1;
    if (!slot->root.compare_exchange_weak(now, next, std::memory_order_acq_rel)) continue;
    if (!gathers) return closes;
    Gather(slot);
    now = slot->root.load(std::memory_order_acquire);
  }
}
CUresult LeaveRoot(Slot* slot) {
  if (!TakeOffRoot(slot)) return CUDA_SUCCESS;
  const CUresult code = HasNothingToEnd(*slot) ? CUDA_SUCCESS : End(*slot);
  slot->context.store(0, std::memory_order_release);
  return code;
}
bool CountUp(Slot* slot, Unit* unit) {
  *unit = {slot, ThisThreadsStripe()};
  if (CountIfOpen(&slot->stripes[unit->stripe].word, Stripe::kOpen, 1)) return true;
  unit->stripe = Unit::kRoot;
  return CountIfOpen(&slot->root, Slot::kOpen, 1);
}
bool TryJoin(Slot* slot, CUcontext context, unsigned long long id, Unit* unit) {
  if (!slot->IsFor(context, id) || !CountUp(slot, unit)) return false;
  if (slot->IsFor(context, id)) return true;
  static_cast<void>(Registry::Leave(*unit));
  return false;
}
}  // namespace
template <typename Predicate>
Slot* Registry::Find(Predicate is_wanted) noexcept {
  for (Chunk* chunk = &first_; chunk != nullptr;
       chunk = chunk->next.load(std::memory_order_acquire)) {
    for (Slot& slot : chunk->slots) {
      if (is_wanted(&slot)) return &slot;
    }
  }
  return nullptr;
}
Unit Registry::Join(CUcontext context, unsigned long long id) noexcept {
  Unit unit;
  const auto joins = [&](Slot* slot) { return TryJoin(slot, context, id, &unit); };
  return Find(joins) != nullptr ? unit : Unit{};
}
Unit Registry::Join(const ContextRef& context) noexcept {
  return Join(context.get(), context.id());
}
Unit Registry::JoinLatest(CUcontext context) noexcept {
  bool is_known = false;
  unsigned long long latest = 0;
  const auto look = [&](Slot* slot) {
    const unsigned long long id = slot->id.load(std::memory_order_relaxed);
    if (slot->IsFor(context, id) && slot->IsOpen()) {
      is_known = true;
      if (id > latest) latest = id;
    }
    return false;
  };
  static_cast<void>(Find(look));
  return is_known ? Join(context, latest) : Unit{};
}
template <typename Use>
Registry::Outcome Registry::WithSlots(Use use) noexcept {
  std::unique_ptr<Chunk> chunk;
  for (;;) {
    {
      const std::lock_guard<SharedMutex> lock(opening_);
      if (chunk != nullptr) Add(chunk.release());
      const Outcome outcome = use();
      if (outcome != Outcome::kNoMemory) return outcome;
    }
    chunk.reset(new (std::nothrow) Chunk);
    if (chunk == nullptr) return Outcome::kNoMemory;
  }
}
Registry::Outcome Registry::JoinOrOpen(const ContextRef& context, Ending ending, CUdevice device,
                                       Unit* unit) noexcept {
  return WithSlots([&] {
    const auto joins = [&](Slot* slot) { return slot->IsFor(context) && CountUp(slot, unit); };
    if (Find(joins) != nullptr) return Outcome::kJoined;
    *unit = Unit{};
    const Slot* closing = Find([&](Slot* slot) {
      return slot->IsFor(context) && !slot->IsOpen() && slot->GetEnding() == Ending::kDestroy;
    });
    if (closing != nullptr) return Outcome::kClosing;
    Slot* unused = FindUnused();
    if (unused == nullptr) return Outcome::kNoMemory;
    Open(unused, context, ending, device);
    *unit = {unused, Unit::kRoot};
    return Outcome::kOpened;
  });
}
Registry::Outcome Registry::OpenNew(const ContextRef& context, CUdevice device,
                                    Unit* unit) noexcept {
  return WithSlots([&] {
    const auto retire = [&](Slot* slot) {
      if (slot->IsFor(context)) {
        slot->ending.store(static_cast<std::uint64_t>(Ending::kRetired), std::memory_order_relaxed);
      }
      return false;
    };
    static_cast<void>(Find(retire));
    *unit = Unit{};
    Slot* unused = FindUnused();
    if (unused == nullptr) return Outcome::kNoMemory;
    Open(unused, context, Ending::kDestroy, device);
    *unit = {unused, Unit::kRoot};
    return Outcome::kOpened;
  });
}
Slot* Registry::FindUnused() noexcept {
  const auto is_free = [](Slot* slot) {
    return slot->context.load(std::memory_order_acquire) == 0;
  };
  Slot* unused = Find(is_free);
  if (unused != nullptr) return unused;
  return Find([](Slot* slot) {
    std::uint64_t idle = Slot::kOpen;
    return HasNothingToEnd(*slot) &&
           slot->root.compare_exchange_strong(idle, 0, std::memory_order_acq_rel);
  });
}
void Registry::Add(Chunk* chunk) noexcept {
  Chunk* last = &first_;
  while (Chunk* next = last->next.load(std::memory_order_relaxed)) last = next;
  last->next.store(chunk, std::memory_order_release);
}
Unit Registry::Copy(Slot* slot) noexcept {
  Unit unit;
  static_cast<void>(CountUp(slot, &unit));
  return unit;
}
CUresult Registry::Leave(const Unit& unit) noexcept {
  if (unit.stripe != Unit::kRoot &&
      CountIfOpen(&unit.slot->stripes[unit.stripe].word, Stripe::kOpen, std::uint64_t(-1))) {
    return CUDA_SUCCESS;
  }
  return LeaveRoot(unit.slot);
}
std::uint64_t Registry::Count(const Slot& slot) noexcept {
  std::uint64_t sum = slot.root.load(std::memory_order_relaxed) & Slot::kCount;
  if (sum >= Slot::kBias / 2) sum -= Slot::kBias;
  for (const Stripe& stripe : slot.stripes) {
    const std::uint64_t word = stripe.word.load(std::memory_order_relaxed);
    if ((word & Stripe::kOpen) != 0) sum += word - Stripe::kOpen;
  }
  return static_cast<std::int64_t>(sum) < 1 ? 1 : sum;
}
bool Registry::Knows(CUcontext handle) noexcept {
  const auto wanted = reinterpret_cast<std::uintptr_t>(handle);
  return Find([=](Slot* slot) {
           return slot->context.load(std::memory_order_relaxed) == wanted;
         }) != nullptr;
}
}  // namespace internal
CUGUEST_END_NAMESPACE

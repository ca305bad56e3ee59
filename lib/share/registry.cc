// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The protocol: see Note [Slots are never freed] and Note [Stripes of a slot].

#include "lib/share/registry.h"

#include <mutex>
#include <new>

#include "lib/share/ending.h"
#include "lib/share/system.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

int ThisThreadsStripe() { return static_cast<int>(ThreadNumber() % unsigned{Slot::kStripes}); }

// The slot is closed, and the mutex is held: nobody else writes it.
void Open(Slot* slot, const ContextRef& context, Ending ending, CUdevice device) {
  slot->id.store(context.id(), std::memory_order_relaxed);
  slot->ending.store(static_cast<std::uint64_t>(ending), std::memory_order_relaxed);
  slot->device.store(static_cast<std::uint32_t>(device), std::memory_order_relaxed);
  slot->context.store(reinterpret_cast<std::uintptr_t>(context.get()), std::memory_order_release);
  slot->root.store(Slot::kOpen | Slot::kStriped | 1, std::memory_order_release);
  for (Stripe& stripe : slot->stripes) {
    stripe.word.store(Stripe::kOpen, std::memory_order_release);
  }
}

// Step 1 of Note [Stripes of a slot] is done.
void Gather(Slot* slot) {
  std::uint64_t sum = 0;
  for (Stripe& stripe : slot->stripes) {
    sum += stripe.word.exchange(0, std::memory_order_acq_rel) - Stripe::kOpen;
  }
  slot->root.fetch_add(sum - Slot::kBias - Slot::kStriped, std::memory_order_acq_rel);
}

// Nor at the ending of a later layout.
bool HasNothingToEnd(const Slot& slot) {
  const Ending ending = slot.GetEnding();
  return ending != Ending::kDestroy && ending != Ending::kReleasePrimary;
}

CUresult End(const Slot& slot) {
  if (slot.GetEnding() == Ending::kReleasePrimary) {
    return ReleasePrimary(slot.GetDevice());
  }
  const auto handle = static_cast<std::uintptr_t>(slot.context.load(std::memory_order_relaxed));
  return DestroyLife(reinterpret_cast<CUcontext>(handle), slot.id.load(std::memory_order_relaxed));
}

// Adds `change` to the count in `word`, unless it is not open.
bool CountIfOpen(Atomic<std::uint64_t>* word, std::uint64_t open, std::uint64_t change) {
  std::uint64_t now = word->load(std::memory_order_relaxed);
  while ((now & open) != 0) {
    if (word->compare_exchange_weak(now, now + change, std::memory_order_acq_rel)) return true;
  }
  return false;
}

// Takes the caller's reference off the root. True for the last holder of a slot that has
// something to end; the slot is closing then, and the caller's to end.
bool TakeOffRoot(Slot* slot) {
  const bool is_idle_at_zero = HasNothingToEnd(*slot);  // kept as it is by the reference
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

// Counts one up, on this thread's stripe if that is open. False if the slot is not.
bool CountUp(Slot* slot, Reference* reference) {
  *reference = {slot, ThisThreadsStripe()};
  if (CountIfOpen(&slot->stripes[reference->stripe].word, Stripe::kOpen, 1)) return true;
  reference->stripe = Reference::kRoot;
  return CountIfOpen(&slot->root, Slot::kOpen, 1);
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

bool Registry::TryJoin(Slot* slot, CUcontext context, unsigned long long id,
                       Reference* reference) noexcept {
  if (!slot->IsFor(context, id) || !CountUp(slot, reference)) return false;
  if (slot->IsFor(context, id)) return true;
  static_cast<void>(Leave(*reference));
  return false;
}

bool Registry::TryJoin(Slot* slot, const ContextRef& context, Reference* reference) noexcept {
  return TryJoin(slot, context.get(), context.id(), reference);
}

Reference Registry::Join(CUcontext context, unsigned long long id) noexcept {
  Reference reference;
  const auto joins = [&](Slot* slot) { return TryJoin(slot, context, id, &reference); };
  return Find(joins) != nullptr ? reference : Reference{};
}

Reference Registry::Join(const ContextRef& context) noexcept {
  return Join(context.get(), context.id());
}

Reference Registry::JoinLatest(CUcontext context) noexcept {
  bool is_known = false;
  unsigned long long latest = 0;  // the driver counts ids up
  const auto look = [&](Slot* slot) {
    const unsigned long long id = slot->id.load(std::memory_order_relaxed);
    if (slot->IsFor(context, id) && slot->IsOpen()) {
      is_known = true;
      if (id > latest) latest = id;
    }
    return false;
  };
  static_cast<void>(Find(look));
  return is_known ? Join(context, latest) : Reference{};
}

Registry::Outcome Registry::JoinOrOpen(const ContextRef& context, Ending ending, CUdevice device,
                                       Reference* reference) noexcept {
  // Nobody gives a slot to another context while the mutex is held, so the key need not be
  // read again, and there is nothing to leave.
  const auto joins = [&](Slot* slot) { return slot->IsFor(context) && CountUp(slot, reference); };
  const auto is_closing = [&](Slot* slot) {
    return slot->IsFor(context) && !slot->IsOpen() && slot->GetEnding() == Ending::kDestroy;
  };
  const auto retire = [&](Slot* slot) {
    if (slot->IsFor(context)) {
      slot->ending.store(static_cast<std::uint64_t>(Ending::kRetired), std::memory_order_relaxed);
    }
    return false;
  };
  const bool is_new = ending == Ending::kDestroy;
  Chunk* chunk = nullptr;  // ours until it is in the list
  Chunk* last = &first_;
  for (;;) {
    {
      const std::lock_guard<SharedMutex> lock(opening_);
      while (Chunk* const next = last->next.load(std::memory_order_relaxed)) last = next;
      if (chunk != nullptr) last->next.store(chunk, std::memory_order_release);
      chunk = nullptr;
      if (is_new) static_cast<void>(Find(retire));
      if (!is_new && Find(joins) != nullptr) return Outcome::kJoined;
      *reference = Reference{};
      if (!is_new && Find(is_closing) != nullptr) return Outcome::kClosing;
      if (Slot* const unused = FindUnused()) {
        Open(unused, context, ending, device);
        *reference = {unused, Reference::kRoot};
        return Outcome::kOpened;
      }
    }
    void* const place = AllocateAligned(alignof(Chunk), sizeof(Chunk));
    if (place == nullptr) return Outcome::kNoMemory;
    chunk = new (place) Chunk();  // with the rest of each line 0
  }
}

// A closed one: free, or closed now because it was idle; nullptr if there is none. Call
// under the mutex.
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

Reference Registry::Copy(Slot* slot) noexcept {
  Reference reference;
  static_cast<void>(CountUp(slot, &reference));  // it is open: the caller has a reference
  return reference;
}

CUresult Registry::Leave(const Reference& reference) noexcept {
  Slot* const slot = reference.slot;
  const bool is_on_stripe =
      reference.stripe != Reference::kRoot &&
      CountIfOpen(&slot->stripes[reference.stripe].word, Stripe::kOpen, std::uint64_t(-1));
  if (is_on_stripe || !TakeOffRoot(slot)) return CUDA_SUCCESS;
  // Retired meanwhile: below CUDA 12.0 another context has the handle.
  const CUresult code = HasNothingToEnd(*slot) ? CUDA_SUCCESS : End(*slot);
  slot->context.store(0, std::memory_order_release);
  return code;
}

std::uint64_t Registry::Count(const Slot& slot) noexcept {
  std::uint64_t sum = slot.root.load(std::memory_order_relaxed) & Slot::kCount;
  // Gathered at this moment: the bias is there, and perhaps more has left the root than came.
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

bool Registry::IsMade(const ContextRef& context) noexcept {
  return Find([&](Slot* slot) {
           return slot->IsFor(context) && slot->GetEnding() == Ending::kDestroy;
         }) != nullptr;
}

CUGUEST_END_INTERNAL_NAMESPACE

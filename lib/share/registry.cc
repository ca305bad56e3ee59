// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The protocol: see Note [Slots are never freed], Note [The index] and Note [Stripes of a slot].

#include "lib/share/registry.h"

#include <mutex>
#include <new>

#include "lib/share/ending.h"
#include "lib/share/system.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

int ThisThreadsStripe() { return static_cast<int>(ThreadNumber() % std::uint64_t{Slot::kStripes}); }

// The slot is closed, and the mutex is held: nobody else writes it. Who reads this ending sees no
// earlier handle any more: see IsClosing().
void Open(Slot* slot, const ContextRef& context, Ending ending, CUdevice device) {
  slot->context.store(0, std::memory_order_relaxed);
  slot->id.store(context.id(), std::memory_order_release);
  slot->ending.store(static_cast<std::uint64_t>(ending), std::memory_order_release);
  slot->device.store(static_cast<std::uint32_t>(device), std::memory_order_relaxed);
  slot->is_retired.store(0, std::memory_order_relaxed);
  slot->context.store(reinterpret_cast<std::uintptr_t>(context.get()), std::memory_order_release);
  slot->root.store(Slot::kOpen | Slot::kStriped | 1, std::memory_order_release);
  for (Stripe& stripe : slot->stripes) {
    stripe.word.store(Stripe::kOpen, std::memory_order_release);
  }
}

// Of its maker, who has joined it under the mutex.
void Own(Slot* slot, CUdevice device) {
  slot->device.store(static_cast<std::uint32_t>(device), std::memory_order_relaxed);
  slot->ending.store(static_cast<std::uint64_t>(Ending::kDestroy), std::memory_order_release);
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

// Whether the slot, which is not open, is closing, and counts what was made for sharing at this
// handle, with this id if one is given. The handle is read again, as another may have the slot by
// now.
bool IsClosing(const Slot& slot, CUcontext handle, const unsigned long long* id) {
  return static_cast<Ending>(slot.ending.load(std::memory_order_acquire)) == Ending::kDestroy &&
         (id == nullptr || slot.id.load(std::memory_order_acquire) == *id) && slot.IsAt(handle);
}

CUresult End(const Slot& slot) {
  if (slot.GetEnding() == Ending::kReleasePrimary) {
    return ReleasePrimary(slot.GetDevice());
  }
  if (slot.is_retired.load(std::memory_order_relaxed) != 0) return CUDA_SUCCESS;  // it is gone
  // Round trip: the slot has the number from a context.
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
  std::uint64_t now = slot->root.load(std::memory_order_acquire);
  for (;;) {
    const bool gathers = now == (Slot::kOpen | Slot::kStriped | 1);
    const bool is_last = now == (Slot::kOpen | 1);
    const bool closes = is_last && !HasNothingToEnd(*slot);
    const std::uint64_t next = gathers ? now + Slot::kBias : closes ? 0 : now - 1;
    if (!slot->root.compare_exchange_weak(now, next, std::memory_order_acq_rel)) continue;
    if (closes || !(gathers || is_last)) return closes;
    if (is_last) break;
    Gather(slot);
    now = slot->root.load(std::memory_order_acquire);
  }
  // It is idle. Its maker may have come and gone since its ending was read.
  std::uint64_t idle = Slot::kOpen;
  return !HasNothingToEnd(*slot) &&
         slot->root.compare_exchange_strong(idle, 0, std::memory_order_acq_rel);
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

// Handles are addresses, often a power of two apart: the multiplication (by 2^64 over the golden
// ratio) brings all of their bits to the top.
std::size_t Registry::HashOf(std::uintptr_t handle) noexcept {
  return static_cast<std::size_t>(handle * 0x9e3779b97f4a7c15 >> 32 >> (32 - kHashBits));
}

void Registry::Remember(Slot* slot) noexcept {
  const std::size_t hash = HashOf(slot->context.load(std::memory_order_relaxed));
  Atomic<Slot*>* place = nullptr;
  for (Atomic<Slot*>& one : index_[hash].slots) {
    const Slot* const other = one.load(std::memory_order_acquire);
    if (other == slot) return;
    if (place != nullptr) continue;
    const auto handle =
        other != nullptr && other->is_retired.load(std::memory_order_relaxed) == 0
            ? static_cast<std::uintptr_t>(other->context.load(std::memory_order_relaxed))
            : 0;
    if (handle == 0 || HashOf(handle) != hash) place = &one;
  }
  if (place == nullptr) place = index_[hash].slots;
  place->store(slot, std::memory_order_release);
}

// What `is_wanted` of the slots at this handle.
template <typename Predicate>
Slot* Registry::FindAt(CUcontext context, Predicate is_wanted) noexcept {
  const auto is_found = [&](Slot* slot) { return slot->IsAt(context) && is_wanted(slot); };
  for (const Atomic<Slot*>& place :
       index_[HashOf(reinterpret_cast<std::uintptr_t>(context))].slots) {
    Slot* const slot = place.load(std::memory_order_acquire);
    if (slot != nullptr && is_found(slot)) return slot;
  }
  Slot* const slot = Find(is_found);
  if (slot != nullptr) Remember(slot);
  return slot;
}

Registry::Outcome Registry::Join(CUcontext context, const unsigned long long* id,
                                 Reference* reference) noexcept {
  bool is_closing = false;
  const auto joins = [&](Slot* slot) {
    if (CountUp(slot, reference)) return true;
    is_closing = is_closing || IsClosing(*slot, context, id);
    return false;
  };
  if (FindAt(context, joins) != nullptr) return Outcome::kJoined;
  *reference = Reference{};
  return is_closing ? Outcome::kClosing : Outcome::kUnknown;
}

Registry::Outcome Registry::JoinOrOpen(const ContextRef& context, Ending ending, CUdevice device,
                                       Reference* reference) noexcept {
  const bool makes = ending == Ending::kDestroy;
  Outcome outcome = Outcome::kOpened;
  // Nobody gives a slot to another context while the mutex is held, so the key need not be
  // read again, and there is nothing to leave.
  const auto look = [&](Slot* slot) {
    if (!slot->IsAt(context.get())) return false;
    const unsigned long long id = slot->id.load(std::memory_order_relaxed);
    if (id > context.id()) {
      outcome = Outcome::kOver;
    } else if (id < context.id() || (makes && id == 0)) {
      slot->is_retired.store(1, std::memory_order_relaxed);
    } else if (CountUp(slot, reference)) {
      outcome = Outcome::kJoined;
      if (makes) Own(slot, device);
    } else if (slot->GetEnding() == Ending::kDestroy) {
      outcome = Outcome::kClosing;
    }
    return outcome != Outcome::kOpened;
  };
  Chunk* chunk = nullptr;  // ours until it is in the list
  Chunk* last = &first_;
  for (;;) {
    {
      const std::lock_guard<SharedMutex> lock(header_.opening);
      while (Chunk* const next = last->next.load(std::memory_order_relaxed)) last = next;
      if (chunk != nullptr) last->next.store(chunk, std::memory_order_release);
      chunk = nullptr;
      static_cast<void>(Find(look));
      if (outcome == Outcome::kJoined) return outcome;
      *reference = Reference{};
      if (outcome != Outcome::kOpened) return outcome;
      if (Slot* const unused = FindUnused()) {
        Open(unused, context, ending, device);
        Remember(unused);
        *reference = {unused, Reference::kRoot};
        return outcome;
      }
    }
    void* const place = MapZeros(sizeof(Chunk));
    if (place == nullptr) return Outcome::kNoMemory;
    chunk = new (place) Chunk;
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

Registry* Registry::InZeros(void* place, const RegistryHeader& header) noexcept {
  auto* const registry = static_cast<Registry*>(place);
  registry->header_.magic = header.magic;
  registry->header_.size = header.size;
  registry->header_.numbers = header.numbers;
  return registry;
}

Registry* Door::Open() noexcept {
  Registry* there = registry.load(std::memory_order_acquire);
  if (there != nullptr) return there;
  void* const place = MapZeros(header.size);
  if (place == nullptr) return nullptr;
  Registry* const made = Registry::InZeros(place, header);
  if (registry.compare_exchange_strong(there, made, std::memory_order_acq_rel)) return made;
  Unmap(place, header.size);
  return there;
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
  const CUresult code = End(*slot);
  if (IsStillHeld(code)) {
    slot->root.store(Slot::kOpen | 1, std::memory_order_release);
  } else {
    slot->context.store(0, std::memory_order_release);
  }
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
  const auto is_its = [&](Slot* slot) { return slot->IsFor(context); };
  const Slot* const slot = FindAt(context.get(), is_its);
  return slot != nullptr && slot->GetEnding() == Ending::kDestroy;
}

CUGUEST_END_INTERNAL_NAMESPACE

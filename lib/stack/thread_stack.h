// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The calling thread's stack of contexts, as far as the driver lets it be seen: one
// entry at a time, from the top. Everything that takes entries off in order to put
// them back goes through here, because of one rule: a handle whose context is dead is
// never pushed (the driver accepts it and corrupts its heap), so which incarnation an entry
// is, and whether it is dead, is asked while it is still on the stack, where the driver keeps
// its memory.

#ifndef CUGUEST_LIB_STACK_THREAD_STACK_H_
#define CUGUEST_LIB_STACK_THREAD_STACK_H_

#include <algorithm>

#include "cuguest/internal/compiler.h"
#include "cuguest/internal/incarnation.h"
#include "lib/core/driver_access.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// CheckIncarnation() of incarnation.h, for code that has a driver's table.
inline CUresult CheckIncarnation(const DriverTable& driver,
                                 const Incarnation& incarnation) noexcept {
  unsigned long long id = 0;
  const CUresult code = ReadId(driver, incarnation.context, &id);
  return incarnation.Check(code, id);
}

// Note [Which context is primary]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The driver tells the handle of a primary context only to a caller that retains it, and that
// creates it where the last holder has let go a moment before. But the handle is the same in every
// incarnation (cudasim/test/primary_facts_test.cc), so it is needed once for each device: it is
// kept from the first reference that anybody takes through this copy. Only where there was none
// yet, and the device's primary context is active, is it retained in order to ask; if that created
// it, the release that follows destroys it.

// Of a device beyond these it is asked each time. Atomic, and without a constructor.
constexpr unsigned kDevicesWithPrimary = 64;
extern CUcontext g_primaries[kDevicesWithPrimary];

// Keeps the handle of the primary context of `device`.
inline void LearnPrimary(CUdevice device, CUcontext primary) noexcept {
  const auto index = static_cast<unsigned>(device);
  if (index < kDevicesWithPrimary) {
    StoreRelaxed(&g_primaries[index], primary);
  }
}
// The one that is kept; or nullptr.
inline CUcontext LearntPrimary(CUdevice device) noexcept {
  const auto index = static_cast<unsigned>(device);
  if (index >= kDevicesWithPrimary) return nullptr;
  return LoadRelaxed(&g_primaries[index]);
}

// False if `context` is known not to be the primary context of `device`, whatever incarnation.
inline bool CanBePrimary(CUcontext context, CUdevice device) noexcept {
  CUcontext const learnt = LearntPrimary(device);
  return learnt == nullptr || learnt == context;
}

// Whether `context`, which is current and alive, is its device's primary context. See the note.
// False where the driver refuses. Of a context of our own making, Registry::IsMade() knows better.
CUresult AskIfPrimary(const DriverTable& driver, CUcontext context, bool* is_primary) noexcept;

// An entry of a stack, as it was found there.
struct StackEntry {
  Incarnation incarnation;  // without its id if it is dead, or the driver does not tell it
  bool is_dead;
};

// Entries taken off a stack, in the order they came: of more than kMax the last are kept.
class RemovedEntries {
 public:
  static constexpr long kMax = 64;
  void Add(const StackEntry& entry) { entries_[PlaceOf(count_++)] = entry; }
  long count() const { return count_; }
  // Entry `i` from the top, which must be below both count() and kMax.
  const StackEntry& FromTop(long i) const { return entries_[PlaceOf(i)]; }
  // Entry `i` from the bottom, which must be below both count() and kMax.
  const StackEntry& FromBottom(long i) const { return entries_[PlaceOf(count_ - 1 - i)]; }
  bool HasDead() const {
    bool has_dead = false;
    for (long i = 0; i < std::min(count_, kMax); ++i) has_dead = has_dead || entries_[i].is_dead;
    return has_dead;
  }

 private:
  static unsigned long PlaceOf(long i) { return static_cast<unsigned long>(i) % kMax; }

  StackEntry entries_[kMax];
  long count_ = 0;
};

// The driver must be resolved. Calls that fail are tried once more before they are believed, since
// giving up half-way through a repair is worse than a wasted call; the fast paths of the guards do
// not come here.
namespace stack {

// nullptr if the stack is empty.
CUresult Current(CUcontext* current);
// CUDA_ERROR_INVALID_CONTEXT if, and only if, the stack is empty.
CUresult Pop(CUcontext* popped);
// Pushes `entry`, or replaces the top by it. CUDA_ERROR_CONTEXT_IS_DESTROYED, and nothing
// done, if the incarnation is over; also where another has its handle, unless that is a
// primary context that was reset and retained again: the caller's entry would have become
// valid again with it.
CUresult Push(const Incarnation& entry);
CUresult Replace(const Incarnation& entry);
// Whether Push() would not say that it is over.
bool CanBePut(const Incarnation& entry);

// The last act of every repair: unless `entry` is current, whatever is on top becomes it (a null
// context: one entry goes). CUDA_ERROR_CONTEXT_IS_DESTROYED, and nothing done, as Replace();
// another code if the driver refuses.
CUresult MakeCurrent(const Incarnation& entry);

// The top, with its id. Exact, since the entry keeps its context's memory.
// CUDA_ERROR_INVALID_CONTEXT if the stack is empty.
CUresult Look(StackEntry* top);
// Whether the incarnation goes on; of an unknown one, whether its handle is alive. Best
// effort for a foreign context that may be destroyed; see ContextRef::IsAlive.
bool IsAlive(const Incarnation& incarnation);
// Whether `found`, an entry that was on the stack, is what `entry` was: the same handle, of
// the same incarnation or of a primary context that was reset and retained again.
bool IsSame(const Incarnation& entry, const Incarnation& found);

// Takes the top off onto `taken`. Errors: as Look().
CUresult Remove(RemovedEntries* taken);
// Puts the lowest `count` back but what is dead, or has died meanwhile: that is no failure, and so
// no code of it can be read as the caller's. The first failure, if any, after trying all.
CUresult PutBack(const RemovedEntries& taken, long count = RemovedEntries::kMax);

}  // namespace stack
CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_STACK_THREAD_STACK_H_

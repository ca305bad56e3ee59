// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Contexts: the slots that handles point at, and their incarnations.
//
// Note [A handle is a slot, an incarnation is an id]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A CUcontext is the address of a slot in a fixed arena, so a value that never was
// a context is recognised without reading what it points at. What a real driver
// was measured to do (an H100, driver 580.159.04) gives the rest:
//
// - The memory of a destroyed context stays while some thread's stack holds it, and
//   until then the dead handle may even be pushed again. So `holds` counts stack
//   entries, and a user slot is free when it is dead and its last hold is gone. The
//   next create takes the slot that was freed last.
// - The id of an incarnation is never used again; everything that lives in a context is keyed by
//   the id, not by the slot.
// - A device's primary context is one slot for ever. It dies at the last release
//   and at a reset, and comes back at the same handle with a new id; holding it
//   while it is dead is allowed.
//
// `holds` and the state are one atomic word: pushing and popping take no lock.
//
// Note [A green context is a place, its primary is the owner]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A green context has a handle, an id and an incarnation of its own, and CUgreenCtx and CUcontext
// are the same address. Only streams live in it: memory, events, modules, limits and flags that are
// made or asked for while it is current are those of its device's primary context, which cannot die
// before it (measured on an H100, driver 580.159.04). `owner` leads there; every other context is
// its own owner.

#ifndef CUDASIM_DRIVER_CONTEXT_CONTEXT_H_
#define CUDASIM_DRIVER_CONTEXT_CONTEXT_H_

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "driver/context/device.h"

namespace cudasim::driver {

// What cuCtxGetApiVersion answers for all but contexts of the first cuCtxCreate.
inline constexpr unsigned kApiVersion = 3020;
inline constexpr unsigned kFirstApiVersion = 3010;

// Of a context, on drivers of 13.1 and newer: how many work without waiting for another, of 8 by
// default (CUDA_DEVICE_MAX_CONNECTIONS, CUDA C++ Programming Guide), and whether these are its own
// as far as can be (CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED).
struct WorkQueues {
  unsigned limit = 8;
  unsigned scope = 0;
};

// What a context has of its device.
struct Partition {
  unsigned multiprocessors = kMultiprocessors;
  WorkQueues queues;
};

// Threads: any, unless said otherwise.
class Context {
 public:
  // The slot that `handle` is the address of, dead or alive; nullptr for a value
  // that never was a context.
  static Context* Find(CUcontext handle);

  // The same, but panics for a value that never was a context: a real driver
  // reads it as one and crashes, or worse.
  static Context* FindOrPanic(CUcontext handle);

  static void SetNextId(std::uint64_t id);

  // A new user context with no holds, or nullptr when the arena or the device's
  // memory is full.
  static Context* Create(CUdevice device, unsigned flags, unsigned api_version);

  // A green context with no holds on a part of the device of `primary`, which is
  // alive and stays so; or nullptr as above.
  static Context* CreateGreen(Context* primary, const Partition& partition);

  // The context that a call names: INVALID_CONTEXT for a green one that no call gave out as a
  // CUcontext yet; panics as FindOrPanic().
  static CUresult FindNamed(CUcontext handle, Context** context);

  // The device's primary slot.
  static Context* Primary(CUdevice device);

  // Contexts that are alive.
  static size_t CountUser();
  static size_t CountGreen();

  CUcontext handle() { return reinterpret_cast<CUcontext>(this); }
  // nullptr unless green.
  CUgreenCtx green_handle() { return is_green() ? reinterpret_cast<CUgreenCtx>(this) : nullptr; }
  CUdevice device() const { return device_; }
  bool is_primary() const { return primary_; }
  bool is_green() const { return owner_ != nullptr; }
  // See Note [A green context is a place, its primary is the owner].
  Context* owner() { return is_green() ? owner_ : this; }
  const Partition& partition() const { return partition_; }
  bool IsAlive() const { return (word_.load(std::memory_order_acquire) & kAlive) != 0; }
  std::uint64_t id() const { return id_.load(std::memory_order_acquire); }
  unsigned api_version() const { return api_version_; }

  // One more, one fewer stack entry. A user context whose memory is gone (see the
  // Note) cannot be held: false.
  bool Hold();
  void Unhold();

  // Whether the memory behind the handle is still there.
  bool HasMemory() const { return primary_ || word_.load(std::memory_order_acquire) != 0; }

  // Once a call has given it out as a CUcontext, a green context's handle is one (measured on an
  // H100, driver 580.159.04).
  void ShowAsContext() { is_shown_.store(true); }

  // Ends the incarnation of a user or green context, once its work is done: false if another call
  // did before, or if there is none. Everything that lived in it is gone afterwards. (Whether a
  // real driver waits for the work or drops it has not been measured.)
  bool Destroy();

  // Begins and, once its work is done, ends an incarnation of a primary context; the caller
  // serialises these.
  bool Activate(unsigned flags);
  void Deactivate();

  // cuCtxAttach's count, which only cuCtxDetach looks at.
  void Attach() { attached_.fetch_add(1); }
  bool DetachIsLast() { return attached_.fetch_sub(1) == 1; }

  // Settings of this incarnation.
  static constexpr size_t kLimits = CU_LIMIT_MAX;
  std::atomic<unsigned> flags{0};
  std::atomic<size_t> limits[kLimits] = {};
  std::atomic<CUfunc_cache> cache_config{CU_FUNC_CACHE_PREFER_NONE};
  std::atomic<unsigned> affinity{0};  // multiprocessors, as cuCtxGetExecAffinity answers

 private:
  friend class Arena;
  friend class PrimaryArena;
  static Context* SlotIn(Context* slots, size_t count, const void* handle);
  static constexpr std::uint64_t kHolds = 0xffffffffu;  // mask
  static constexpr std::uint64_t kAlive = std::uint64_t{1} << 32;

  static Context* TakeSlot(CUdevice device, size_t memory);
  void BeginIncarnation(unsigned flags_of_incarnation);
  void SweepIncarnation();

  std::atomic<std::uint64_t> word_{0};
  std::atomic<std::uint64_t> id_{0};
  std::atomic<unsigned> attached_{0};
  std::atomic<bool> is_shown_{true};
  CUdevice device_ = 0;
  unsigned api_version_ = 0;
  bool primary_ = false;
  Context* owner_ = nullptr;        // of a green context: its primary
  Partition partition_{0, {0, 0}};  // zeros, as all of a slot that was never used
  size_t memory_ = 0;               // what the incarnation takes on the device
  Context* next_free_ = nullptr;    // guarded by the arena's mutex
};

// One incarnation of a context, as objects in it remember it.
struct Incarnation {
  Context* context = nullptr;
  std::uint64_t id = 0;

  bool IsAlive() const { return context->IsAlive() && context->id() == id; }
};

inline Incarnation IncarnationOf(Context* context) { return Incarnation{context, context->id()}; }

inline Incarnation OwnerOf(const Incarnation& incarnation) {
  return incarnation.context->is_green() ? IncarnationOf(incarnation.context->owner())
                                         : incarnation;
}

// Peer access: who was allowed to reach whom. Copies between devices work without it (measured on
// two H200, driver 580.159.04).
//
// Whether the one was allowed to reach the other, by the ids of their incarnations.
bool IsPeer(std::uint64_t from_id, std::uint64_t to_id);

void DropPeersOf(std::uint64_t context_id);

// The range of stream priorities is 0 to this.
inline constexpr int kGreatestPriority = -5;

// Whether cuCtxCreate and the primary context accept them.
bool AreContextFlags(unsigned flags);

// The values a new incarnation begins with.
void ResetSettings(Context* context);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CONTEXT_CONTEXT_H_

// SPDX-License-Identifier: Apache-2.0
//
// The registry of attached contexts: one per process, shared by every copy of cuguest
// that is linked into it.
//
// Note [One registry per process]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Libraries embed cuguest as a static archive with hidden symbols, so the dynamic
// linker cannot merge their registries. Each copy therefore carries a registry in
// static storage and an ELF note that says where it is. Whoever needs the process's
// registry walks the loaded objects (dl_iterate_phdr, in load order) and takes the
// first one with a note of its own layout: the home. All copies see the same order, so
// all take the same one, also when they look at the same time. The object that holds
// the home is pinned by the first copy that is not itself in it, and outlives its
// dlclose from then on; being first in the list is then for good.
//
// The layout is C: fixed offsets, no pointers to code, atomic words of 64 bits. A copy
// with another layout is left alone; SharedContext::CheckSharing() tells of it. Any
// change to Slot, Chunk or Registry, or to what their words mean, is a new layout.
//
// A note, because nothing else survives how libraries are built: a weak or GNU-unique
// symbol is hidden by -Wl,--exclude-libs, and clang does not make the latter.
// test/process/plugins_test.cc has the builds that were tried.
//
// Note [Slots are never freed]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A slot counts the units of one life of one context. Its root is kOpen and a count.
//
//   free      context 0, not open
//   in use    open; the count may be 0, if nothing has to be ended when it gets there
//   closing   not open, context not 0: the last one out is ending what it counted
//
// A count is raised only while what it is in is open, by compare and exchange, and a slot
// that is open is closed only at count 0, in the same way; its key is written only while it
// is not open. So a unit keeps the slot open and the key as it is. Who joins reads the key
// first, and again when he has a unit: if the slot was given to another context in between
// he leaves again, as any unit does. New slots are opened under the mutex.
//
// Note [Stripes of a slot]
// ~~~~~~~~~~~~~~~~~~~~~~~~
// Threads that count on one line take turns at it. So whoever opens a slot holds a unit of
// the root, and others count on stripes, a line for every few threads, without looking for
// zero: while the slot is striped, the root is not 0, so neither is the sum. The holder of
// the root's last unit gathers the stripes before he leaves:
//
//   1. he adds kBias to the root, so that nobody takes it for low meanwhile,
//   2. takes each stripe's count and closes it, in one exchange,
//   3. adds their sum to the root and takes kBias and kStriped off it.
//
// A unit that was counted on a stripe is the root's from the moment in which the stripe
// was closed: who gives it back finds the stripe closed and turns to the root. A slot that
// was gathered stays so until it is opened anew.

#ifndef CUGUEST_LIB_CONTEXT_REGISTRY_H_
#define CUGUEST_LIB_CONTEXT_REGISTRY_H_

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "cuguest/context_ref.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// What happens when the last one leaves.
enum class Ending : std::uint64_t {
  kNothing,         // the context is its owner's
  kDestroy,         // it was made for sharing
  kReleasePrimary,  // the slot holds one unit of the driver's count
};

// A cache line that some of the threads count on.
struct alignas(64) Stripe {
  static constexpr std::uint64_t kOpen = std::uint64_t{1} << 63;
  std::atomic<std::uint64_t> word{0};  // kOpen and a count
};

struct Slot {
  static constexpr std::uint64_t kOpen = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kStriped = std::uint64_t{1} << 62;
  static constexpr std::uint64_t kBias = std::uint64_t{1} << 48;
  static constexpr std::uint64_t kCount = kStriped - 1;
  static constexpr int kStripes = 16;

  alignas(64) std::atomic<std::uint64_t> root{0};

  // The key, and what is read with it.
  alignas(64) std::atomic<std::uint64_t> context{0};  // the handle; 0: free
  std::atomic<std::uint64_t> id{0};
  std::atomic<std::uint64_t> ending{0};
  std::atomic<std::uint64_t> device{0};

  Stripe stripes[kStripes];

  bool IsOpen() const { return (root.load(std::memory_order_acquire) & kOpen) != 0; }
  bool Is(const ContextRef& wanted) const {
    return context.load(std::memory_order_acquire) ==
               reinterpret_cast<std::uintptr_t>(wanted.get()) &&
           id.load(std::memory_order_relaxed) == wanted.id();
  }
  Ending GetEnding() const { return static_cast<Ending>(ending.load(std::memory_order_relaxed)); }
};

struct Chunk {
  static constexpr int kSlots = 16;
  Slot slots[kSlots];
  std::atomic<Chunk*> next{nullptr};
};

// One unit of a slot, and where it was counted.
struct Unit {
  Slot* slot = nullptr;  // nullptr: none
  int stripe = kRoot;
  static constexpr int kRoot = -1;
};

// Registry
//
// Threads: any.
class Registry {
 public:
  // The process's; this copy's own if that one cannot be had.
  static Registry& OfProcess() noexcept;

  // Takes a unit of `context` if a slot for it is open. No lock.
  Unit Join(const ContextRef& context) noexcept;

  enum class Outcome { kOpened, kJoined, kClosing, kNoMemory };
  // Takes a unit of `context`, opening a slot for it if there is none. kClosing: the
  // last one out is destroying the context.
  Outcome JoinOrOpen(const ContextRef& context, Ending ending, CUdevice device,
                     Unit* unit) noexcept;

  // One more unit of a slot that the caller has a unit of.
  static Unit Copy(Slot* slot) noexcept;

  // Gives a unit back; the last one out ends the context, and this is the outcome.
  static CUresult Leave(const Unit& unit) noexcept;

  // How many units there are, by adding up what changes meanwhile.
  static std::uint64_t Count(const Slot& slot) noexcept;

  // Whether some slot is, or was last, for a context at this handle.
  bool Knows(CUcontext handle) noexcept;

  // Whether this is the registry that a note promised.
  bool IsValid() const noexcept { return magic_ == kMagic && size_ == sizeof(Registry); }

 private:
  static constexpr std::uint32_t kMagic = 0x74736775;

  template <typename Predicate>
  Slot* Find(Predicate is_wanted) noexcept;
  Slot* FindUnused() noexcept;

  std::uint32_t magic_ = kMagic;
  std::uint32_t size_ = sizeof(Registry);
  pthread_mutex_t opening_ = PTHREAD_MUTEX_INITIALIZER;
  Chunk first_;
};

// A copy of cuguest in this process, as its note tells of it.
struct EmbeddedCopy {
  std::string path;  // of the object that embeds it; empty for the main program
  std::uint32_t layout = 0;
  Registry* registry = nullptr;  // nullptr unless the layout is ours
};

// Every copy, in load order.
std::vector<EmbeddedCopy> FindCopies();

// The layout of this copy.
std::uint32_t RegistryLayout() noexcept;

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_CONTEXT_REGISTRY_H_

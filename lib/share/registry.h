// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The registry of attached contexts: one per process, shared by every copy of cuguest
// that is linked into it.
//
// Note [One registry per process]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Libraries embed cuguest as a static archive with hidden symbols, so the dynamic
// linker cannot merge their registries. Each copy therefore carries a registry in
// static storage and an ELF note that says where it is. A copy that needs the process's
// registry walks the loaded objects (dl_iterate_phdr, in load order) and takes the
// first registry that it understands: the home. All copies see the same order, so
// all take the same one, also when they look at the same time. The object that holds
// the home is pinned by the first copy that is not itself in it, and outlives its
// dlclose from then on; being first in the list is then for good.
//
// On Windows a named section of memory has the place of the notes (registry_home_windows.cc): the
// first copy that needs a registry is the home, and pins itself.
//
// A note, because nothing else survives how libraries are built: a weak or GNU-unique
// symbol is hidden by -Wl,--exclude-libs, and clang does not make the latter.
// test/process/plugins_test.cc has the builds that were tried.
//
// Note [The layout is an ABI]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Copies from different releases work on one registry, so its layout is C: fixed offsets,
// no pointers to code, atomic words of 64 bits. Any change to Slot, Chunk or Registry, to
// what their words mean, or to the protocol below takes a new layout number
// (registry_home_posix.cc, which also asserts the offsets). A patch release never changes it; a
// minor release may, and its entry in the changelog says so.
//
//   layout  releases  minimal reader
//   1                 1               before the first release
//   2       0.1       2               the last holder closes a slot in the step that takes its
//                                     reference off; kRetired
//   3       0.2       2               as 2, and what follows
//
// A registry has three numbers (LayoutNumbers): the layout of the copy that embeds it; its
// minimal reader, the oldest layout whose copies understand it, which is the type of the note;
// and the oldest minimal reader that this copy understands. A copy takes the first registry
// whose minimal reader is neither older than that nor newer than its own layout. In a registry
// of an older layout it works as that layout says. Copies that take different registries count
// apart, and CheckSharing() of each reports it.
//
// The same in every layout from 2 on: the note; magic, size and mutex of the registry, and the
// layout numbers behind them, which are 0 in layout 2.
//
// What a later layout may add while its minimal reader is 2: whatever copies of layout 2 do not
// read and do not write. That is the rest of each cache line of the registry and of a slot, and
// the upper half of a slot's device, which an opener of layout 2 or 3 sets to 0, so that it can
// say whether the rest of the slot means anything. In chunks that copies of layout 2 added the
// rest of a line is indeterminate; copies from layout 3 on set it to 0.
//
// What one may add while its minimal reader is 3: all that, a registry that is larger, and other
// endings. A copy does nothing at an ending that it does not know: what the slot counted then
// stays, which is a leak; copies of layout 2 would destroy the context.
//
// test/process/other_releases_test.cc runs copies of layout 2, 3 and later ones in one process.
//
// Note [Slots are never freed]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A slot counts the references to one incarnation of one context. Its root is kOpen and a
// count.
//
//   free      context 0, not open
//   in use    open; the count may be 0 (idle) if nothing has to be ended when it gets there
//   closing   not open, context not 0: the last holder is ending what the slot counted
//
//   (1) A count is raised only while what it is in is open, by compare-and-exchange.
//   (2) An open slot is closed only by an exchange from exactly kOpen | 1, by the holder of
//       that reference, to closing; or from exactly kOpen | 0, under the mutex, to free.
//   (3) Key and ending are written only under the mutex: while the slot is not open; or the
//       ending alone, to kRetired.
//
// So a reference keeps the slot open and the key as it is, and the last holder reads the
// ending while it still holds its reference. There is no moment between "nobody is left"
// and "closed" in which the slot could be opened for another context: a slot that has
// something to end is never idle.
//
// A thread that joins reads the key first, and again when it has a reference; if the slot
// was given to another context in between it leaves again, like any holder. Under the mutex
// no slot is given to another context, so nobody leaves (and calls the driver) there.
//
// test/schedules/registry_test.cc explores the schedules of this and of the next note.
//
// Note [Stripes of a slot]
// ~~~~~~~~~~~~~~~~~~~~~~~~
// Threads that count on one line take turns at it. So the opener of a slot holds a
// reference of the root, and others count on stripes, a line for every few threads, without
// looking for zero: while the slot is striped, the root is not 0, so neither is the sum. The
// holder of the root's last reference gathers the stripes before it leaves:
//
//   1. it exchanges kOpen | kStriped | 1 for the same with kBias added, so that nobody takes
//      the root for low meanwhile, and nobody else gathers,
//   2. takes each stripe's count and closes it, in one exchange,
//   3. adds their sum to the root and takes kBias and kStriped off it.
//
// A reference that was counted on a stripe is the root's from the moment in which the stripe
// was closed: its holder finds the stripe closed and turns to the root. A slot that was
// gathered stays so until it is opened anew. Step 1 is one exchange, because a thread that
// finds its stripe closed may still read the root as it was before step 1.

#ifndef CUGUEST_LIB_SHARE_REGISTRY_H_
#define CUGUEST_LIB_SHARE_REGISTRY_H_

#include <cstdint>

#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "lib/core/concurrency.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// What happens when the last holder leaves.
enum class Ending : std::uint64_t {
  kNothing,         // the context is its owner's
  kDestroy,         // it was made for sharing
  kReleasePrimary,  // the slot holds one reference of the driver's count
  kRetired,         // nothing: the context is gone, and another one has its handle and id
};

// A cache line that some of the threads count on.
struct alignas(64) Stripe {
  static constexpr std::uint64_t kOpen = std::uint64_t{1} << 63;
  Atomic<std::uint64_t> word{0};  // kOpen and a count
};

struct Slot {
  static constexpr std::uint64_t kOpen = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kStriped = std::uint64_t{1} << 62;
  static constexpr std::uint64_t kBias = std::uint64_t{1} << 48;
  static constexpr std::uint64_t kCount = kStriped - 1;
  static constexpr int kStripes = Spread(16, 2);

  alignas(64) Atomic<std::uint64_t> root{0};

  // The key, and what is read with it.
  alignas(64) Atomic<std::uint64_t> context{0};  // the handle; 0: free
  Atomic<std::uint64_t> id{0};
  Atomic<std::uint64_t> ending{0};
  Atomic<std::uint64_t> device{0};

  Stripe stripes[kStripes];

  bool IsOpen() const { return (root.load(std::memory_order_acquire) & kOpen) != 0; }
  bool IsFor(CUcontext handle, unsigned long long wanted_id) const {
    return context.load(std::memory_order_acquire) == reinterpret_cast<std::uintptr_t>(handle) &&
           id.load(std::memory_order_relaxed) == wanted_id && GetEnding() != Ending::kRetired;
  }
  bool IsFor(const ContextRef& wanted) const { return IsFor(wanted.get(), wanted.id()); }
  CUdevice GetDevice() const {  // the lower half: see Note [The layout is an ABI]
    return static_cast<CUdevice>(device.load(std::memory_order_relaxed) & 0xffffffff);
  }
  Ending GetEnding() const { return static_cast<Ending>(ending.load(std::memory_order_relaxed)); }
};

struct Chunk {
  static constexpr int kSlots = Spread(16, 2);
  Slot slots[kSlots];
  Atomic<Chunk*> next{nullptr};
};

// See Note [The layout is an ABI].
struct LayoutNumbers {
  std::uint32_t layout = 0;
  std::uint32_t oldest = 0;  // the oldest minimal reader that it understands
};

// Of this copy. A test builds copies with others.
#ifndef CUGUEST_REGISTRY_LAYOUT
#define CUGUEST_REGISTRY_LAYOUT 3
#define CUGUEST_REGISTRY_MINIMAL_READER 2
#define CUGUEST_REGISTRY_OLDEST 2
#endif
constexpr LayoutNumbers kLayoutOfThisCopy = {CUGUEST_REGISTRY_LAYOUT, CUGUEST_REGISTRY_OLDEST};

// One reference to a slot, and where it was counted.
struct Reference {
  Slot* slot = nullptr;  // nullptr: none
  int stripe = kRoot;
  static constexpr int kRoot = -1;
};

// Registry
//
// Threads: any. The mutex is held neither across a call of the driver nor an allocation.
class Registry {
 public:
  // The process's; this copy's own if that one cannot be had.
  static Registry& OfProcess() noexcept;

  // IsMade() of the process's, which is left as it is: the object that embeds it is not pinned.
  static bool IsMadeInProcess(const ContextRef& context) noexcept;

  // Takes a reference to `context` if a slot for it is open. No lock. May turn out to be
  // the last holder of another slot, and end what that one counted.
  Reference Join(const ContextRef& context) noexcept;

  // The same if `slot`, of whatever registry, is open for `context`; false otherwise.
  static bool TryJoin(Slot* slot, const ContextRef& context, Reference* reference) noexcept;

  // The same for the latest incarnation of `context` that a slot is open for, so that the
  // reference keeps it from being ended while the caller asks which incarnation is alive.
  Reference JoinLatest(CUcontext context) noexcept;

  enum class Outcome { kOpened, kJoined, kClosing, kNoMemory };
  // Takes a reference to `context`, opening a slot for it if there is none. kClosing: the
  // last holder is destroying the context. None is taken then, and without memory.
  //
  // kDestroy: the context was created a moment ago, and nobody else knows it. A slot with the same
  // key, which there can be below CUDA 12.0, where all ids are 0, counts a context that is gone;
  // nobody joins it any more.
  Outcome JoinOrOpen(const ContextRef& context, Ending ending, CUdevice device,
                     Reference* reference) noexcept;

  // One more reference to a slot that the caller has one to.
  static Reference Copy(Slot* slot) noexcept;

  // Gives a reference back; the last holder ends the context, and this is the outcome.
  static CUresult Leave(const Reference& reference) noexcept;

  // How many references there are, by adding up what changes meanwhile; at least the
  // caller's.
  static std::uint64_t Count(const Slot& slot) noexcept;

  // Whether some slot is, or was last, for a context at this handle.
  bool Knows(CUcontext handle) noexcept;

  // Whether `context` was made by SharedContext::Create(), of whatever copy, and has holders.
  bool IsMade(const ContextRef& context) noexcept;

  // Whether this is a registry, as a note promised.
  bool IsValid() const noexcept { return magic_ == kMagic && size_ >= sizeof(Registry); }

  // Of the copy that embeds it.
  LayoutNumbers numbers() const noexcept { return numbers_; }

 private:
  static constexpr std::uint32_t kMagic = 0x74736775;

  Reference Join(CUcontext context, unsigned long long id) noexcept;
  static bool TryJoin(Slot* slot, CUcontext context, unsigned long long id,
                      Reference* reference) noexcept;
  template <typename Predicate>
  Slot* Find(Predicate is_wanted) noexcept;
  Slot* FindUnused() noexcept;

  std::uint32_t magic_ = kMagic;
  std::uint32_t size_ = sizeof(Registry);
  SharedMutex opening_;
  LayoutNumbers numbers_ = kLayoutOfThisCopy;
  Chunk first_;
};

// A copy of cuguest in this process, as its note and its registry tell of it.
struct EmbeddedCopy {
  const char* path = "";  // of the object that embeds it, while it is; empty for the main program
  std::uint32_t minimal_reader = 0;
  LayoutNumbers numbers;
  Registry* registry = nullptr;  // nullptr if the note leads to none

  // Whether it can work in the registry of `other`.
  bool Understands(const EmbeddedCopy& other) const noexcept {
    return other.registry != nullptr && other.minimal_reader >= numbers.oldest &&
           other.minimal_reader <= numbers.layout;
  }
};

// Calls `visit` with every copy, in load order, until it returns true. The objects cannot be
// unloaded meanwhile: the dynamic linker's lock is held, so `visit` asks for no memory and calls
// nobody. In a child that was forked in the middle of it there is this copy alone.
void ForEachCopy(bool (*visit)(const EmbeddedCopy& copy, void* data), void* data);

// This copy.
EmbeddedCopy ThisCopy();

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_SHARE_REGISTRY_H_

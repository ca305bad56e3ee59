// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The registry of attached contexts: one per process, shared by every copy of cuguest
// that is linked into it.
//
// Note [One registry per process]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Libraries embed cuguest as a static archive with hidden symbols, so the dynamic
// linker cannot merge their registries. Each copy therefore has a door in static
// storage and an ELF note that says where it is. A copy that needs the process's
// registry walks the loaded objects (dl_iterate_phdr, in load order) to the first door that
// it understands. The registry is memory of its own, behind that door: who comes first makes it.
// The walk keeps the dynamic linker from unloading anything, so the door is there while it is
// written; afterwards it may go. A copy writes into its own door, too, where it was led. So a copy
// that is loaded later finds the same registry at the first door of those that are left, and
// nothing has to be kept from being unloaded.
//
// On Windows a named section of memory has the place of the doors (registry_home_windows.cc).
//
// A note, because nothing else survives how libraries are built: a weak or GNU-unique
// symbol is hidden by -Wl,--exclude-libs, and clang does not make the latter.
// test/process/plugins_test.cc has the builds that were tried.
//
// Note [The layout is an ABI]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Copies from different releases work on one registry, so its layout is C: fixed offsets,
// no pointers to code, atomic words of 64 bits. Any change to Door, Slot, Chunk or Registry, to
// what their words mean, or to the protocol below takes a new layout number
// (registry_home_posix.cc, which also asserts the offsets). A patch release never changes it; a
// minor release may, and its entry in the changelog says so.
//
//   layout  releases  minimal reader
//   1                 1               before the first release
//   2       0.1       2               the last holder closes a slot in the step that takes its
//                                     reference off
//   3       0.2       2               the layout numbers
//   4       0.3       4               doors; one slot for a handle, the others are retired; the
//   index
//
// A door has three numbers: the layout of its copy; its minimal reader, the oldest layout whose
// copies understand the registry behind it, which is the type of the note; and the oldest minimal
// reader that this copy understands. A copy takes the first door whose minimal reader is neither
// older than that nor newer than its own layout. Whichever copy makes the registry behind a door,
// it is of the door's size and numbers, and the rest of it is 0. Copies that take different
// registries count apart, and CheckSharing() of each reports it: those of 0.1 and 0.2 count
// together, and apart from those of later releases.
//
// The same in every layout from 2 on: the note, and the magic and the size that it leads to.
//
// What a later layout may add while its minimal reader is 4: whatever copies of layout 4 do not
// read and do not write. That is the rest of each cache line of the registry, of a chunk and of a
// slot, which is 0 at first; a registry that is larger; and other endings. A copy does nothing at
// an ending that it does not know: what the slot counted then stays, which is a leak. What a later
// layout keeps in the rest of a slot means something with an ending of its own alone: an opener of
// layout 4 leaves it as it is.
//
// test/process/other_releases_test.cc runs copies of 0.1.0, of this layout and of later ones in one
// process.
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
//       that reference, to closing; or from exactly kOpen | 0, under the mutex, to free. What was
//       closed is open again, with that one reference, if the driver refused (IsStillHeld()).
//   (3) The key is written only under the mutex, while the slot is not open, its handle last; the
//       ending, too, with one exception: Create() may find a slot for the context that it has just
//       made, which somebody opened by the handle alone. It joins that and writes kDestroy.
//   (4) Slots at one handle that are not retired are for one incarnation, and one of them at most
//       is open. Who opens a slot retires, under the mutex, those of earlier incarnations: the
//       driver counts ids up. Where a slot is for a later one, nothing is opened.
//
// So a reference keeps the slot open and the key as it is. There is no moment between "nobody is
// left" and "closed" in which the slot could be opened for another context: a slot that has
// something to end is idle only where its maker came and went while the last holder was leaving
// what had nothing to end, and that holder looks again and closes it.
//
// A thread that joins reads the key first, and again when it has a reference and knows which
// incarnation is alive; if the slot is for another one it leaves again, like any holder. Under the
// mutex no slot is given to another context, so nobody leaves (and calls the driver) there.
//
// A thread that wants to join and finds a closing slot, of a context that was made for sharing, is
// refused, and asks the driver nothing: what it would be asked about is being destroyed. Without
// an id it is refused, too, where the driver has given the handle to another context already.
//
// A slot is retired once, and counts on: its holders leave as they would, and the last one ends
// nothing that is gone. The context is; a reference of the driver's count is not, since a reset of
// the device keeps the count.
//
// So a handle alone finds the one slot to join. A caller without a ref joins before it asks the
// driver which incarnation is alive: the answer is in the context's memory, which no holder
// destroys then.
//
// test/schedules/registry_test.cc explores the schedules of these notes.
//
// Note [The index]
// ~~~~~~~~~~~~~~~~
// Where the slots of some handles are, so that to join costs the same however many there are. A
// handle has the places of one cache line, by a hash. A thread that opens a slot, or has searched
// for one, writes it into a place that is empty or of no use any more, else into the first. Nothing
// relies on it: what is found there is compared as in a search, and what is not is searched for.
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

#include <cstddef>
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
  Atomic<std::uint64_t> is_retired{0};  // another context has the handle

  Stripe stripes[kStripes];

  bool IsOpen() const { return (root.load(std::memory_order_acquire) & kOpen) != 0; }
  // Whether the latest context at `handle` is the one that it counts, as far as is known.
  bool IsAt(CUcontext handle) const {
    return context.load(std::memory_order_acquire) == reinterpret_cast<std::uintptr_t>(handle) &&
           is_retired.load(std::memory_order_relaxed) == 0;
  }
  bool IsFor(const ContextRef& wanted) const {
    return IsAt(wanted.get()) && id.load(std::memory_order_relaxed) == wanted.id();
  }
  CUdevice GetDevice() const {
    return static_cast<CUdevice>(device.load(std::memory_order_relaxed));
  }
  Ending GetEnding() const { return static_cast<Ending>(ending.load(std::memory_order_relaxed)); }
};

struct Chunk {  // in memory that was 0
  static constexpr int kSlots = Spread(16, 2);
  Slot slots[kSlots];
  Atomic<Chunk*> next{nullptr};
};

// The places of the index for handles with one hash.
struct alignas(64) Places {
  static constexpr int kPlaces = Spread(8, 1);
  Atomic<Slot*> slots[kPlaces] = {};
};

// See Note [The layout is an ABI].
struct LayoutNumbers {
  std::uint32_t layout = 0;
  std::uint32_t oldest = 0;  // the oldest minimal reader that it understands
};

// Of this copy. A test builds copies with others.
#ifndef CUGUEST_REGISTRY_LAYOUT
#define CUGUEST_REGISTRY_LAYOUT 4
#define CUGUEST_REGISTRY_MINIMAL_READER 4
#define CUGUEST_REGISTRY_OLDEST 4
#endif
constexpr LayoutNumbers kLayoutOfThisCopy = {CUGUEST_REGISTRY_LAYOUT, CUGUEST_REGISTRY_OLDEST};

// One reference to a slot, and where it was counted.
struct Reference {
  Slot* slot = nullptr;  // nullptr: none
  int stripe = kRoot;
  static constexpr int kRoot = -1;
};

// The first line of a registry, and of a door.
struct RegistryHeader {
  static constexpr std::uint32_t kMagic = 0x74736775;

  std::uint32_t magic = kMagic;
  std::uint32_t size = 0;  // of the registry
  SharedMutex opening;
  LayoutNumbers numbers;
};

class Registry;

// What a copy has of a registry before there is one.
struct Door {
  RegistryHeader header;
  Atomic<Registry*> registry{nullptr};  // written once

  // The registry behind it, which is made if there is none; nullptr without memory.
  Registry* Open() noexcept;
};

// Registry
//
// Threads: any. The mutex is held neither across a call of the driver nor an allocation.
class Registry {
 public:
  // In memory that is 0, as all of a registry is at first but its header: so no page of it is
  // written before it is used. `header` is of a door.
  static Registry* InZeros(void* place, const RegistryHeader& header) noexcept;

  // The process's, once this copy has looked for it.
  static Registry* IfFound() noexcept;
  // The same; looks for it on the first call, which waits for the dynamic linker: see
  // ForEachCopy(). nullptr without memory.
  static Registry* OfProcess() noexcept;

  // IsMade() of the process's, which need not be there.
  static bool IsMadeInProcess(const ContextRef& context) noexcept;

  enum class Outcome { kOpened, kJoined, kUnknown, kClosing, kOver, kNoMemory };

  // Takes a reference to the latest context at this handle, if a slot for one is open: kJoined. The
  // caller asks IsFor() of it, and leaves where it is another one: an earlier or later incarnation,
  // or what the slot was given to meanwhile. kClosing: a last holder is destroying a context at
  // this handle, and, unless `id` is null, with this id. No lock.
  Outcome Join(CUcontext context, const unsigned long long* id, Reference* reference) noexcept;

  // Takes a reference to `context`, opening a slot for it if there is none. kClosing: the
  // last holder is destroying the context. kOver: a later one has its handle. None is taken then,
  // and without memory.
  //
  // kDestroy: the context was created a moment ago. A thread that had its handle from before may
  // have opened a slot for it since; that is joined then. A slot with an id of 0, as all are below
  // CUDA 12.0, counts a context that is gone; it is retired.
  Outcome JoinOrOpen(const ContextRef& context, Ending ending, CUdevice device,
                     Reference* reference) noexcept;

  // One more reference to a slot that the caller has one to.
  static Reference Copy(Slot* slot) noexcept;

  // Gives a reference back; the last holder ends the context, and this is the outcome. Where it
  // IsStillHeld() (ending.h), the reference is the caller's as before.
  static CUresult Leave(const Reference& reference) noexcept;

  // How many references there are, by adding up what changes meanwhile; at least the
  // caller's.
  static std::uint64_t Count(const Slot& slot) noexcept;

  // Whether some slot is, or was last, for a context at this handle.
  bool Knows(CUcontext handle) noexcept;

  // Whether `context` was made by SharedContext::Create(), of whatever copy, and has holders.
  bool IsMade(const ContextRef& context) noexcept;

 private:
  static constexpr unsigned kHashBits = Spread(6, 0);

  template <typename Predicate>
  Slot* Find(Predicate is_wanted) noexcept;
  template <typename Predicate>
  Slot* FindAt(CUcontext context, Predicate is_wanted) noexcept;
  static std::size_t HashOf(std::uintptr_t handle) noexcept;
  void Remember(Slot* slot) noexcept;
  Slot* FindUnused() noexcept;

  RegistryHeader header_;
  Chunk first_;
  Places index_[1 << kHashBits];  // see Note [The index]
};

// A copy of cuguest in this process, as its note and its door tell of it.
struct EmbeddedCopy {
  const char* path = "";  // of the object that embeds it, while it is; empty for the main program
  std::uint32_t minimal_reader = 0;
  LayoutNumbers numbers;
  Door* door = nullptr;  // nullptr if the note leads to none

  // Whether it can work in the registry behind the door of `other`.
  bool Understands(const EmbeddedCopy& other) const noexcept {
    return other.door != nullptr && other.minimal_reader >= numbers.oldest &&
           other.minimal_reader <= numbers.layout;
  }
};

// Calls `visit` with every copy, in load order, until it returns true. The objects cannot be
// unloaded meanwhile: the dynamic linker's lock is held, so `visit` asks for no memory but the
// kernel's, and calls nobody.
//
// A child that was forked while a thread was in such a walk, of whomever, would wait for ever. So
// the callers make sure that the driver works in this process, which it does not in a child of one
// that had called cuInit; or that this is not a child (IsForked(), system.h).
void ForEachCopy(bool (*visit)(const EmbeddedCopy& copy, void* data), void* data);

// This copy.
EmbeddedCopy ThisCopy();

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_SHARE_REGISTRY_H_

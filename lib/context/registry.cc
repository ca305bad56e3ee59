// SPDX-License-Identifier: Apache-2.0

#include "lib/context/registry.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <new>
#include <type_traits>

#include "lib/context/ending.h"

// A test builds copies with another one.
#ifndef CUGUEST_REGISTRY_LAYOUT
#define CUGUEST_REGISTRY_LAYOUT 1
#endif

CUGUEST_BEGIN_NAMESPACE
namespace internal {

static_assert(std::is_standard_layout_v<Registry> && std::is_trivially_destructible_v<Registry>);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              sizeof(std::atomic<std::uint64_t>) == sizeof(std::uint64_t));
static_assert(sizeof(Slot) == 128 + Slot::kStripes * sizeof(Stripe));

// Named without a namespace for the note below, and kept where nothing but the note
// refers to it.
extern "C" {
[[gnu::visibility("hidden"), gnu::used]] Registry cuguest_registry;
}

// An ELF note (System V ABI, "Note Section") of the owner "cuguest", whose type is the
// layout and whose description is the distance from itself to the registry.
#define CUGUEST_STRING(x) #x
#define CUGUEST_VALUE(x) CUGUEST_STRING(x)
asm(".pushsection .note.cuguest, \"a\", %note\n"
    ".balign 4\n"
    ".long 8\n"  // the owner with its terminating zero
    ".long 8\n"  // the description
    ".long " CUGUEST_VALUE(CUGUEST_REGISTRY_LAYOUT) "\n"
    ".asciz \"cuguest\"\n"
    ".quad cuguest_registry - .\n"
    ".popsection\n");

namespace {

constexpr char kOwner[] = "cuguest";

// The note in one of an object's note segments, if it is there.
class NoteReader {
 public:
  NoteReader(const char* begin, size_t size, size_t alignment)
      : next_(begin), end_(begin + size), alignment_(alignment == 8 ? 8 : 4) {}

  bool Find(EmbeddedCopy* copy) {
    ElfW(Nhdr) header;
    while (Remaining() >= sizeof(header)) {
      std::memcpy(&header, next_, sizeof(header));
      const char* owner = next_ + sizeof(header);
      const size_t description = sizeof(header) + RoundUp(header.n_namesz);
      const size_t whole = description + RoundUp(header.n_descsz);
      if (whole > Remaining()) return false;
      if (header.n_namesz == sizeof(kOwner) && std::memcmp(owner, kOwner, sizeof(kOwner)) == 0) {
        Read(header, next_ + description, copy);
        return true;
      }
      next_ += whole;
    }
    return false;
  }

 private:
  size_t Remaining() const { return next_ < end_ ? static_cast<size_t>(end_ - next_) : 0; }
  size_t RoundUp(size_t bytes) const { return (bytes + alignment_ - 1) & ~(alignment_ - 1); }

  static void Read(const ElfW(Nhdr) & header, const char* description, EmbeddedCopy* copy) {
    copy->layout = header.n_type;
    std::int64_t distance = 0;
    if (copy->layout != RegistryLayout() || header.n_descsz != sizeof(distance)) return;
    std::memcpy(&distance, description, sizeof(distance));
    const auto address =
        reinterpret_cast<std::uintptr_t>(description) + static_cast<std::uintptr_t>(distance);
    auto* registry = reinterpret_cast<Registry*>(address);
    if (registry->IsValid()) copy->registry = registry;
  }

  const char* next_;
  const char* end_;
  size_t alignment_;
};

int AddCopy(dl_phdr_info* object, size_t, void* data) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* begin = reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr);
    EmbeddedCopy copy;
    if (!NoteReader(begin, segment.p_memsz, segment.p_align).Find(&copy)) continue;
    if (object->dlpi_name != nullptr) copy.path = object->dlpi_name;
    static_cast<std::vector<EmbeddedCopy>*>(data)->push_back(copy);
    break;
  }
  return 0;
}

// The first copy with our layout: our own, at the latest.
EmbeddedCopy FindHome() {
  for (const EmbeddedCopy& copy : FindCopies()) {
    if (copy.registry != nullptr) return copy;
  }
  return {{}, RegistryLayout(), &cuguest_registry};
}

// Keeps the object that embeds `copy` from being unloaded. The main program never is.
bool Pin(const EmbeddedCopy& copy) {
  if (copy.path.empty()) return true;
  void* handle = dlopen(copy.path.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  if (handle == nullptr) return false;
  dlclose(handle);  // it stays all the same
  return true;
}

// Pinning cannot be done while the list is walked, so the home may go away in between:
// it is the home if it still is after it was pinned.
Registry& FindAndPinHome() {
  constexpr int kAttempts = 16;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const EmbeddedCopy home = FindHome();
    if (home.registry == &cuguest_registry) break;
    if (Pin(home) && FindHome().registry == home.registry) return *home.registry;
  }
  return cuguest_registry;
}

std::atomic<Registry*> g_home{nullptr};

class Lock {
 public:
  explicit Lock(pthread_mutex_t* mutex) : mutex_(mutex) { pthread_mutex_lock(mutex_); }
  ~Lock() { pthread_mutex_unlock(mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  pthread_mutex_t* mutex_;
};

// The stripe of the calling thread: threads are given them in turn.
int ThisThreadsStripe() {
  static std::atomic<unsigned> next{0};
  thread_local const unsigned mine = next.fetch_add(1, std::memory_order_relaxed);
  return static_cast<int>(mine % Slot::kStripes);
}

// The slot is closed: nobody else writes it.
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

// See Note [Stripes of a slot].
void Gather(Slot* slot) {
  slot->root.fetch_add(Slot::kBias, std::memory_order_acq_rel);
  std::uint64_t sum = 0;
  for (Stripe& stripe : slot->stripes) {
    sum += stripe.word.exchange(0, std::memory_order_acq_rel) - Stripe::kOpen;
  }
  slot->root.fetch_add(sum - Slot::kBias - Slot::kStriped, std::memory_order_acq_rel);
}

CUresult End(const Slot& slot) {
  if (slot.GetEnding() == Ending::kReleasePrimary) {
    return ReleasePrimary(static_cast<CUdevice>(slot.device.load(std::memory_order_relaxed)));
  }
  const auto handle = static_cast<std::uintptr_t>(slot.context.load(std::memory_order_relaxed));
  return DestroyLife(reinterpret_cast<CUcontext>(handle), slot.id.load(std::memory_order_relaxed));
}

// Adds `change` to the count in `word`, unless it is not open.
bool CountIfOpen(std::atomic<std::uint64_t>* word, std::uint64_t open, std::uint64_t change) {
  std::uint64_t now = word->load(std::memory_order_relaxed);
  while ((now & open) != 0) {
    if (word->compare_exchange_weak(now, now + change, std::memory_order_acq_rel)) return true;
  }
  return false;
}

// Takes the calling thread's unit off the root; true for the last one.
bool TakeOffRoot(Slot* slot) {
  std::uint64_t now = slot->root.load(std::memory_order_acquire);
  while ((now & Slot::kStriped) != 0) {
    if ((now & Slot::kCount) == 1) {
      Gather(slot);
      break;
    }
    if (slot->root.compare_exchange_weak(now, now - 1, std::memory_order_acq_rel)) return false;
  }
  return slot->root.fetch_sub(1, std::memory_order_acq_rel) == (Slot::kOpen | 1);
}

CUresult LeaveRoot(Slot* slot) {
  if (!TakeOffRoot(slot) || slot->GetEnding() == Ending::kNothing) return CUDA_SUCCESS;
  std::uint64_t nobody = Slot::kOpen;
  // Lost to somebody who joined, and is the last one out in his turn.
  if (!slot->root.compare_exchange_strong(nobody, 0)) return CUDA_SUCCESS;
  const CUresult code = End(*slot);
  slot->context.store(0, std::memory_order_release);
  return code;
}

// Counts one up, on this thread's stripe if that is open. False if the slot is not.
bool CountUp(Slot* slot, Unit* unit) {
  *unit = {slot, ThisThreadsStripe()};
  if (CountIfOpen(&slot->stripes[unit->stripe].word, Stripe::kOpen, 1)) return true;
  unit->stripe = Unit::kRoot;
  return CountIfOpen(&slot->root, Slot::kOpen, 1);
}

// A unit of `slot`, if it is (still) an open slot for `context`.
bool TryJoin(Slot* slot, const ContextRef& context, Unit* unit) {
  if (!slot->Is(context) || !CountUp(slot, unit)) return false;
  if (slot->Is(context)) return true;
  static_cast<void>(Registry::Leave(*unit));
  return false;
}

}  // namespace

std::uint32_t RegistryLayout() noexcept { return CUGUEST_REGISTRY_LAYOUT; }

std::vector<EmbeddedCopy> FindCopies() {
  std::vector<EmbeddedCopy> copies;
  dl_iterate_phdr(&AddCopy, &copies);
  return copies;
}

Registry& Registry::OfProcess() noexcept {
  Registry* home = g_home.load(std::memory_order_acquire);
  if (home != nullptr) return *home;
  // Two threads may do this at once; the first answer is the one that stays.
  Registry* found = &FindAndPinHome();
  return g_home.compare_exchange_strong(home, found) ? *found : *home;
}

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

Unit Registry::Join(const ContextRef& context) noexcept {
  Unit unit;
  return Find([&](Slot* slot) { return TryJoin(slot, context, &unit); }) != nullptr ? unit : Unit{};
}

Registry::Outcome Registry::JoinOrOpen(const ContextRef& context, Ending ending, CUdevice device,
                                       Unit* unit) noexcept {
  const Lock lock(&opening_);
  *unit = Join(context);
  if (unit->slot != nullptr) return Outcome::kJoined;
  const Slot* closing = Find([&](Slot* slot) {
    return slot->Is(context) && !slot->IsOpen() && slot->GetEnding() == Ending::kDestroy;
  });
  if (closing != nullptr) return Outcome::kClosing;
  *unit = {FindUnused(), Unit::kRoot};
  if (unit->slot == nullptr) return Outcome::kNoMemory;
  Open(unit->slot, context, ending, device);
  return Outcome::kOpened;
}

// A closed one: free, or closed now because nobody has a unit of it any more and nothing
// has to be ended; or a new one. Call under the mutex.
Slot* Registry::FindUnused() noexcept {
  Slot* unused = Find([](Slot* slot) { return slot->context.load() == 0; });
  if (unused != nullptr) return unused;
  unused = Find([](Slot* slot) {
    std::uint64_t idle = Slot::kOpen;
    return slot->GetEnding() == Ending::kNothing && slot->root.compare_exchange_strong(idle, 0);
  });
  if (unused != nullptr) return unused;
  auto* chunk = new (std::nothrow) Chunk;
  if (chunk == nullptr) return nullptr;
  Chunk* last = &first_;
  while (last->next.load() != nullptr) last = last->next.load();
  last->next.store(chunk, std::memory_order_release);
  return &chunk->slots[0];
}

Unit Registry::Copy(Slot* slot) noexcept {
  Unit unit;
  static_cast<void>(CountUp(slot, &unit));  // it is open: the caller has a unit
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
  std::uint64_t sum = slot.root.load(std::memory_order_relaxed) & (Slot::kBias - 1);
  for (const Stripe& stripe : slot.stripes) {
    const std::uint64_t word = stripe.word.load(std::memory_order_relaxed);
    if ((word & Stripe::kOpen) != 0) sum += word - Stripe::kOpen;
  }
  return sum;
}

bool Registry::Knows(CUcontext handle) noexcept {
  const auto wanted = reinterpret_cast<std::uintptr_t>(handle);
  return Find([=](Slot* slot) { return slot->context.load() == wanted; }) != nullptr;
}

}  // namespace internal
CUGUEST_END_NAMESPACE

// SPDX-License-Identifier: Apache-2.0
//
// Which registry is the process's: see Note [One registry per process].

#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "lib/context/registry.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// See Note [The layout is an ABI].
static_assert(std::is_standard_layout_v<Registry> && std::is_trivially_destructible_v<Registry>);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              sizeof(std::atomic<std::uint64_t>) == sizeof(std::uint64_t));
static_assert(offsetof(Slot, root) == 0 && offsetof(Slot, context) == 64 &&
              offsetof(Slot, id) == 72 && offsetof(Slot, ending) == 80 &&
              offsetof(Slot, device) == 88 && offsetof(Slot, stripes) == 128);
static_assert(Slot::kStripes == 16 && sizeof(Stripe) == 64 && sizeof(Slot) == 128 + 16 * 64);
static_assert(Chunk::kSlots == 16 && offsetof(Chunk, slots) == 0 &&
              offsetof(Chunk, next) == 16 * sizeof(Slot));
// Magic, size, mutex and numbers are the first line, the chunk is the rest: copies of layout 2 want
// exactly this size.
static_assert(2 * sizeof(std::uint32_t) + sizeof(SharedMutex) + sizeof(LayoutNumbers) <= 64 &&
              sizeof(Registry) == 64 + sizeof(Chunk) && sizeof(Chunk) == 16 * sizeof(Slot) + 64);
static_assert(sizeof(LayoutNumbers) == 8 && alignof(SharedMutex) == 8);

// Named without a namespace for the note below, and kept where nothing but the note
// refers to it.
extern "C" {
[[gnu::visibility("hidden"), gnu::used]] Registry cuguest_registry;
}

// An ELF note (System V ABI, "Note Section") of the owner "cuguest", whose type is the
// minimal reader and whose description is the distance from itself to the registry.
#define CUGUEST_STRING(x) #x
#define CUGUEST_VALUE(x) CUGUEST_STRING(x)
asm(".pushsection .note.cuguest, \"a\", %note\n"
    ".balign 4\n"
    ".long 8\n"  // the owner with its terminating zero
    ".long 8\n"  // the description
    ".long " CUGUEST_VALUE(CUGUEST_REGISTRY_MINIMAL_READER) "\n"
    ".asciz \"cuguest\"\n"
    ".quad cuguest_registry - .\n"
    ".popsection\n");

namespace {

constexpr char kOwner[] = "cuguest";
constexpr std::uint32_t kFirstLayout = 2;  // its copies leave the numbers 0

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
    copy->minimal_reader = header.n_type;
    std::int64_t distance = 0;
    if (header.n_type < kFirstLayout || header.n_descsz < sizeof(distance)) return;
    std::memcpy(&distance, description, sizeof(distance));
    const auto address =
        reinterpret_cast<std::uintptr_t>(description) + static_cast<std::uintptr_t>(distance);
    auto* registry = reinterpret_cast<Registry*>(address);
    if (!registry->IsValid()) return;
    copy->registry = registry;
    copy->numbers = registry->numbers();
    if (copy->numbers.layout == 0) copy->numbers = {kFirstLayout, kFirstLayout};
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

// Our own, if there is no other.
EmbeddedCopy FindHome() {
  const std::vector<EmbeddedCopy> copies = FindCopies();
  const EmbeddedCopy* home = FindHomeOf(ThisCopy(), copies);
  return home != nullptr ? *home : ThisCopy();
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

}  // namespace

std::vector<EmbeddedCopy> FindCopies() {
  std::vector<EmbeddedCopy> copies;
  dl_iterate_phdr(&AddCopy, &copies);
  return copies;
}

const EmbeddedCopy* FindHomeOf(const EmbeddedCopy& copy, const std::vector<EmbeddedCopy>& copies) {
  for (const EmbeddedCopy& other : copies) {
    if (copy.Understands(other)) return &other;
  }
  return nullptr;
}

EmbeddedCopy ThisCopy() {
  return {{}, CUGUEST_REGISTRY_MINIMAL_READER, kLayoutOfThisCopy, &cuguest_registry};
}

Registry& Registry::OfProcess() noexcept {
  Registry* home = g_home.load(std::memory_order_acquire);
  if (home != nullptr) return *home;
  // Two threads may do this at once; the first answer is the one that stays.
  Registry* found = &FindAndPinHome();
  return g_home.compare_exchange_strong(home, found) ? *found : *home;
}

}  // namespace internal
CUGUEST_END_NAMESPACE

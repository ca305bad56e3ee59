// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which registry is the process's: see Note [One registry per process].

#include "lib/share/registry.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <type_traits>

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// See Note [The layout is an ABI].
static_assert(std::is_standard_layout_v<Registry> && std::is_trivially_destructible_v<Registry>);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              sizeof(std::atomic<std::uint64_t>) == sizeof(std::uint64_t));
static_assert(offsetof(Slot, root) == 0 && offsetof(Slot, context) == 64 &&
              offsetof(Slot, id) == 72 && offsetof(Slot, ending) == 80 &&
              offsetof(Slot, device) == 88 && offsetof(Slot, is_retired) == 96 &&
              offsetof(Slot, stripes) == 128);
static_assert(Slot::kStripes == 16 && sizeof(Stripe) == 64 && sizeof(Slot) == 128 + 16 * 64);
static_assert(Chunk::kSlots == 16 && offsetof(Chunk, slots) == 0 &&
              offsetof(Chunk, next) == 16 * sizeof(Slot));
static_assert(Places::kPlaces == 8 && sizeof(Places) == 64);
// Magic, size, mutex and numbers are the first line, then come the chunk and 64 lines of places.
static_assert(2 * sizeof(std::uint32_t) + sizeof(SharedMutex) + sizeof(LayoutNumbers) <= 64 &&
              sizeof(Registry) == 64 + sizeof(Chunk) + 64 * sizeof(Places) &&
              sizeof(Chunk) == 16 * sizeof(Slot) + 64);
static_assert(sizeof(LayoutNumbers) == 8 && alignof(SharedMutex) == 8);

// Named without a namespace for the note below, and kept where nothing but the note
// refers to it.
#if defined(CUGUEST_NAMESPACE_SUFFIX)
#define cuguest_registry CUGUEST_INTERNAL_EXPAND_SUFFIX(cuguest_registry, CUGUEST_NAMESPACE_SUFFIX)
#endif
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
    ".quad " CUGUEST_VALUE(cuguest_registry) " - .\n"
    ".popsection\n");

namespace {

constexpr char kOwner[] = "cuguest";
constexpr std::uint32_t kFirstLayout = 2;  // with this note, this magic, and this place of the size

// What the note and the registry that it leads to tell of their copy.
EmbeddedCopy ReadNote(std::uint32_t minimal_reader, std::string_view description) {
  EmbeddedCopy copy;
  copy.minimal_reader = minimal_reader;
  std::int64_t distance = 0;
  if (minimal_reader < kFirstLayout || description.size() < sizeof(distance)) return copy;
  std::memcpy(&distance, description.data(), sizeof(distance));
  const auto address =
      reinterpret_cast<std::uintptr_t>(description.data()) + static_cast<std::uintptr_t>(distance);
  auto* const registry = reinterpret_cast<Registry*>(address);
  if (!registry->IsValid()) return copy;
  copy.registry = registry;
  copy.numbers = registry->numbers();
  return copy;
}

// The copy whose note is in one of an object's note segments. False if it is not there.
bool FindCopyIn(std::string_view notes, size_t alignment, EmbeddedCopy* copy) {
  const size_t unit = alignment == 8 ? 8 : 4;
  const auto round_up = [=](size_t bytes) { return (bytes + unit - 1) & ~(unit - 1); };
  ElfW(Nhdr) header;
  while (notes.size() >= sizeof(header)) {
    std::memcpy(&header, notes.data(), sizeof(header));
    const size_t description = sizeof(header) + round_up(header.n_namesz);
    const size_t whole = description + round_up(header.n_descsz);
    if (whole > notes.size()) break;
    const char* const owner = notes.data() + sizeof(header);
    if (header.n_namesz == sizeof(kOwner) &&  // with its terminating zero
        std::memcmp(owner, kOwner, sizeof(kOwner)) == 0) {
      *copy = ReadNote(header.n_type, {notes.data() + description, header.n_descsz});
      return true;
    }
    notes.remove_prefix(whole);
  }
  return false;
}

struct Visit {
  bool (*visit)(const EmbeddedCopy& copy, void* data);
  void* data;
};

int VisitCopyIn(dl_phdr_info* object, size_t, void* data) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* begin = reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr);
    EmbeddedCopy copy;
    if (!FindCopyIn({begin, segment.p_memsz}, segment.p_align, &copy)) continue;
    if (object->dlpi_name != nullptr) copy.path = object->dlpi_name;
    const auto* const visit = static_cast<const Visit*>(data);
    return visit->visit(copy, visit->data) ? 1 : 0;
  }
  return 0;
}

struct Home {
  Registry* registry = &cuguest_registry;  // our own, if there is no other
  char path[PATH_MAX] = "";                // of the object that embeds it
};

Home FindHome() {
  Home home;
  const auto take_first = [](const EmbeddedCopy& copy, void* data) {
    if (!ThisCopy().Understands(copy)) return false;
    auto* const found = static_cast<Home*>(data);
    found->registry = copy.registry;
    std::snprintf(found->path, sizeof(found->path), "%s", copy.path);
    return true;
  };
  ForEachCopy(take_first, &home);
  return home;
}

// Keeps the object that embeds the registry from being unloaded. The main program never is.
bool Pin(const Home& home) {
  if (home.path[0] == '\0') return true;
  void* handle = dlopen(home.path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  if (handle == nullptr) return false;
  dlclose(handle);  // it stays all the same
  return true;
}

// Pinning cannot be done while the list is walked, so the home may go away in between:
// it is the home if it still is after it was pinned.
Registry& FindAndPinHome() {
  constexpr int kAttempts = 16;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const Home home = FindHome();
    if (home.registry == &cuguest_registry) break;
    if (Pin(home) && FindHome().registry == home.registry) return *home.registry;
  }
  return cuguest_registry;
}

std::atomic<Registry*> g_home{nullptr};

// Who walks the loaded objects has the dynamic linker's lock, which a child that is forked then
// keeps for ever (glibc 2.36). There this copy walks no more, and knows itself alone: what it could
// count with others is the parent's.
std::atomic<int> g_walks{0};
std::atomic<bool> g_linker_is_held{false};
void LookForWalks() {
  if (g_walks.load() != 0) g_linker_is_held.store(true);
}

}  // namespace

void ForEachCopy(bool (*visit)(const EmbeddedCopy& copy, void* data), void* data) {
  WatchForks<&LookForWalks>();
  if (g_linker_is_held.load()) {
    static_cast<void>(visit(ThisCopy(), data));
    return;
  }
  Visit visiting{visit, data};
  g_walks.fetch_add(1);
  dl_iterate_phdr(&VisitCopyIn, &visiting);
  g_walks.fetch_sub(1);
}

EmbeddedCopy ThisCopy() {
  return {"", CUGUEST_REGISTRY_MINIMAL_READER, kLayoutOfThisCopy, &cuguest_registry};
}

bool Registry::IsMadeInProcess(const ContextRef& context) noexcept {
  Registry* const home = g_home.load(std::memory_order_acquire);
  if (home != nullptr) return home->IsMade(context);
  struct Question {
    const ContextRef& context;
    bool is_made;
  } question{context, false};
  const auto ask_first = [](const EmbeddedCopy& copy, void* data) {
    if (!ThisCopy().Understands(copy)) return false;
    auto* const asked = static_cast<Question*>(data);
    asked->is_made = copy.registry->IsMade(asked->context);
    return true;
  };
  ForEachCopy(ask_first, &question);
  return question.is_made;
}

Registry& Registry::OfProcess() noexcept {
  Registry* home = g_home.load(std::memory_order_acquire);
  if (home != nullptr) return *home;
  // Two threads may do this at once; the first answer is the one that stays.
  Registry* found = &FindAndPinHome();
  return g_home.compare_exchange_strong(home, found) ? *found : *home;
}

CUGUEST_END_INTERNAL_NAMESPACE

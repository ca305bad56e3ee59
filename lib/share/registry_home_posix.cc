// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which registry is the process's: see Note [One registry per process].

#include "lib/share/registry.h"

#include <link.h>

#include <cstddef>
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
// The header is the first line, then come the chunk and 64 lines of places.
static_assert(sizeof(RegistryHeader) <= 64 && offsetof(RegistryHeader, size) == 4 &&
              offsetof(RegistryHeader, opening) == 8 &&
              offsetof(RegistryHeader, numbers) == 8 + sizeof(SharedMutex) &&
              sizeof(Registry) == 64 + sizeof(Chunk) + 64 * sizeof(Places) &&
              sizeof(Chunk) == 16 * sizeof(Slot) + 64);
static_assert(sizeof(LayoutNumbers) == 8 && alignof(SharedMutex) == 8);
static_assert(offsetof(Door, registry) == sizeof(RegistryHeader) &&
              std::is_trivially_destructible_v<Door>);

// Named without a namespace for the note below, and kept where nothing but the note
// refers to it.
#if defined(CUGUEST_NAMESPACE_SUFFIX)
#define cuguest_door CUGUEST_INTERNAL_EXPAND_SUFFIX(cuguest_door, CUGUEST_NAMESPACE_SUFFIX)
#endif
extern "C" {
[[gnu::visibility("hidden"), gnu::used]] Door cuguest_door = {
    {RegistryHeader::kMagic, sizeof(Registry), {}, kLayoutOfThisCopy}, {}};
}

// An ELF note (System V ABI, "Note Section") of the owner "cuguest", whose type is the
// minimal reader and whose description is the distance from itself to the door.
#define CUGUEST_STRING(x) #x
#define CUGUEST_VALUE(x) CUGUEST_STRING(x)
asm(".pushsection .note.cuguest, \"a\", %note\n"
    ".balign 4\n"
    ".long 8\n"  // the owner with its terminating zero
    ".long 8\n"  // the description
    ".long " CUGUEST_VALUE(CUGUEST_REGISTRY_MINIMAL_READER) "\n"
    ".asciz \"cuguest\"\n"
    ".quad " CUGUEST_VALUE(cuguest_door) " - .\n"
    ".popsection\n");

namespace {

constexpr char kOwner[] = "cuguest";
constexpr std::uint32_t kFirstLayout = 2;  // with this note, this magic, and this place of the size

// What the note and the door that it leads to tell of their copy.
EmbeddedCopy ReadNote(std::uint32_t minimal_reader, std::string_view description) {
  EmbeddedCopy copy;
  copy.minimal_reader = minimal_reader;
  std::int64_t distance = 0;
  if (minimal_reader < kFirstLayout || description.size() < sizeof(distance)) return copy;
  std::memcpy(&distance, description.data(), sizeof(distance));
  const auto address =
      reinterpret_cast<std::uintptr_t>(description.data()) + static_cast<std::uintptr_t>(distance);
  auto* const door = reinterpret_cast<Door*>(address);
  if (door->header.magic != RegistryHeader::kMagic || door->header.size < sizeof(Registry)) {
    return copy;
  }
  copy.door = door;
  copy.numbers = door->header.numbers;
  return copy;
}

struct Visit {
  bool (*visit)(const EmbeddedCopy& copy, void* data);
  void* data;
  const char* path;
};

// The copies whose notes are in one of an object's note segments: two releases may be linked into
// one library. True where `visit` has returned true.
bool VisitNotes(std::string_view notes, size_t alignment, const Visit& visit) {
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
      EmbeddedCopy copy = ReadNote(header.n_type, {notes.data() + description, header.n_descsz});
      copy.path = visit.path;
      if (visit.visit(copy, visit.data)) return true;
    }
    notes.remove_prefix(whole);
  }
  return false;
}

int VisitObject(dl_phdr_info* object, size_t, void* data) {
  Visit visit = *static_cast<const Visit*>(data);
  if (object->dlpi_name != nullptr) visit.path = object->dlpi_name;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* begin = reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr);
    if (VisitNotes({begin, segment.p_memsz}, segment.p_align, visit)) return 1;
  }
  return 0;
}

}  // namespace

void ForEachCopy(bool (*visit)(const EmbeddedCopy& copy, void* data), void* data) {
  Visit visiting{visit, data, ""};
  dl_iterate_phdr(&VisitObject, &visiting);
}

EmbeddedCopy ThisCopy() {
  return {"", CUGUEST_REGISTRY_MINIMAL_READER, kLayoutOfThisCopy, &cuguest_door};
}

Registry* Registry::IfFound() noexcept {
  return cuguest_door.registry.load(std::memory_order_acquire);
}

// Two threads may do this at once, and come to the same.
Registry* Registry::OfProcess() noexcept {
  Registry* found = IfFound();
  if (found != nullptr) return found;
  struct Search {
    bool is_over;
    Registry* found;
  } search{false, nullptr};
  const auto open_first = [](const EmbeddedCopy& copy, void* data) {
    if (!ThisCopy().Understands(copy)) return false;
    *static_cast<Search*>(data) = {true, copy.door->Open()};
    return true;
  };
  ForEachCopy(open_first, &search);
  // This copy's own note is missing where a tool has taken it out of its object.
  Registry* const led_to = search.is_over ? search.found : cuguest_door.Open();
  if (led_to == nullptr) return nullptr;
  cuguest_door.registry.compare_exchange_strong(found, led_to, std::memory_order_acq_rel);
  return IfFound();
}

bool Registry::IsMadeInProcess(const ContextRef& context) noexcept {
  Registry* registry = IfFound();
  const auto look_behind_first = [](const EmbeddedCopy& copy, void* data) {
    if (!ThisCopy().Understands(copy)) return false;
    *static_cast<Registry**>(data) = copy.door->registry.load(std::memory_order_acquire);
    return true;
  };
  if (registry == nullptr) ForEachCopy(look_behind_first, &registry);
  return registry != nullptr && registry->IsMade(context);
}

CUGUEST_END_INTERNAL_NAMESPACE

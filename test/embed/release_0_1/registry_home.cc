// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code of 0.1.0's lib/context/registry_home.cc.

#include <dlfcn.h>
#include <link.h>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "test/embed/release_0_1/registry.h"

#define CUGUEST_REGISTRY_LAYOUT 2

CUGUEST_BEGIN_NAMESPACE
namespace internal {
static_assert(std::is_standard_layout_v<Registry> && std::is_trivially_destructible_v<Registry>);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              sizeof(std::atomic<std::uint64_t>) == sizeof(std::uint64_t));
static_assert(offsetof(Slot, root) == 0 && offsetof(Slot, context) == 64 &&
              offsetof(Slot, id) == 72 && offsetof(Slot, ending) == 80 &&
              offsetof(Slot, device) == 88 && offsetof(Slot, stripes) == 128);
static_assert(Slot::kStripes == 16 && sizeof(Stripe) == 64 && sizeof(Slot) == 128 + 16 * 64);
static_assert(Chunk::kSlots == 16 && offsetof(Chunk, slots) == 0 &&
              offsetof(Chunk, next) == 16 * sizeof(Slot));
extern "C" {
[[gnu::visibility("hidden"), gnu::used]] Registry cuguest_registry;
}
#define CUGUEST_STRING(x) #x
#define CUGUEST_VALUE(x) CUGUEST_STRING(x)
asm(".pushsection .note.cuguest, \"a\", %note\n"
    ".balign 4\n"
    ".long 8\n"
    ".long 8\n"
    ".long " CUGUEST_VALUE(CUGUEST_REGISTRY_LAYOUT) "\n"
    ".asciz \"cuguest\"\n"
    ".quad cuguest_registry - .\n"
    ".popsection\n");
namespace {
constexpr char kOwner[] = "cuguest";
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
EmbeddedCopy FindHome() {
  for (const EmbeddedCopy& copy : FindCopies()) {
    if (copy.registry != nullptr) return copy;
  }
  return {{}, RegistryLayout(), &cuguest_registry};
}
bool Pin(const EmbeddedCopy& copy) {
  if (copy.path.empty()) return true;
  void* handle = dlopen(copy.path.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  if (handle == nullptr) return false;
  dlclose(handle);
  return true;
}
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
std::uint32_t RegistryLayout() noexcept { return CUGUEST_REGISTRY_LAYOUT; }
std::vector<EmbeddedCopy> FindCopies() {
  std::vector<EmbeddedCopy> copies;
  dl_iterate_phdr(&AddCopy, &copies);
  return copies;
}
Registry& Registry::OfProcess() noexcept {
  Registry* home = g_home.load(std::memory_order_acquire);
  if (home != nullptr) return *home;
  Registry* found = &FindAndPinHome();
  return g_home.compare_exchange_strong(home, found) ? *found : *home;
}
}  // namespace internal
CUGUEST_END_NAMESPACE

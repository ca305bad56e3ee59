// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which registry is the process's, on Windows: as Note [One registry per process], with a named
// section of memory in the place of the doors. The copy that needs a registry first makes it and
// writes into the section where it is. One that does not understand what is there has its own.
//
// Note [A section has any author]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A process of the same session, which may have fewer privileges, can make the section first: the
// name is known. It may reserve its memory only, and write any address into it. So an address is
// followed to memory that this process has mapped in one piece, as FindOrMake() does, and nowhere
// else.

#include <windows.h>

#include <cstdio>

#include "lib/share/registry.h"
#include "lib/share/system.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// See Note [The layout is an ABI]: what follows the first line is where it is everywhere.
static_assert(sizeof(Slot) == 128 + 16 * 64 && sizeof(Chunk) == 16 * sizeof(Slot) + 64 &&
              sizeof(Registry) == 64 + sizeof(Chunk) + 64 * sizeof(Places));

namespace {

struct Shared {
  std::uint64_t minimal_reader;
  Registry registry;

  bool IsUnderstood() const noexcept {
    return minimal_reader >= kLayoutOfThisCopy.oldest && minimal_reader <= kLayoutOfThisCopy.layout;
  }
};

// See Note [A section has any author].
bool IsMapped(const Shared* there) noexcept {
  MEMORY_BASIC_INFORMATION about = {};
  return VirtualQuery(there, &about, sizeof(about)) != 0 && about.AllocationBase == there &&
         about.State == MEM_COMMIT && about.Type == MEM_PRIVATE &&
         about.Protect == PAGE_READWRITE && about.RegionSize >= sizeof(Shared);
}

using Section = std::atomic<Shared*>;  // null at first, and written once
static_assert(Section::is_always_lock_free && sizeof(Section) == sizeof(void*));

// The section, which lasts as long as the process; nullptr where there is none to be had. Each call
// maps it again.
Section* MapSection() {
  char name[64];
  std::snprintf(name, sizeof(name), "Local\\cuguest_registry_%lu", GetCurrentProcessId());
  HANDLE const file =
      CreateFileMappingA(INVALID_HANDLE_VALUE, nullptr, PAGE_READWRITE, 0, sizeof(Section), name);
  if (file == nullptr) return nullptr;
  void* const view = MapViewOfFile(file, FILE_MAP_ALL_ACCESS, 0, 0, sizeof(Section));
  const bool is_there = MayHaveMemoryAt(reinterpret_cast<std::uintptr_t>(view));
  return is_there ? static_cast<Section*>(view) : nullptr;
}

std::atomic<Section*> g_section{nullptr};

Section* SectionOfProcess() {
  Section* section = g_section.load(std::memory_order_acquire);
  if (section != nullptr) return section;
  Section* const mapped = MapSection();
  return g_section.compare_exchange_strong(section, mapped) ? mapped : section;
}

// What it leads to and this copy understands, or nullptr.
Shared* InSection() {
  Section* const section = SectionOfProcess();
  Shared* const there = section != nullptr ? section->load(std::memory_order_acquire) : nullptr;
  return there != nullptr && IsMapped(there) && there->IsUnderstood() ? there : nullptr;
}

// What this copy counts in; nullptr without memory.
Shared* FindOrMake() {
  if (Shared* const there = InSection()) return there;
  void* const place = MapZeros(sizeof(Shared));
  if (place == nullptr) return nullptr;
  auto* const made = static_cast<Shared*>(place);
  made->minimal_reader = CUGUEST_REGISTRY_MINIMAL_READER;
  Registry::InZeros(&made->registry,
                    {RegistryHeader::kMagic, sizeof(Registry), {}, kLayoutOfThisCopy});
  Section* const section = SectionOfProcess();
  Shared* none = nullptr;
  if (section == nullptr || section->compare_exchange_strong(none, made)) return made;
  Shared* const first = InSection();  // another copy's, meanwhile
  if (first == nullptr) return made;
  Unmap(place, sizeof(Shared));
  return first;
}

std::atomic<Registry*> g_home{nullptr};

}  // namespace

Registry* Registry::IfFound() noexcept { return g_home.load(std::memory_order_acquire); }

Registry* Registry::OfProcess() noexcept {
  Registry* home = IfFound();
  if (home != nullptr) return home;
  Shared* const shared = FindOrMake();
  if (shared == nullptr) return nullptr;
  Registry* const found = &shared->registry;
  return g_home.compare_exchange_strong(home, found) ? found : home;
}

bool Registry::IsMadeInProcess(const ContextRef& context) noexcept {
  Registry* registry = IfFound();
  Shared* const shared = registry == nullptr ? InSection() : nullptr;
  if (shared != nullptr) registry = &shared->registry;
  return registry != nullptr && registry->IsMade(context);
}

CUGUEST_END_INTERNAL_NAMESPACE

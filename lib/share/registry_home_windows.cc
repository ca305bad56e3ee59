// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which registry is the process's, on Windows: as Note [One registry per process], with a named
// section of memory in the place of the ELF notes. The copy that needs a registry first writes into
// it where its own is, and pins the module that embeds it. One that does not understand what is
// there keeps to its own.

#include <cstdio>

#include "lib/share/registry.h"
#include "lib/share/system.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// See Note [The layout is an ABI]: what follows the first line is where it is everywhere.
static_assert(sizeof(Slot) == 128 + 16 * 64 && sizeof(Chunk) == 16 * sizeof(Slot) + 64 &&
              sizeof(Registry) == 64 + sizeof(Chunk) + 64 * sizeof(Places));

namespace {

Registry g_registry;

// Of the copy that was first.
struct Note {
  std::uint64_t minimal_reader;
  Registry* registry;
};
const Note g_note = {CUGUEST_REGISTRY_MINIMAL_READER, &g_registry};

using Section = std::atomic<const Note*>;  // null at first, and written once
static_assert(Section::is_always_lock_free && sizeof(Section) == sizeof(void*));

// The section, which lasts as long as the process; nullptr where there is none to be had. Each call
// maps it again.
Section* MapSection() {
  char name[64];
  std::snprintf(name, sizeof(name), "Local\\cuguest_registry_%lu", GetCurrentProcessId());
  HANDLE const file =
      CreateFileMappingA(INVALID_HANDLE_VALUE, nullptr, PAGE_READWRITE, 0, sizeof(Section), name);
  if (file == nullptr) return nullptr;
  return static_cast<Section*>(MapViewOfFile(file, FILE_MAP_ALL_ACCESS, 0, 0, sizeof(Section)));
}

std::atomic<Section*> g_section{nullptr};

Section* SectionOfProcess() {
  Section* section = g_section.load(std::memory_order_acquire);
  if (section != nullptr) return section;
  Section* const mapped = MapSection();
  return g_section.compare_exchange_strong(section, mapped) ? mapped : section;
}

// The copy whose note is in the section; without a registry if there is none.
EmbeddedCopy FirstCopy() {
  EmbeddedCopy copy;
  const Section* const section = SectionOfProcess();
  const Note* const note = section != nullptr ? section->load(std::memory_order_acquire) : nullptr;
  if (note == nullptr || !note->registry->IsValid()) return copy;
  copy.minimal_reader = static_cast<std::uint32_t>(note->minimal_reader);
  copy.numbers = note->registry->numbers();
  copy.registry = note->registry;
  return copy;
}

bool PinThisModule() {
  HMODULE module = nullptr;
  return GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
                            reinterpret_cast<const char*>(&g_registry), &module) != 0;
}

Registry& FindHome() {
  Section* const section = SectionOfProcess();
  const Note* nobody = nullptr;
  if (section != nullptr && section->load(std::memory_order_acquire) == nullptr &&
      PinThisModule()) {
    section->compare_exchange_strong(nobody, &g_note);
  }
  const EmbeddedCopy first = FirstCopy();
  return ThisCopy().Understands(first) ? *first.registry : g_registry;
}

std::atomic<Registry*> g_home{nullptr};

}  // namespace

void ForEachCopy(bool (*visit)(const EmbeddedCopy& copy, void* data), void* data) {
  const EmbeddedCopy first = FirstCopy();
  if (first.registry != nullptr) visit(first, data);
}

EmbeddedCopy ThisCopy() {
  return {"", CUGUEST_REGISTRY_MINIMAL_READER, kLayoutOfThisCopy, &g_registry};
}

bool Registry::IsMadeInProcess(const ContextRef& context) noexcept {
  Registry* home = g_home.load(std::memory_order_acquire);
  const EmbeddedCopy first = home == nullptr ? FirstCopy() : EmbeddedCopy();
  if (home == nullptr && ThisCopy().Understands(first)) home = first.registry;
  return home != nullptr && home->IsMade(context);
}

Registry& Registry::OfProcess() noexcept {
  Registry* home = g_home.load(std::memory_order_acquire);
  if (home != nullptr) return *home;
  Registry* const found = &FindHome();
  return g_home.compare_exchange_strong(home, found) ? *found : *home;
}

CUGUEST_END_INTERNAL_NAMESPACE

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/faults/host_memory.h"

#include <execinfo.h>
#include <link.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

thread_local bool t_counts = false;
thread_local size_t t_failing = 0;
thread_local size_t t_seen = 0;

// Where the libraries of the simulation are.
struct Range {
  std::uintptr_t begin;
  std::uintptr_t end;
};
constexpr size_t kMostRanges = 64;
thread_local Range t_simulation[kMostRanges] = {};
thread_local size_t t_ranges = 0;

int AddRanges(dl_phdr_info* library, size_t /*size*/, void* /*data*/) {
  if (std::strstr(library->dlpi_name, "cudasim/sim/") == nullptr) return 0;
  for (int i = 0; i < library->dlpi_phnum && t_ranges < kMostRanges; ++i) {
    const ElfW(Phdr)& segment = library->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    const std::uintptr_t begin = library->dlpi_addr + segment.p_vaddr;
    t_simulation[t_ranges++] = {begin, begin + segment.p_memsz};
  }
  return 0;
}

bool IsForSimulation() {
  void* frames[32];
  const int count = backtrace(frames, 32);
  for (int i = 0; i < count; ++i) {
    const auto frame = reinterpret_cast<std::uintptr_t>(frames[i]);
    for (size_t k = 0; k < t_ranges; ++k) {
      if (t_simulation[k].begin <= frame && frame < t_simulation[k].end) return true;
    }
  }
  return false;
}

void* Allocate(size_t size, size_t alignment) noexcept {
  if (t_counts) {
    t_counts = false;  // backtrace() may allocate
    const bool fails = !IsForSimulation() && ++t_seen == t_failing;
    t_counts = true;
    if (fails) return nullptr;
  }
  if (alignment <= alignof(std::max_align_t)) return std::malloc(size == 0 ? 1 : size);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void* AllocateOrThrow(size_t size, size_t alignment) {
  void* const memory = Allocate(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t size) { return AllocateOrThrow(size, 1); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return Allocate(size, 1); }
void* operator new(size_t size, std::align_val_t alignment) {
  return AllocateOrThrow(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return Allocate(size, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace cuguest_faults {

HostMemoryFault::HostMemoryFault(size_t failing) noexcept {
  t_ranges = 0;
  dl_iterate_phdr(&AddRanges, nullptr);
  t_failing = failing;
  t_seen = 0;
  t_counts = true;
}

HostMemoryFault::~HostMemoryFault() { t_counts = false; }

bool HostMemoryFault::has_failed() const noexcept { return t_seen >= t_failing; }

}  // namespace cuguest_faults

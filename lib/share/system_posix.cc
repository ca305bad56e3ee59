// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/share/system.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

CUGUEST_BEGIN_INTERNAL_NAMESPACE

bool MayHaveMemoryAt(std::uintptr_t address) noexcept {
  const auto page_size = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t page = address & ~(page_size - 1);
  if (page == 0) return false;
  unsigned char resident = 0;
  // ENOMEM: the page is not mapped, or no page can be there. Any other error, such as a system
  // call filter's EPERM, says nothing of the address.
  return mincore(reinterpret_cast<void*>(page), 1, &resident) == 0 || errno != ENOMEM;
}

void* MapZeros(std::size_t size) noexcept {
  void* const place =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return place != MAP_FAILED ? place : nullptr;
}

void Unmap(void* place, std::size_t size) noexcept { static_cast<void>(munmap(place, size)); }

// The ninth field of proc(5), "/proc/pid/stat": the kernel's PF_FORKNOEXEC among the task's flags.
// The second is a name in parentheses, which may have any character in it.
bool IsForked() noexcept {
  constexpr unsigned long kForkedWithoutExec = 0x40;
  char text[512] = "";
  const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t count = read(file, text, sizeof(text) - 1);
  close(file);
  const char* field = count > 0 ? std::strrchr(text, ')') : nullptr;
  for (int i = 2; field != nullptr && i < 9; ++i) field = std::strchr(field + 1, ' ');
  return field != nullptr && (std::strtoul(field, nullptr, 10) & kForkedWithoutExec) != 0;
}

CUGUEST_END_INTERNAL_NAMESPACE

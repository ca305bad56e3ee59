// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/share/system.h"

#include <windows.h>

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

struct Work {
  void (*run)(void*);
  void* data;
};

DWORD WINAPI RunWork(void* data) {
  const auto* const work = static_cast<const Work*>(data);
  work->run(work->data);
  return 0;
}

}  // namespace

// While a library is loaded or unloaded (DllMain) no thread starts, and waiting for one would be
// for ever; so a thread that is in the way of that is not to end the last reference there.
bool RunOnNewThread(void (*run)(void*), void* data) noexcept {
  Work work{run, data};
  HANDLE const thread = CreateThread(nullptr, 0, &RunWork, &work, 0, nullptr);
  if (thread == nullptr) return false;
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
  return true;
}

bool MayHaveMemoryAt(std::uintptr_t address) noexcept {
  MEMORY_BASIC_INFORMATION about = {};
  if (VirtualQuery(reinterpret_cast<void*>(address), &about, sizeof(about)) == 0) return false;
  return about.State == MEM_COMMIT && (about.Protect & (PAGE_NOACCESS | PAGE_GUARD)) == 0;
}

CUGUEST_END_INTERNAL_NAMESPACE

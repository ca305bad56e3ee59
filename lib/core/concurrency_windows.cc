// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/core/concurrency.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

int KernelThread() noexcept { return static_cast<int>(GetCurrentThreadId()); }

// Windows gives the number of a thread that has ended to the next one, of whatever process. One of
// this process that has it now is told what its predecessor was to be told, and finds no scope with
// that serial number.
bool HasEnded(int kernel_thread) noexcept {
  const DWORD saved = GetLastError();
  HANDLE const thread = OpenThread(SYNCHRONIZE | THREAD_QUERY_LIMITED_INFORMATION, FALSE,
                                   static_cast<DWORD>(kernel_thread));
  bool has_ended = thread == nullptr && GetLastError() == ERROR_INVALID_PARAMETER;
  if (thread != nullptr) {
    has_ended = GetProcessIdOfThread(thread) != GetCurrentProcessId() ||
                WaitForSingleObject(thread, 0) == WAIT_OBJECT_0;
    CloseHandle(thread);
  }
  SetLastError(saved);
  return has_ended;
}

CUGUEST_END_INTERNAL_NAMESPACE

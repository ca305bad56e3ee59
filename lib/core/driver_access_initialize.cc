// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/core/driver_access.h"

#include "lib/core/concurrency.h"
#include "lib/core/library.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

std::atomic<unsigned> g_initialized_in{0};  // Process::Number(), which costs no system call

// Every other call of the driver that an uninitialised one refuses would do, but no table lacks
// this one. In a stream callback it is refused, too.
bool SaysInitialized(decltype(DriverTable::CtxGetCurrent) get_current) {
  CUcontext current = nullptr;
  const CUresult code = get_current(&current);
  return code == CUDA_SUCCESS || code == CUDA_ERROR_NOT_PERMITTED;
}

}  // namespace

CUresult InitializeDriver(const DriverTable& driver) noexcept {
  const unsigned self = Process::Number();
  if (g_initialized_in.load(std::memory_order_acquire) == self) return CUDA_SUCCESS;
  const CUresult code = driver.Init(0);
  if (code == CUDA_SUCCESS) g_initialized_in.store(self, std::memory_order_release);
  return code;
}

bool IsDriverInitialized() noexcept {
  if (g_initialized_in.load(std::memory_order_acquire) == Process::Number()) return true;
  const DriverOutcome* const decided = DecidedDriver();
  if (decided != nullptr && decided->ok()) return SaysInitialized(decided->table.CtxGetCurrent);
  void* const library = BorrowLoaded(kDriverFile);
  if (library == nullptr) return false;
  void* const get_current = FindSymbol(library, "cuCtxGetCurrent");
  const bool says =
      get_current != nullptr &&
      SaysInitialized(reinterpret_cast<decltype(DriverTable::CtxGetCurrent)>(get_current));
  GiveBack(library);
  return says;
}

CUGUEST_END_INTERNAL_NAMESPACE

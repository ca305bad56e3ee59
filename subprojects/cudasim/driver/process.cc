// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/process.h"

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "driver/api.h"
#include "driver/calling_object.h"
#include "driver/context/device.h"
#include "driver/context/visible_devices.h"
#include "driver/panic.h"
#include "driver/report.h"
#include "driver/stream/schedule.h"
#include "driver/tool.h"

namespace cudasim::driver {
namespace {

enum class Phase { kFresh, kReady, kForked, kEnded };

std::atomic<Phase> phase{Phase::kFresh};
std::atomic<int> device_count{2};  // the machine's; once initialised, those that are seen
// What the ordinals stand for: written before kReady, and never afterwards.
std::vector<int>& Devices() {
  static auto& devices = *new std::vector<int>;
  return devices;
}
std::mutex init_mutex;
thread_local bool is_initializing = false;

void BecomeForked() {
  phase.store(Phase::kForked);
  Schedule::ForgetInChild();
}

// A real driver ends as if it had called atexit() inside cuInit: what was registered
// before cuInit (also a destructor of a global object) runs after the end and gets
// DEINITIALIZED, what was registered later still works (measured on an H100, driver
// 580.159.04).
CUresult InitFresh() {
  const CUresult code =
      FindVisibleDevices(secure_getenv("CUDA_VISIBLE_DEVICES"), device_count.load(), &Devices());
  if (code != CUDA_SUCCESS) return code;
  if (pthread_atfork(nullptr, nullptr, BecomeForked) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  if (std::atexit(Process::End) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  device_count.store(static_cast<int>(Devices().size()));
  is_initializing = true;
  LoadInjection();
  is_initializing = false;
  phase.store(Phase::kReady);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult Process::Serves(Floor floor) {
  const Phase now = phase.load(std::memory_order_acquire);
  if (floor == Floor::kOwn) return CUDA_SUCCESS;
  if (now == Phase::kEnded) return CUDA_ERROR_DEINITIALIZED;
  if (floor == Floor::kAlways) return CUDA_SUCCESS;
  if (now == Phase::kForked && floor == Floor::kThread) return CUDA_SUCCESS;
  if (now != Phase::kReady) return CUDA_ERROR_NOT_INITIALIZED;
  // Measured on an H100, driver 580.159.04: test/stream_event_pointer_facts_test.cc.
  const bool permitted = floor != Floor::kInitialized || CallbackStream() == nullptr;
  return permitted ? CUDA_SUCCESS : CUDA_ERROR_NOT_PERMITTED;
}

// In a forked child the end changes nothing: it was never its driver.
void Process::End() {
  if (phase.load() == Phase::kForked) return;
  phase.store(Phase::kEnded);
  Schedule::End();
}

void Process::SetDeviceCount(int count) {
  if (count < 0 || count > kMaxDevices) {
    Panic("Sim::SetDeviceCount(%d): 0 to %d", count, kMaxDevices);
  }
  const std::lock_guard<std::mutex> lock(init_mutex);
  if (phase.load() == Phase::kFresh) device_count.store(count);
}

bool Process::IsFresh() { return phase.load(std::memory_order_acquire) == Phase::kFresh; }

int Process::DeviceCount() { return device_count.load(std::memory_order_relaxed); }

int Process::IndexOf(CUdevice device) { return Devices()[static_cast<size_t>(device)]; }

CUresult Init(unsigned flags) {
  // Before the lock, which a thread that does not exist in the child may hold, or this very thread,
  // if an injected library calls.
  if (phase.load() == Phase::kForked || is_initializing) return CUDA_ERROR_NOT_INITIALIZED;
  const std::lock_guard<std::mutex> lock(init_mutex);
  switch (phase.load()) {
    case Phase::kForked:
      return CUDA_ERROR_NOT_INITIALIZED;
    case Phase::kEnded:
      return CUDA_ERROR_DEINITIALIZED;
    case Phase::kReady:
      return flags != 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case Phase::kFresh:
      break;
  }
  return flags != 0 ? CUDA_ERROR_INVALID_VALUE : InitFresh();
}

// There are no private tables; a real driver answers so for those that it does not know
// (measured on an H100, driver 580.159.04). NVRTC asks for one, and crashes where the entry
// is missing.
CUresult GetExportTable(const void** table, const CUuuid* id) {
  if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  NotePrivateTable(CallingObject());
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace cudasim::driver

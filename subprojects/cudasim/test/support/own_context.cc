// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/support/own_context.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "test/support/raw_driver.h"
#include "test/support/runner.h"

namespace cudasim_test {
namespace {

// The version that every driver has.
using CtxCreate = CUresult (*)(CUcontext*, unsigned, CUdevice);

struct Pool {
  std::mutex mutex;
  std::map<int, std::vector<CUcontext>> idle;  // by device
};

// In no static storage: children run while the program loads.
Pool& ThePool() {
  static Pool* const pool = new Pool;
  return *pool;
}

CUcontext Make(int device) {
  CUcontext context = nullptr;
  CUcontext popped = nullptr;
  Require(RAW_AS(CtxCreate, "cuCtxCreate_v2")(&context, 0, device), "create a context");
  Require(RAW(cuCtxPopCurrent)(&popped), "pop a new context");
  return context;
}

CUcontext TakeIdle(int device) {
  Pool& pool = ThePool();
  const std::lock_guard<std::mutex> lock(pool.mutex);
  std::vector<CUcontext>& idle = pool.idle[device];
  if (idle.empty()) return nullptr;
  const CUcontext context = idle.back();
  idle.pop_back();
  return context;
}

// False if it does not live any more.
bool Keep(CUcontext context, int device) {
  unsigned version = 0;
  if (RAW(cuCtxGetApiVersion)(context, &version) != CUDA_SUCCESS) return false;
  CUcontext current = nullptr;
  if (RAW(cuCtxGetCurrent)(&current) == CUDA_SUCCESS && current == context) {
    RAW(cuCtxPopCurrent)(&current);
  }
  Pool& pool = ThePool();
  const std::lock_guard<std::mutex> lock(pool.mutex);
  pool.idle[device].push_back(context);
  return true;
}

}  // namespace

OwnContext::OwnContext(int device) : context_(TakeIdle(device)), device_(device) {
  if (context_ == nullptr) context_ = Make(device);
}

OwnContext::OwnContext(OwnContext&& other) noexcept
    : context_(other.release()), device_(other.device_) {}

CUcontext OwnContext::release() { return std::exchange(context_, nullptr); }

OwnContext::~OwnContext() {
  if (context_ == nullptr) return;
  if (!cudasim::Sim::IsActive() && Keep(context_, device_)) return;
  if (RAW(cuCtxDestroy)(context_) == CUDA_SUCCESS) return;
  std::fprintf(stderr, "a test could not destroy its own context\n");
  std::abort();
}

void OwnContext::DestroyIdle() {
  Pool& pool = ThePool();
  const std::lock_guard<std::mutex> lock(pool.mutex);
  for (auto& [device, idle] : pool.idle) {
    for (const CUcontext context : idle) RAW(cuCtxDestroy)(context);
    idle.clear();
  }
}

}  // namespace cudasim_test

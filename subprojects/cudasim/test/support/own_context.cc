// SPDX-License-Identifier: Apache-2.0

#include "test/support/own_context.h"

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "test/support/raw_driver.h"

namespace cudasim_test {
namespace {

// The version that every driver has.
using CtxCreate = CUresult (*)(CUcontext*, unsigned, CUdevice);

// What a case may have changed for those that have the context after it.
struct Settings {
  unsigned flags = 0;
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_NONE;
  std::array<std::size_t, CU_LIMIT_MAX> limits{};

  bool operator==(const Settings& other) const {
    return flags == other.flags && cache == other.cache && limits == other.limits;
  }
};

struct Pool {
  std::mutex mutex;
  std::map<int, std::vector<CUcontext>> idle;  // by device
  std::map<CUcontext, Settings> made_with;
};

// In no static storage: children run while the program loads.
Pool& ThePool() {
  static Pool* const pool = new Pool;
  return *pool;
}

// Not an assertion of Boost.Test: fixtures of whole suites, which are no test cases, and
// other threads come here too.
void Require(CUresult code, const char* doing) {
  if (code != CUDA_SUCCESS) throw std::runtime_error(std::string("a test could not ") + doing);
}

Settings SettingsOfCurrent() {
  Settings settings;
  Require(RAW(cuCtxGetFlags)(&settings.flags), "ask for a context's flags");
  Require(RAW(cuCtxGetCacheConfig)(&settings.cache), "ask for a context's cache configuration");
  for (std::size_t limit = 0; limit < settings.limits.size(); ++limit) {
    // 0 where the device does not have it.
    RAW(cuCtxGetLimit)(&settings.limits[limit], static_cast<CUlimit>(limit));
  }
  return settings;
}

CUcontext Make(int device) {
  CUcontext context = nullptr;
  CUcontext popped = nullptr;
  Require(RAW_AS(CtxCreate, "cuCtxCreate_v2")(&context, 0, device), "create a context");
  if (!cudasim::Sim::IsActive()) {
    const Settings settings = SettingsOfCurrent();
    Pool& pool = ThePool();
    const std::lock_guard<std::mutex> lock(pool.mutex);
    pool.made_with[context] = settings;
  }
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

// Whether the next object's owner finds the settings of a new one.
bool IsAsNew(CUcontext context) {
  CUcontext popped = nullptr;
  if (RAW(cuCtxPushCurrent)(context) != CUDA_SUCCESS) return false;
  const Settings settings = SettingsOfCurrent();
  if (RAW(cuCtxPopCurrent)(&popped) != CUDA_SUCCESS) return false;
  Pool& pool = ThePool();
  const std::lock_guard<std::mutex> lock(pool.mutex);
  return settings == pool.made_with[context];
}

void PopIfCurrent(CUcontext context) {
  CUcontext current = nullptr;
  if (RAW(cuCtxGetCurrent)(&current) == CUDA_SUCCESS && current == context) {
    RAW(cuCtxPopCurrent)(&current);
  }
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
  if (!cudasim::Sim::IsActive() && IsAsNew(context_)) {
    PopIfCurrent(context_);
    Pool& pool = ThePool();
    const std::lock_guard<std::mutex> lock(pool.mutex);
    pool.idle[device_].push_back(context_);
  } else if (RAW(cuCtxDestroy)(context_) != CUDA_SUCCESS) {
    std::fprintf(stderr, "a test could not destroy its own context\n");
    std::abort();
  }
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

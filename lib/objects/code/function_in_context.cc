// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/objects/code/function_in_context.h"

#include <algorithm>
#include <memory>

#include "lib/core/driver_access.h"
#include "lib/guard/relaxed_scope.h"
#include "lib/objects/object_driver.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

namespace {

void Raise(std::atomic<int>* most, int value) noexcept {
  int now = most->load();
  while (now < value && !most->compare_exchange_weak(now, value)) {
  }
}

}  // namespace

CUresult AskMaxDynamicShared(const ObjectDriver& driver, FunctionInContext* function) noexcept {
  int bytes = 0;
  const CUresult code = driver.FuncGetAttribute(
      &bytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function->function);
  if (code == CUDA_SUCCESS) {
    function->max_dynamic_shared_bytes.store(bytes, std::memory_order_relaxed);
  }
  return code;
}

// Two threads may set it at once, the smaller wish last. So each keeps what it has set before it
// looks again, and the last one finds either the other's limit or the other's wish.
CUresult AllowDynamicShared(const ObjectDriver& driver, FunctionInContext* function,
                            int bytes) noexcept {
  constexpr int kTries = 16;  // somebody else may go on lowering it
  CUresult code = CUDA_SUCCESS;
  for (int i = 0; i < kTries && code == CUDA_SUCCESS; ++i) {
    code = AskMaxDynamicShared(driver, function);
    const int most = std::max(bytes, function->allowed_shared_bytes.load());
    if (code != CUDA_SUCCESS || most <= function->max_dynamic_shared_bytes.load()) break;
    code = driver.FuncSetAttribute(function->function,
                                   CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most);
    if (code == CUDA_SUCCESS) Raise(&function->allowed_shared_bytes, most);
  }
  if (code == CUDA_SUCCESS) Raise(&function->allowed_shared_bytes, bytes);
  return code;
}

namespace {

// A driver that does not know the question (it came with CUDA 11.8) knows no such kernel either.
CUresult AskRequiredCluster(const ObjectDriver& driver, FunctionInContext* function) noexcept {
  int width = 0;
  int height = 0;
  int depth = 0;
  const CUresult code = AskEach(driver.FuncGetAttribute, function->function,
                                {{CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, &width},
                                 {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, &height},
                                 {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, &depth}});
  if (code != CUDA_SUCCESS) return code == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : code;
  function->required_cluster.store(
      PackSizes(static_cast<unsigned>(width), static_cast<unsigned>(height),
                static_cast<unsigned>(depth)),
      std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

// Those of a green context are a part of its device's. Without the question (CUDA 12.4) there
// are no green contexts.
CUresult AskMultiprocessors(const ObjectDriver& driver, CUcontext context,
                            DeviceLimits* limits) noexcept {
  if (driver.CtxGetDevResource == nullptr) return CUDA_SUCCESS;
  CUdevResource resource = {};
  const CUresult code = driver.CtxGetDevResource(context, &resource, CU_DEV_RESOURCE_TYPE_SM);
  if (code == CUDA_SUCCESS) limits->multiprocessors = static_cast<int>(resource.sm.smCount);
  return code;
}

}  // namespace

CUresult AskChangingLimits(const ObjectDriver& driver, FunctionInContext* function) noexcept {
  const CUresult code = AskMaxDynamicShared(driver, function);
  return code == CUDA_SUCCESS ? AskRequiredCluster(driver, function) : code;
}

CUresult AskFunctionLimits(const ObjectDriver& driver, FunctionInContext* function) noexcept {
  const CUresult code =
      AskEach(driver.FuncGetAttribute, function->function,
              {{CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &function->max_threads_per_block},
               {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &function->static_shared_bytes}});
  return code == CUDA_SUCCESS ? AskChangingLimits(driver, function) : code;
}

CUresult AskDeviceLimits(const ObjectDriver& driver, CUcontext context,
                         DeviceLimits* limits) noexcept {
  CUresult code = driver.CtxGetDevice(&limits->device);
  if (code != CUDA_SUCCESS) return code;
  int shared_bytes = 0;  // of a block, without asking for more
  code = AskEach(driver.DeviceGetAttribute, limits->device,
                 {{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &limits->max_threads_per_block},
                  {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &limits->max_block[0]},
                  {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &limits->max_block[1]},
                  {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &limits->max_block[2]},
                  {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &limits->max_grid[0]},
                  {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, &limits->max_grid[1]},
                  {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, &limits->max_grid[2]},
                  {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, &shared_bytes},
                  {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &limits->multiprocessors}});
  if (code != CUDA_SUCCESS) return code;
  // The oldest first: a driver that does not know a question does not have the thing either.
  code = AskEach(
      driver.DeviceGetAttribute, limits->device,
      {{CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, &limits->cooperative_launch},
       {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &limits->opt_in_shared_bytes},
       {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, &limits->cluster_launch}});
  if (code != CUDA_SUCCESS && code != CUDA_ERROR_INVALID_VALUE) return code;
  limits->opt_in_shared_bytes = std::max(limits->opt_in_shared_bytes, shared_bytes);
  return AskMultiprocessors(driver, context, limits);
}

CUresult AskComputeCapability(const ObjectDriver& driver, CUdevice* device,
                              int* capability) noexcept {
  int major = 0;
  int minor = 0;
  CUresult code = driver.CtxGetDevice(device);
  if (code != CUDA_SUCCESS) return code;
  code = AskEach(driver.DeviceGetAttribute, *device,
                 {{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
                  {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor}});
  *capability = 10 * major + minor;
  return code;
}

CodeInContext::~CodeInContext() {
  CUresult code = CUDA_SUCCESS;
  const ObjectDriver* const driver = module_ != nullptr ? TryObjectDriver(&code) : nullptr;
  if (driver != nullptr) {
    const RelaxedScope relaxed;
    if (relaxed.ok()) static_cast<void>(driver->ModuleUnload(module_));
  }
  for (const std::atomic<FunctionInContext*>& chunk : chunks_) {
    delete[] chunk.load(std::memory_order_relaxed);
  }
}

FunctionInContext* CodeInContext::Keep(std::uint32_t number, const FunctionInContext& found) {
  const Place place = PlaceOf(number);
  FunctionInContext* chunk = Chunk(place.chunk);
  if (chunk == nullptr) {
    std::unique_ptr<FunctionInContext[]> grown(new FunctionInContext[SlotsOf(place.chunk)]);
    if (chunks_[place.chunk].compare_exchange_strong(chunk, grown.get(),
                                                     std::memory_order_acq_rel)) {
      chunk = grown.release();
    }
  }
  FunctionInContext& kept = chunk[place.slot];
  const std::lock_guard<std::mutex> lock(mutex_);
  if (kept.is_found.load(std::memory_order_relaxed)) return &kept;
  constexpr auto kRelaxed = std::memory_order_relaxed;
  kept.function = found.function;
  kept.max_threads_per_block = found.max_threads_per_block;
  kept.max_dynamic_shared_bytes.store(found.max_dynamic_shared_bytes.load(kRelaxed), kRelaxed);
  kept.required_block = found.required_block;
  kept.required_cluster.store(found.required_cluster.load(kRelaxed), kRelaxed);
  kept.device = limits_;
  kept.static_shared_bytes = found.static_shared_bytes;
  kept.parameters = found.parameters;
  kept.is_found.store(true, std::memory_order_release);
  return &kept;
}

CUGUEST_END_INTERNAL_NAMESPACE

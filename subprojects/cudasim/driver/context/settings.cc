// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/context/context.h"

#include <algorithm>

#include "driver/api.h"
#include "driver/context/device.h"
#include "driver/context/gpu.h"
#include "driver/context/primary.h"
#include "driver/context/stack.h"
#include "driver/panic.h"
#include "driver/release.h"
#include "driver/stream/capture.h"

namespace cudasim::driver {
namespace {

constexpr size_t kNoMost = ~size_t{0};

struct LimitRow {
  CUlimit limit;
  size_t initial;
  size_t least;          // a smaller value is raised to it
  size_t step;           // and rounded up to a multiple of this
  size_t most;           // a larger one is INVALID_VALUE; 0: cannot be set
  size_t cap = kNoMost;  // a larger one is lowered to it
};

// Of the most a GPU has: the step is a tenth, and three steps are set aside at first (an H100 and
// an H200, driver 580.159.04).
LimitRow PersistingL2() {
  const auto most =
      static_cast<size_t>(ThisGpu().Attribute(CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE));
  return {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, most / 10 * 3, 0, most / 10, most};
}

// Measured on an H100, driver 580.159.04, but for the greatest stack size, which
// lies somewhere above 16 KiB and below 1 GiB. A limit that is not here is
// UNSUPPORTED_LIMIT: device-side synchronisation went with compute capability 9.0,
// the fallback of CIG needs a CIG context.
const auto& LimitRows() {
  static const LimitRow rows[] = {
      {CU_LIMIT_STACK_SIZE, 1024, 0, 16, size_t{512} << 10},
      {CU_LIMIT_PRINTF_FIFO_SIZE, 8650752, 524288, 1, kNoMost},
      {CU_LIMIT_MALLOC_HEAP_SIZE, size_t{8} << 20, size_t{4} << 20, 1, kNoMost},
      {CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048, 32, 1, kNoMost, 599186},
      {CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64, 0, 1, 128},
      PersistingL2(),
      {CU_LIMIT_SHMEM_SIZE, 232448, 0, 1, 0},
      {CU_LIMIT_CIG_ENABLED, 0, 0, 1, 0},
  };
  return rows;
}

const LimitRow* FindLimit(CUlimit limit) {
  if (limit >= ThisRelease().limits) return nullptr;
  for (const LimitRow& row : LimitRows()) {
    if (row.limit == limit) return &row;
  }
  return nullptr;
}

CUresult LimitError(CUlimit limit) {
  if (limit < 0 || limit >= ThisRelease().limits) return CUDA_ERROR_INVALID_VALUE;
  return limit < ModelledRelease().limits ? CUDA_ERROR_UNSUPPORTED_LIMIT : NotModelled();
}

}  // namespace

bool AreContextFlags(unsigned flags) {
  if ((flags & ~ThisRelease().context_flags) != 0) return false;
  const unsigned schedule = flags & CU_CTX_SCHED_MASK;
  return (schedule & (schedule - 1)) == 0;  // none or one of the three
}

void ResetSettings(Context* context) {
  for (const LimitRow& row : LimitRows()) context->limits[row.limit].store(row.initial);
  context->cache_config.store(CU_FUNC_CACHE_PREFER_NONE);
  context->affinity.store(kMultiprocessors);
}

// Answers for a dead context too.
CUresult CtxGetFlags(unsigned* flags) {
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  const CUresult code = Current(&context);
  if (code == CUDA_SUCCESS) *flags = context->owner()->flags.load();
  return code;
}

CUresult CtxSetFlags(unsigned flags) {
  Context* context = nullptr;
  const CUresult code = Current(&context);
  if (code != CUDA_SUCCESS) return code;
  Context* owner = context->owner();
  if (!owner->IsAlive()) {
    PanicHandle(context->handle(),
                "the current context was destroyed; a real driver crashes here (measured on an "
                "H100, driver 580.159.04)");
  }
  if (!AreContextFlags(flags)) return CUDA_ERROR_INVALID_VALUE;
  // A capture in the context is in the way of a new CU_CTX_SYNC_MEMOPS; the other flags are set.
  const bool syncs = (flags & CU_CTX_SYNC_MEMOPS) != 0;
  const bool synced = (owner->flags.load() & CU_CTX_SYNC_MEMOPS) != 0;
  const bool is_refused = syncs && !synced && Captures::HasInContext(owner->id(), /*lose=*/true);
  if (is_refused) flags &= ~unsigned{CU_CTX_SYNC_MEMOPS};
  // Which means nothing since CUDA 3.2, and stays as the context was made.
  const unsigned map_host = owner->flags.load() & CU_CTX_MAP_HOST;
  owner->flags.store((flags & ~unsigned{CU_CTX_MAP_HOST}) | map_host);
  if (owner->is_primary()) ShowSyncMemops(owner->device(), syncs && !is_refused);
  return is_refused ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult CtxGetLimit(size_t* value, CUlimit limit) {
  Incarnation incarnation;
  const CUresult code = CurrentAlive(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const LimitRow* row = FindLimit(limit);
  if (row == nullptr) return LimitError(limit);
  *value = incarnation.context->limits[row->limit].load();
  return CUDA_SUCCESS;
}

CUresult CtxSetLimit(CUlimit limit, size_t value) {
  Incarnation incarnation;
  const CUresult code = CurrentAlive(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  const LimitRow* row = FindLimit(limit);
  if (row == nullptr) return LimitError(limit);
  if (row->most == 0) return CUDA_ERROR_NOT_PERMITTED;
  if (value > row->most) return CUDA_ERROR_INVALID_VALUE;
  const size_t raised = std::min(std::max(value, row->least), row->cap);
  incarnation.context->limits[row->limit].store((raised + row->step - 1) / row->step * row->step);
  return CUDA_SUCCESS;
}

CUresult CtxGetCacheConfig(CUfunc_cache* config) {
  Incarnation incarnation;
  const CUresult code = CurrentAlive(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = incarnation.context->cache_config.load();
  return CUDA_SUCCESS;
}

CUresult CtxSetCacheConfig(CUfunc_cache config) {
  Incarnation incarnation;
  const CUresult code = CurrentAlive(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  incarnation.context->cache_config.store(config);
  return CUDA_SUCCESS;
}

CUresult CtxGetSharedMemConfig(CUsharedconfig* config) {
  Incarnation incarnation;
  const CUresult code = CurrentAlive(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // Banks have one width on every device since compute capability 5.0.
  *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  return CUDA_SUCCESS;
}

CUresult CtxSetSharedMemConfig(CUsharedconfig config) {
  Incarnation incarnation;
  const CUresult code = CurrentAlive(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  if (config < CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE ||
      config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;  // accepted, without effect
}

CUresult CtxGetStreamPriorityRange(int* least, int* greatest) {
  Incarnation incarnation;
  const CUresult code = CurrentAlive(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return CUDA_SUCCESS;
}

CUresult CtxGetExecAffinity(CUexecAffinityParam* affinity, CUexecAffinityType type) {
  if (affinity == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Incarnation incarnation;
  const CUresult code = CurrentPlace(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  if (incarnation.context->is_green()) return CUDA_ERROR_INVALID_CONTEXT;
  if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  affinity->type = type;
  affinity->param.smCount.val = incarnation.context->affinity.load();
  return CUDA_SUCCESS;
}

CUresult CtxResetPersistingL2Cache() {
  Incarnation incarnation;
  return CurrentReady(&incarnation);
}

// There is no profiler.
CUresult ProfilerStart() {
  Incarnation incarnation;
  return CurrentReady(&incarnation);
}

CUresult ProfilerStop() { return ProfilerStart(); }

}  // namespace cudasim::driver

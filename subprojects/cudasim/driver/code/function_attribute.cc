// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/code/function_attribute.h"

#include <algorithm>

#include "driver/api.h"
#include "driver/code/module.h"
#include "driver/launch/occupancy.h"
#include "driver/panic.h"
#include "driver/release.h"

namespace cudasim::driver {
namespace {

CUresult CheckAttribute(CUfunction_attribute attribute) {
  if (static_cast<int>(attribute) < 0 || attribute >= ThisRelease().function_attributes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return attribute < ModelledRelease().function_attributes ? CUDA_SUCCESS : NotModelled();
}

bool HasRequiredCluster(const FunctionTraits& traits) { return traits.required_cluster[0] != 0; }

int Narrow(size_t value) { return static_cast<int>(value); }

int MaxDynamicShared(const FunctionTraits& traits, size_t limit) {
  return Narrow(limit - std::min(limit, traits.static_shared));
}

// As long as nobody sets it.
int CompiledTrait(const FunctionTraits& traits, CUfunction_attribute attribute) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return Narrow(traits.MaxThreads());
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      return Narrow(traits.static_shared);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      return Narrow(traits.constant);
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      return Narrow(traits.local);
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      return Narrow(traits.registers);
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      return traits.ptx_version;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      return 90;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return MaxDynamicShared(traits, kSharedPerBlock);
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return CU_SHAREDMEM_CARVEOUT_DEFAULT;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
      return traits.must_have_cluster ? 1 : 0;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      return Narrow(traits.required_cluster[0]);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      return Narrow(traits.required_cluster[1]);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      return Narrow(traits.required_cluster[2]);
    default:
      return 0;
  }
}

// Measured on an H100, driver 580.159.04.
bool CanBe(const FunctionTraits& traits, CUfunction_attribute attribute, int value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return value >= 0 && value <= MaxDynamicShared(traits, kSharedPerBlockOptIn);
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return value >= CU_SHAREDMEM_CARVEOUT_DEFAULT && value <= CU_SHAREDMEM_CARVEOUT_MAX_SHARED;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      return value >= 0 && !HasRequiredCluster(traits);
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      return true;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return value >= CU_CLUSTER_SCHEDULING_POLICY_DEFAULT &&
             value <= CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING;
    default:
      return false;
  }
}

}  // namespace

unsigned FunctionTraits::MaxThreads() const {
  return std::min(max_threads, kWarpSize * WarpsByRegisters(registers));
}

CUresult FunctionSettings::Set(const FunctionTraits& traits, CUfunction_attribute attribute,
                               int value) {
  const CUresult code = CheckAttribute(attribute);
  if (code != CUDA_SUCCESS) return code;
  if (!CanBe(traits, attribute, value)) return CUDA_ERROR_INVALID_VALUE;
  const bool is_flag = attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
  const std::lock_guard<std::mutex> lock(mutex_);
  own_[attribute] = is_flag && value != 0 ? 1 : value;
  return CUDA_SUCCESS;
}

CUresult FunctionSettings::Get(const FunctionTraits& traits, CUfunction_attribute attribute,
                               int* value) const {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult code = CheckAttribute(attribute);
  if (code != CUDA_SUCCESS) return code;
  *value = Of(traits, attribute);
  return CUDA_SUCCESS;
}

int FunctionSettings::Of(const FunctionTraits& traits, CUfunction_attribute attribute) const {
  return Find(attribute).value_or(CompiledTrait(traits, attribute));
}

std::optional<int> FunctionSettings::Find(CUfunction_attribute attribute) const {
  std::unique_lock<std::mutex> lock(mutex_);
  const std::optional<int> own = own_[attribute];
  lock.unlock();
  return own.has_value() || kernel_ == nullptr ? own : kernel_->Find(attribute);
}

CUresult CheckCacheConfig(CUfunc_cache config) {
  const bool known = config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL;
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult FuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult code = CheckAttribute(attribute);
  Function function;
  if (code == CUDA_SUCCESS) code = FindFunction(handle, &function);
  if (code != CUDA_SUCCESS) return code;
  return function.settings->Get(function.entry->traits, attribute, value);
}

CUresult FuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  if (static_cast<int>(attribute) < 0) {
    Panic("cuFuncSetAttribute: a negative attribute; a real driver crashes");
  }
  Function function;
  const CUresult code = FindFunction(handle, &function);
  if (code != CUDA_SUCCESS) return code;
  return function.settings->Set(function.entry->traits, attribute, value);
}

// There are no caches to configure.
CUresult FuncSetCacheConfig(CUfunction handle, CUfunc_cache config) {
  Function function;
  const CUresult code = FindFunction(handle, &function);
  return code != CUDA_SUCCESS ? code : CheckCacheConfig(config);
}

}  // namespace cudasim::driver

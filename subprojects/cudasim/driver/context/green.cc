// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/context/primary.h"

#include <algorithm>
#include <deque>
#include <mutex>

#include "driver/api.h"
#include "driver/context/device.h"
#include "driver/context/stack.h"
#include "driver/panic.h"
#include "driver/stream/stream.h"

namespace cudasim::driver {
namespace {

// A partition is at least, and a multiple of, this many multiprocessors on a device
// of compute capability 9.0.
constexpr unsigned kPartition = 8;
// The same without the promise that they are scheduled together.
constexpr unsigned kLoosePartition = 2;

// Whether a resource came out of a split, which may not be split again.
enum class Origin : unsigned char { kWhole, kSplit };

CUdevResource MakeResource(unsigned multiprocessors, Origin origin) {
  CUdevResource resource = {};
  if (multiprocessors == 0) return resource;  // CU_DEV_RESOURCE_TYPE_INVALID
  resource.type = CU_DEV_RESOURCE_TYPE_SM;
  resource._internal_padding[0] = static_cast<unsigned char>(origin);
  resource.sm.smCount = multiprocessors;
  if (origin == Origin::kWhole) {
    resource.sm.minSmPartitionSize = kPartition;
    resource.sm.smCoscheduledAlignment = kPartition;
  }
  return resource;
}

bool WasSplit(const CUdevResource& resource) {
  return resource._internal_padding[0] == static_cast<unsigned char>(Origin::kSplit);
}

CUresult GetResource(unsigned multiprocessors, CUdevResource* resource, CUdevResourceType type) {
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *resource = MakeResource(multiprocessors, Origin::kWhole);
  return CUDA_SUCCESS;
}

// The size of each group. (A real H100 makes fewer groups of 8 than would fit: some
// of its clusters are not full.)
unsigned GroupSize(unsigned least, unsigned flags, unsigned total) {
  const bool loose = (flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING) != 0;
  const unsigned step = loose ? kLoosePartition : kPartition;
  const unsigned wanted = std::max(least, 1u);
  return std::min((wanted + step - 1) / step * step, total);
}

// What cuDevResourceGenerateDesc made. There is no call that frees one.
struct Description {
  unsigned multiprocessors;
};

std::mutex descriptions_mutex;
std::deque<Description>& Descriptions() {
  static auto& descriptions = *new std::deque<Description>;
  return descriptions;
}

CUdevResourceDesc AddDescription(const Description& description) {
  const std::lock_guard<std::mutex> lock(descriptions_mutex);
  Descriptions().push_back(description);
  return reinterpret_cast<CUdevResourceDesc>(&Descriptions().back());
}

// Null means the whole device.
unsigned MultiprocessorsOf(CUdevResourceDesc handle) {
  if (handle == nullptr) return kMultiprocessors;
  const std::lock_guard<std::mutex> lock(descriptions_mutex);
  for (const Description& description : Descriptions()) {
    if (reinterpret_cast<CUdevResourceDesc>(const_cast<Description*>(&description)) == handle) {
      return description.multiprocessors;
    }
  }
  PanicHandle(handle, "this never was a resource description");
}

}  // namespace

CUresult FindGreenContext(CUgreenCtx green, Context** context) {
  if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *context = Context::FindOrPanic(reinterpret_cast<CUcontext>(green));
  if (!(*context)->is_green()) return CUDA_ERROR_INVALID_CONTEXT;
  return (*context)->IsAlive() ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult DeviceGetDevResource(CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  return GetResource(kMultiprocessors, resource, type);
}

CUresult CtxGetDevResource(CUcontext handle, CUdevResource* resource, CUdevResourceType type) {
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;  // not the current one
  Context* context = nullptr;
  const CUresult code = Context::FindNamed(handle, &context);
  if (code != CUDA_SUCCESS) return code;
  if (!context->IsAlive()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return GetResource(context->multiprocessors(), resource, type);
}

CUresult GreenCtxGetDevResource(CUgreenCtx green, CUdevResource* resource, CUdevResourceType type) {
  Context* context = nullptr;
  const CUresult code = FindGreenContext(green, &context);
  return code != CUDA_SUCCESS ? code : GetResource(context->multiprocessors(), resource, type);
}

CUresult DevSmResourceSplitByCount(CUdevResource* groups, unsigned* count,
                                   const CUdevResource* input, CUdevResource* remaining,
                                   unsigned flags, unsigned least) {
  constexpr unsigned kFlags = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING |
                              CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
  if (count == nullptr || input == nullptr || (flags & ~kFlags) != 0 ||
      (groups != nullptr && *count == 0)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (input->type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  const unsigned total = input->sm.smCount;
  if (WasSplit(*input) || least > total) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  const unsigned size = GroupSize(least, flags, total);
  const unsigned most = total / size;
  *count = groups != nullptr ? std::min(*count, most) : most;
  if (groups != nullptr) std::fill_n(groups, *count, MakeResource(size, Origin::kSplit));
  if (remaining != nullptr) *remaining = MakeResource(total - *count * size, Origin::kSplit);
  return CUDA_SUCCESS;
}

CUresult DevResourceGenerateDesc(CUdevResourceDesc* handle, CUdevResource* resources,
                                 unsigned count) {
  if (handle == nullptr || resources == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (count == 0) PanicNull();
  Description description = {};
  for (unsigned i = 0; i < count; ++i) {
    if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    description.multiprocessors += resources[i].sm.smCount;
  }
  *handle = AddDescription(description);
  return CUDA_SUCCESS;
}

CUresult GreenCtxCreate(CUgreenCtx* green, CUdevResourceDesc description, CUdevice device,
                        unsigned flags) {
  if (green == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  const CUresult code = CreateGreenContext(device, MultiprocessorsOf(description), &context);
  if (code == CUDA_SUCCESS) *green = context->green_handle();
  return code;
}

// It stays on the stacks that hold it, also on the caller's.
CUresult GreenCtxDestroy(CUgreenCtx green) {
  Context* context = nullptr;
  const CUresult code = FindGreenContext(green, &context);
  return code != CUDA_SUCCESS ? code : DestroyGreenContext(context);
}

CUresult CtxFromGreenCtx(CUcontext* handle, CUgreenCtx green) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  const CUresult code = FindGreenContext(green, &context);
  if (code != CUDA_SUCCESS) return code;
  context->ShowAsContext();
  *handle = context->handle();
  return CUDA_SUCCESS;
}

// Null is the current one.
CUresult GreenCtxGetId(CUgreenCtx green, unsigned long long* id) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (green == nullptr && Current(&context) == CUDA_SUCCESS) {
    if (!context->IsAlive()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    green = context->green_handle();
  }
  const CUresult code = FindGreenContext(green, &context);
  if (code == CUDA_SUCCESS) *id = context->id();
  return code;
}

CUresult GreenCtxStreamCreate(CUstream* stream, CUgreenCtx green, unsigned flags, int priority) {
  if (stream == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  const CUresult code = FindGreenContext(green, &context);
  if (code != CUDA_SUCCESS) return code;
  return CreateStream(IncarnationOf(context), flags, priority, stream);
}

}  // namespace cudasim::driver

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As much of CUPTI as the collector uses, on the simulated driver's callbacks for tools, so that
// the collector's way through CUPTI is run without a GPU. The types and signatures are those of
// CUPTI's headers. Ids of callbacks are the simulation's, behind the real ones.
//
// It is the Sanitizer API, too, whose callbacks differ little.
//
//   CUGUEST_TEST_CUPTI_VERSION   what cuptiGetVersion answers; 130000
//   CUGUEST_TEST_CUPTI_RIVAL     a subscriber that is there already. From version 130300 on it
//                                lets others subscribe who ask for it.

#include <cupti.h>
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "audit/collect/source_callbacks.h"
#include "subprojects/cudasim/include/cudasim/tool.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

// The collector has the types by itself.
using cuguest::audit::CallbackData;
static_assert(offsetof(CallbackData, context) == offsetof(CUpti_CallbackData, context));
static_assert(offsetof(CallbackData, context_id) == offsetof(CUpti_CallbackData, contextUid));
static_assert(sizeof(CallbackData::context_id) == sizeof(CUpti_CallbackData::contextUid));

constexpr unsigned kFirstId = 1024;
constexpr std::uint32_t kFirstThatShares = 130300;
constexpr size_t kMostContexts = 4096;

CUpti_CallbackFunc callback = nullptr;
void* user_data = nullptr;
bool enabled[8] = {};
bool is_sanitizer = false;
struct Known {
  CUcontext handle;
  int device;
};
std::array<Known, kMostContexts> contexts = {};

std::uint32_t Version() {
  const char* text = std::getenv("CUGUEST_TEST_CUPTI_VERSION");
  return text != nullptr ? static_cast<std::uint32_t>(std::atoi(text)) : 130000;
}

// Sizes of the parameters that are shown; of other functions none are.
const char* SizesOf(const char* name) {
  static const std::map<std::string, const char*> sizes = {
      {"cuCtxPushCurrent", "8"},
      {"cuCtxPopCurrent", "8"},
      {"cuCtxSetCurrent", "8"},
      {"cuCtxDestroy", "8"},
      {"cuGreenCtxDestroy", "8"},
      {"cuDevicePrimaryCtxRetain", "84"},
      {"cuDevicePrimaryCtxRelease", "4"},
      {"cuDevicePrimaryCtxReset", "4"},
      {"cuCtxSetLimit", "48"},
      {"cuCtxGetLimit", "84"},
      {"cuThreadExchangeStreamCaptureMode", "8"},
      {"cudaSetDevice", "4"},
      {"cudaMalloc", "88"},
      {"cuMemAlloc", "88"},
      {"cuMemFree", "8"},
      {"cuStreamCreate", "84"},
      {"cuEventCreate", "84"},
      {"cuEventQuery", "8"},
      {"cuMemsetD8Async", "8188"},
  };
  const auto found = sizes.find(name);
  return found != sizes.end() ? found->second : nullptr;
}

// As the compiler lays out a structure of them.
void Pack(const cudasimCall& call, const char* sizes, char* structure) {
  size_t offset = 0;
  for (size_t i = 0; sizes[i] != '\0'; ++i) {
    const size_t size = static_cast<size_t>(sizes[i] - '0');
    offset = (offset + size - 1) / size * size;
    std::memcpy(structure + offset, call.arguments[i], size);
    offset += size;
  }
}

// CUPTI writes a function of the runtime with the version that brought it.
const char* FunctionName(const cudasimCall& call, char* name, size_t size) {
  if (call.domain == cudasimDriverCall) return call.symbol;
  std::snprintf(name, size, "%s_v3020", call.symbol);
  return name;
}

void Tell(const cudasimCall* call, CUpti_ApiCallbackSite site) {
  const bool is_driver = call->domain == cudasimDriverCall;
  const CUpti_CallbackDomain domain =
      is_driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API;
  if (!enabled[domain]) return;
  alignas(8) char structure[64] = {};
  char name[128];
  const char* sizes = SizesOf(call->name);
  if (sizes != nullptr) Pack(*call, sizes, structure);
  int result = call->result;
  CUpti_CallbackData data = {};
  data.callbackSite = site;
  data.functionName = FunctionName(*call, name, sizeof(name));
  data.functionParams = sizes != nullptr ? structure : nullptr;
  data.functionReturnValue = site == CUPTI_API_EXIT ? &result : nullptr;
  data.context = contexts[call->context].handle;
  data.contextUid = static_cast<std::uint32_t>(call->context);
  callback(user_data, domain, kFirstId + call->index, &data);
}

// Sanitizer_ResourceContextData.
struct SanitizerContext {
  CUcontext context;
  CUgreenCtx green;
  CUdevice device;
};

void TellOfContext(const cudasimContext* context, CUpti_CallbackIdResource id) {
  if (!enabled[CUPTI_CB_DOMAIN_RESOURCE]) return;
  if (is_sanitizer) {  // ids 3, at the end of the creation, and 4
    const SanitizerContext data = {context->handle, nullptr, context->device};
    callback(user_data, CUPTI_CB_DOMAIN_RESOURCE, static_cast<CUpti_CallbackId>(id) + 2, &data);
    return;
  }
  CUpti_ResourceData data = {};
  data.context = context->handle;
  callback(user_data, CUPTI_CB_DOMAIN_RESOURCE, id, &data);
}

const cudasimSubscriber kSubscriber = {
    CUDASIM_TOOL_VERSION, [](const cudasimCall* call) { Tell(call, CUPTI_API_ENTER); },
    [](const cudasimCall* call) { Tell(call, CUPTI_API_EXIT); },
    [](const cudasimContext* context) {
      contexts[context->id] = {context->handle, context->device};
      TellOfContext(context, CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
    },
    [](const cudasimContext* context) {
      TellOfContext(context, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
    }};

CUptiResult SubscribeToSimulation(CUpti_CallbackFunc function, void* user) {
  void* symbol = dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "cudasimSubscribe");
  if (symbol == nullptr) return CUPTI_ERROR_UNKNOWN;
  callback = function;
  user_data = user;
  const CUresult code = reinterpret_cast<decltype(&cudasimSubscribe)>(symbol)(&kSubscriber);
  return code == CUDA_SUCCESS ? CUPTI_SUCCESS : CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
}

// CUpti_SubscriberParams of CUPTI 13.3.
struct NewerParams {
  CUpti_SubscriberParams first;
  std::uint8_t allowMultipleSubscribers;
};

bool AsksToShare(const CUpti_SubscriberParams& params) {
  return Version() >= kFirstThatShares && params.structSize > sizeof(params) &&
         reinterpret_cast<const NewerParams&>(params).allowMultipleSubscribers != 0;
}

}  // namespace

EXPORT CUptiResult cuptiGetVersion(std::uint32_t* version) {
  *version = Version();
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiSubscribe(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*) {
  return CUPTI_ERROR_NOT_SUPPORTED;  // the second version is the one to call
}

EXPORT CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber,
                                     CUpti_CallbackFunc function, void* user,
                                     CUpti_SubscriberParams* params) {
  const size_t newest = Version() >= kFirstThatShares ? sizeof(NewerParams) : sizeof(*params);
  if (params->structSize != newest) return CUPTI_ERROR_INVALID_PARAMETER;
  const char* rival = std::getenv("CUGUEST_TEST_CUPTI_RIVAL");
  if (rival != nullptr && !AsksToShare(*params)) {
    std::strncpy(params->oldSubscriberName, rival, params->oldSubscriberSize - 1);
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&callback);
  // As NVIDIA's on the simulation, which has not the tables that it asks a driver for.
  if (std::getenv("CUGUEST_TEST_CUPTI_HEARS_NOTHING") != nullptr) return CUPTI_SUCCESS;
  return SubscribeToSimulation(function, user);
}

EXPORT CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle) { return CUPTI_SUCCESS; }

EXPORT CUptiResult cuptiEnableDomain(std::uint32_t enable, CUpti_SubscriberHandle,
                                     CUpti_CallbackDomain domain) {
  enabled[domain] = enable != 0;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiEnableCallback(std::uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain,
                                       CUpti_CallbackId id) {
  return id < kFirstId ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

EXPORT CUptiResult cuptiGetContextId(CUcontext context, std::uint32_t* id) {
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    if (contexts[i].handle == context) *id = static_cast<std::uint32_t>(i);
  }
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetDeviceId(CUcontext context, std::uint32_t* device) {
  for (const Known& known : contexts) {
    if (known.handle == context) *device = static_cast<std::uint32_t>(known.device);
  }
  return CUPTI_SUCCESS;
}

EXPORT int sanitizerSubscribe(void** subscriber, CUpti_CallbackFunc function, void* user) {
  is_sanitizer = true;
  *subscriber = &callback;
  return SubscribeToSimulation(function, user) == CUPTI_SUCCESS ? 0 : 10;
}

EXPORT int sanitizerEnableDomain(std::uint32_t enable, void*, int domain) {
  enabled[domain] = enable != 0;
  return 0;
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CUPTI's callbacks. One subscriber at a time before CUPTI 13.3, and several from then on where all
// of them agree and the driver is new enough.

#include <dlfcn.h>
#include <stdlib.h>

#include <cstdio>
#include <initializer_list>

#include "audit/channel.h"
#include "audit/collect/source.h"
#include "audit/collect/source_callbacks.h"

namespace cuguest::audit {
namespace {

constexpr const char* kCuptiLibraries[] = {"libcupti.so.13", "libcupti.so.12"};
constexpr const char* kFolders[] = {"", "/usr/local/cuda/lib64/",
                                    "/usr/local/cuda/extras/CUPTI/lib64/"};

// Calls that frameworks make often, that change nothing and create nothing: 150 to 250 ns each,
// were they reported. The numbers are those of cupti_driver_cbid.h and cupti_runtime_cbid.h, which
// stay. Queries of the runtime that may create a primary context are not among them.
constexpr std::uint32_t kDriverQueries[] = {
    9,    // cuDeviceGetAttribute
    16,   // cuCtxGetDevice
    85,   // cuFuncGetAttribute
    296,  // cuCtxGetApiVersion
    304,  // cuCtxGetCurrent
    310,  // cuPointerGetAttribute
    374,  // cuOccupancyMaxActiveBlocksPerMultiprocessor
    450,  // cuPointerGetAttributes
    451,  // cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
    499,  // cuStreamIsCapturing
    500,  // cuStreamIsCapturing_ptsz
    626,  // cuGetProcAddress
    675,  // cuOccupancyMaxPotentialClusterSize
    676,  // cuOccupancyMaxActiveClusters
    677,  // cuGetProcAddress_v2
    681,  // cuLibraryGetKernel
    683,  // cuKernelGetFunction
    686,  // cuKernelGetAttribute
    718,  // cuFuncGetName
    719,  // cuKernelGetName
    795,  // cuCtxGetDevice_v2
};
constexpr std::uint32_t kRuntimeQueries[] = {
    17,   // cudaGetDevice
    200,  // cudaDeviceGetAttribute
};

struct Cupti {
  int (*get_version)(std::uint32_t*);
  int (*subscribe)(void** subscriber, CallbackFunction function, void* user);
  int (*subscribe_v2)(void** subscriber, CallbackFunction function, void* user,
                      CuptiSubscriberParameters* parameters);  // null before 13.0
  int (*enable_domain)(std::uint32_t enable, void* subscriber, int domain);
  int (*unsubscribe)(void* subscriber);
  int (*enable_callback)(std::uint32_t enable, void* subscriber, int domain, std::uint32_t id);
};

CallbackInterface cupti_interface = {1, 2, false, true, nullptr, nullptr};

// A copy that is loaded already has the process's subscribers.
void* OpenCupti() {
  if (const char* path = secure_getenv(kCuptiVariable)) return dlopen(path, RTLD_NOW);
  for (const char* name : kCuptiLibraries) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return library;
  }
  for (const char* folder : kFolders) {
    for (const char* name : kCuptiLibraries) {
      char path[256];
      std::snprintf(path, sizeof(path), "%s%s", folder, name);
      if (void* library = dlopen(path, RTLD_NOW)) return library;
    }
  }
  return nullptr;
}

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

bool FindAll(void* library, Cupti* cupti) {
  Find(library, "cuptiSubscribe_v2", &cupti->subscribe_v2);
  Find(library, "cuptiGetDeviceId", &cupti_interface.get_device);
  Find(library, "cuptiGetContextId", &cupti_interface.get_context_id);
  return Find(library, "cuptiGetVersion", &cupti->get_version) &&
         Find(library, "cuptiSubscribe", &cupti->subscribe) &&
         Find(library, "cuptiUnsubscribe", &cupti->unsubscribe) &&
         Find(library, "cuptiEnableDomain", &cupti->enable_domain) &&
         Find(library, "cuptiEnableCallback", &cupti->enable_callback);
}

// `rival` becomes the present subscriber's name, if CUPTI tells it.
int Subscribe(const Cupti& cupti, void** subscriber, char* rival, std::size_t rival_size) {
  std::uint32_t version = 0;
  cupti.get_version(&version);
  if (cupti.subscribe_v2 == nullptr)
    return cupti.subscribe(subscriber, OnCallback, &cupti_interface);
  const bool may_share = version >= kCuptiWithOthers;
  CuptiSubscriberParameters parameters = {may_share ? sizeof(parameters) : kFirstParametersSize,
                                          "cuguest-audit",
                                          rival,
                                          rival_size,
                                          1,
                                          {}};
  int code = cupti.subscribe_v2(subscriber, OnCallback, &cupti_interface, &parameters);
  if (code == 0 || !may_share) return code;
  parameters.allows_others = 0;  // the driver may be too old for several
  return cupti.subscribe_v2(subscriber, OnCallback, &cupti_interface, &parameters);
}

bool StartCupti(char* why, std::size_t size) {
  if (secure_getenv(kCuptiVariable) == nullptr && IsSimulated()) {
    std::snprintf(why, size, "cupti: the driver is the simulated one.");
    return false;
  }
  Cupti cupti = {};
  void* library = OpenCupti();
  if (library == nullptr || !FindAll(library, &cupti)) {
    std::snprintf(why, size, "cupti: neither %s nor %s can be loaded (%s names another one).",
                  kCuptiLibraries[0], kCuptiLibraries[1], kCuptiVariable);
    return false;
  }
  void* subscriber = nullptr;
  char rival[128] = {};
  int code = Subscribe(cupti, &subscriber, rival, sizeof(rival));
  if (code == kCuptiTaken) {
    std::snprintf(why, size, "cupti: %s has subscribed, and there can be one subscriber.",
                  *rival != '\0' ? rival : "another tool");
    return false;
  }
  for (const int domain : {kDriverDomain, kRuntimeDomain, kResourceDomain}) {
    if (code == 0) code = cupti.enable_domain(1, subscriber, domain);
  }
  if (code != 0) {
    if (subscriber != nullptr) cupti.unsubscribe(subscriber);
    std::snprintf(why, size, "cupti: refused with CUptiResult %d.", code);
    return false;
  }
  for (const std::uint32_t id : kDriverQueries) {
    cupti.enable_callback(0, subscriber, kDriverDomain, id);
  }
  for (const std::uint32_t id : kRuntimeQueries) {
    cupti.enable_callback(0, subscriber, kRuntimeDomain, id);
  }
  return true;
}

constexpr const char* kCuptiBlindSpots[] = {
    "cupti: what the runtime does through the driver's private tables is seen as the runtime's "
    "call.",
    "cupti: device work in a forked child may be refused before CUPTI sees it.", nullptr};

}  // namespace

const Source kCuptiSource = {"cupti", StartCupti, kCuptiBlindSpots};

}  // namespace cuguest::audit

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library that embeds cuguest 0.1.0: the functions of test/process/fixtures/plugin.cc, which call
// the registry in the order of 0.1.0's lib/context/shared_context.cc and ending.cc, and the driver
// itself.

#include <pthread.h>

#include <cstdio>
#include <string>

#include "test/embed/release_0_1/registry.h"
#include "test/support/raw_driver.h"

#define PLUGIN_EXPORT extern "C" __attribute__((visibility("default")))

CUGUEST_BEGIN_NAMESPACE

ContextRef ContextRef::Borrow(CUcontext context) noexcept {
  ContextRef ref;
  unsigned long long id = 0;
  ref.result_ = RAW(cuCtxGetId)(context, &id);
  if (!ref.ok()) return ref;
  ref.context_ = context;
  ref.id_ = id;
  return ref;
}

CUresult ContextRef::Check() const noexcept {
  unsigned long long id = 0;
  const CUresult code = RAW(cuCtxGetId)(context_, &id);
  return code == CUDA_SUCCESS && id != id_ ? CUDA_ERROR_CONTEXT_IS_DESTROYED : code;
}

namespace internal {

unsigned ThreadNumber() noexcept {
  static std::atomic<unsigned> s_next{0};
  thread_local const unsigned s_mine = s_next.fetch_add(1, std::memory_order_relaxed);
  return s_mine;
}

namespace {

struct Destruction {
  CUcontext context;
  CUresult code;
};

void* Destroy(void* data) {
  auto* destruction = static_cast<Destruction*>(data);
  destruction->code = RAW(cuCtxDestroy)(destruction->context);
  return nullptr;
}

}  // namespace

// On a thread of its own where the context is current here.
CUresult DestroyLife(CUcontext context, unsigned long long id) noexcept {
  const ContextRef present = ContextRef::Borrow(context);
  if (!present.ok() || present.id() != id) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  CUcontext current = nullptr;
  static_cast<void>(RAW(cuCtxGetCurrent)(&current));
  Destruction destruction{context, CUDA_SUCCESS};
  pthread_t thread;
  if (current == context && pthread_create(&thread, nullptr, &Destroy, &destruction) == 0) {
    pthread_join(thread, nullptr);
  } else {
    Destroy(&destruction);
  }
  return destruction.code;
}

CUresult ReleasePrimary(CUdevice device) noexcept { return RAW(cuDevicePrimaryCtxRelease)(device); }

}  // namespace internal

namespace {

using internal::Ending;
using internal::Registry;
using internal::Unit;

struct SharedContext {
  ContextRef incarnation;
  Unit unit;
};

// Retains the primary context that `context` is: true, and its device.
bool RetainIfPrimary(CUcontext context, CUdevice* device) {
  int count = 0;
  static_cast<void>(RAW(cuDeviceGetCount)(&count));
  for (*device = 0; *device < count; ++*device) {
    unsigned flags = 0;
    int is_active = 0;
    CUcontext primary = nullptr;
    static_cast<void>(RAW(cuDevicePrimaryCtxGetState)(*device, &flags, &is_active));
    if (is_active == 0 || RAW(cuDevicePrimaryCtxRetain)(&primary, *device) != CUDA_SUCCESS)
      continue;
    if (primary == context) return true;
    static_cast<void>(RAW(cuDevicePrimaryCtxRelease)(*device));
  }
  *device = 0;
  return false;
}

SharedContext* AttachFirst(const ContextRef& context) {
  CUdevice device = 0;
  const bool is_primary = RetainIfPrimary(context.get(), &device);
  Unit unit;
  const Registry::Outcome outcome = Registry::OfProcess().JoinOrOpen(
      context, is_primary ? Ending::kReleasePrimary : Ending::kNothing, device, &unit);
  if (is_primary && outcome != Registry::Outcome::kOpened) {
    static_cast<void>(RAW(cuDevicePrimaryCtxRelease)(device));
  }
  if (unit.slot == nullptr) return nullptr;
  if (context.Check() == CUDA_SUCCESS) return new SharedContext{context, unit};
  static_cast<void>(Registry::Leave(unit));
  return nullptr;
}

SharedContext& At(void* unit) { return *static_cast<SharedContext*>(unit); }

// As 0.1.0's CheckSharing().
std::string CheckSharing() {
  const Registry* ours = &Registry::OfProcess();
  const Registry* home = nullptr;
  std::string apart;
  for (const internal::EmbeddedCopy& copy : internal::FindCopies()) {
    if (home == nullptr) home = copy.registry;
    if (copy.registry == nullptr) {
      apart += copy.path + " has registry layout " + std::to_string(copy.layout) + "; ";
    } else if (copy.registry == home && home != ours) {
      apart += copy.path + " could not be kept from being unloaded; ";
    }
  }
  return apart;
}

}  // namespace

PLUGIN_EXPORT void* PluginCreate() {
  CUcontext context = nullptr;
  using Create = CUresult (*)(CUcontext*, unsigned, CUdevice);
  if (RAW_AS(Create, "cuCtxCreate_v2")(&context, 0, 0) != CUDA_SUCCESS) return nullptr;
  CUcontext popped = nullptr;
  if (RAW(cuCtxPopCurrent)(&popped) != CUDA_SUCCESS) return nullptr;
  const ContextRef incarnation = ContextRef::Borrow(context);
  Unit unit;
  if (Registry::OfProcess().OpenNew(incarnation, 0, &unit) != Registry::Outcome::kOpened) {
    return nullptr;
  }
  return new SharedContext{incarnation, unit};
}

PLUGIN_EXPORT void* PluginAttach(CUcontext context) {
  const Unit unit = Registry::OfProcess().JoinLatest(context);
  const ContextRef incarnation = ContextRef::Borrow(context);
  const bool is_it = unit.slot != nullptr && incarnation.ok() && unit.slot->IsFor(incarnation);
  if (is_it) return new SharedContext{incarnation, unit};
  if (unit.slot != nullptr) static_cast<void>(Registry::Leave(unit));
  return incarnation.ok() ? AttachFirst(incarnation) : nullptr;
}

PLUGIN_EXPORT CUcontext PluginGet(void* unit) { return At(unit).incarnation.get(); }

PLUGIN_EXPORT unsigned long long PluginUseCount(void* unit) {
  return Registry::Count(*At(unit).unit.slot);
}

PLUGIN_EXPORT bool PluginDetach(void* unit) {
  const SharedContext leaving = At(unit);
  delete &At(unit);
  const CUresult state = leaving.incarnation.Check();
  const CUresult code = Registry::Leave(leaving.unit);
  return state == CUDA_SUCCESS && code == CUDA_SUCCESS;
}

PLUGIN_EXPORT void PluginCheckSharing(char* text, size_t size) {
  std::snprintf(text, size, "%s", CheckSharing().c_str());
}

CUGUEST_END_NAMESPACE

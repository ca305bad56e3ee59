// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/tool.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "driver/context/context.h"
#include "driver/context/stack.h"

namespace cudasim::driver {
namespace {

std::uint64_t CurrentId() {
  const Context* context = Stack::Top();
  return context != nullptr ? context->id() : 0;
}

// Constant-initialised: an entry may be called from a constructor of any library.
Tool the_tool{nullptr, CurrentId};

cudasimContext Describe(Context* context) {
  const int kind = context->is_green()     ? cudasimGreenContext
                   : context->is_primary() ? cudasimPrimaryContext
                                           : cudasimUserContext;
  return {context->handle(), context->id(), context->device(), kind};
}

}  // namespace

Tool& TheTool() { return the_tool; }

void ReportCreated(Context* context) {
  const cudasimSubscriber* subscriber = the_tool.subscriber.load(std::memory_order_acquire);
  if (subscriber == nullptr || subscriber->context_created == nullptr) return;
  const cudasimContext description = Describe(context);
  subscriber->context_created(&description);
}

void ReportDestroyed(Context* context) {
  const cudasimSubscriber* subscriber = the_tool.subscriber.load(std::memory_order_acquire);
  if (subscriber == nullptr || subscriber->context_destroyed == nullptr) return;
  const cudasimContext description = Describe(context);
  subscriber->context_destroyed(&description);
}

void LoadInjection() {
  const char* path = secure_getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr || *path == '\0') return;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  if (void* entry = dlsym(library, "InitializeInjection")) reinterpret_cast<int (*)()>(entry)();
}

}  // namespace cudasim::driver

extern "C" __attribute__((visibility("default"))) CUresult cudasimSubscribe(
    const cudasimSubscriber* subscriber) {
  auto& place = cudasim::driver::TheTool().subscriber;
  if (subscriber == nullptr) {
    place.store(nullptr, std::memory_order_release);
    return CUDA_SUCCESS;
  }
  if (subscriber->version != CUDASIM_TOOL_VERSION) return CUDA_ERROR_INVALID_VALUE;
  const cudasimSubscriber* nobody = nullptr;
  const bool is_taken = !place.compare_exchange_strong(nobody, subscriber);
  return is_taken ? CUDA_ERROR_ALREADY_ACQUIRED : CUDA_SUCCESS;
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/collect/source_callbacks.h"

#include <cstring>

#include "audit/collect/collector.h"

namespace cuguest::audit {
namespace {

CallTable driver_calls{Domain::kDriver};
CallTable runtime_calls{Domain::kRuntime};
// The calls of the driver and of the runtime that the thread is in.
__attribute__((tls_model("initial-exec"))) thread_local const CallInfo* driver_call = nullptr;
__attribute__((tls_model("initial-exec"))) thread_local const CallInfo* runtime_call = nullptr;

bool CreatesAContext(const CallInfo* info) {
  return info != nullptr && std::strcmp(info->name, "cuCtxCreate") == 0;
}

bool IsOfGreenContexts(const CallInfo* info) {
  return info != nullptr && std::strstr(info->name, "Green") != nullptr;
}

std::uint64_t CurrentAtEntry(const CallbackInterface& interface, const CallbackData& data) {
  return interface.tells_context_id ? data.context_id : Collector::IdOf(data.context);
}

// At its return the driver's call may still be told with the context that was current before. What
// these leave current, their argument says.
std::uint64_t CurrentAfter(const CallbackInterface& interface, const CallInfo& info,
                           const CallbackData& data, int result) {
  if (interface.tells_context_id) return CurrentAtEntry(interface, data);
  const bool sets = result == 0 && data.parameters != nullptr &&
                    info.rule->call_class == CallClass::kStack &&
                    (std::strcmp(info.name, "cuCtxPushCurrent") == 0 ||
                     std::strcmp(info.name, "cuCtxSetCurrent") == 0);
  const void* context = data.context;
  if (sets) std::memcpy(&context, data.parameters, sizeof(context));
  return Collector::IdOf(context);
}

void OnCall(const CallbackInterface& interface, int domain, std::uint32_t id,
            const CallbackData& data, std::uintptr_t frame) {
  const bool is_driver = domain == kDriverDomain;
  const CallInfo* info = (is_driver ? driver_calls : runtime_calls).Find(id, data.function);
  if (info == nullptr) return;
  ReportedCall call;
  call.info = info;
  call.structure = data.parameters;
  call.frame = frame;
  if (data.site == 0) {
    (is_driver ? driver_call : runtime_call) = info;
    call.context = CurrentAtEntry(interface, data);
    Collector::OnEnter(call);
    return;
  }
  (is_driver ? driver_call : runtime_call) = nullptr;
  if (data.result != nullptr) std::memcpy(&call.result, data.result, sizeof(call.result));
  call.context = CurrentAfter(interface, *info, data, call.result);
  Collector::OnLeave(call);
}

void OnResource(const CallbackInterface& interface, std::uint32_t id, const ResourceData& data,
                std::uintptr_t frame) {
  if (id == interface.context_destroyed) Collector::OnContextDestroyed(data.context);
  if (id != interface.context_created || data.context == nullptr) return;
  ReportedContext context;
  context.handle = data.context;
  std::uint32_t number = 0;
  const bool is_told =
      interface.get_context_id != nullptr && interface.get_context_id(data.context, &number) == 0;
  context.id = is_told ? number : Collector::NextId();
  context.frame = frame;
  std::uint32_t device = 0;
  if (interface.tells_device) {
    context.device = data.device;
  } else if (interface.get_device != nullptr && interface.get_device(data.context, &device) == 0) {
    context.device = static_cast<int>(device);
  }
  // Before a green context its device's primary context is told, unless that is there (CUPTI 13.0
  // on an H200, driver 580.159.04).
  context.is_green = (IsOfGreenContexts(driver_call) || IsOfGreenContexts(runtime_call)) &&
                     Collector::HasPrimary(context.device);
  context.primary = !context.is_green && !CreatesAContext(driver_call);
  Collector::OnContextCreated(context);
}

}  // namespace

void OnCallback(void* user, int domain, std::uint32_t id, const void* data) {
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const auto& interface = *static_cast<const CallbackInterface*>(user);
  if (domain == kDriverDomain || domain == kRuntimeDomain) {
    OnCall(interface, domain, id, *static_cast<const CallbackData*>(data), frame);
  } else if (domain == kResourceDomain) {
    OnResource(interface, id, *static_cast<const ResourceData*>(data), frame);
  }
}

}  // namespace cuguest::audit

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The simulated driver's callbacks for tools.

#include <dlfcn.h>
#include <stdlib.h>

#include <cstdio>

#include "audit/channel.h"
#include "audit/collect/collector.h"
#include "audit/collect/source.h"
#include "subprojects/cudasim/include/cudasim/tool.h"

namespace cuguest::audit {
namespace {

CallTable simulated_driver_calls{Domain::kDriver};
CallTable simulated_runtime_calls{Domain::kRuntime};

bool Describe(const cudasimCall* call, void* frame, ReportedCall* report) {
  CallTable& calls =
      call->domain == cudasimDriverCall ? simulated_driver_calls : simulated_runtime_calls;
  report->info = calls.Find(call->index, call->name);
  report->context = call->context;
  report->result = call->result;
  report->pointers = call->arguments;
  report->frame = reinterpret_cast<std::uintptr_t>(frame);
  return report->info != nullptr;
}

void OnEnter(const cudasimCall* call) {
  ReportedCall report;
  if (Describe(call, __builtin_frame_address(0), &report)) Collector::OnEnter(report);
}

void OnLeave(const cudasimCall* call) {
  ReportedCall report;
  if (Describe(call, __builtin_frame_address(0), &report)) Collector::OnLeave(report);
}

void OnContextCreated(const cudasimContext* context) {
  ReportedContext report;
  report.handle = context->handle;
  report.id = context->id;
  report.device = context->device;
  report.primary = context->kind == cudasimPrimaryContext;
  report.is_green = context->kind == cudasimGreenContext;
  report.frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  Collector::OnContextCreated(report);
}

void OnContextDestroyed(const cudasimContext* context) {
  Collector::OnContextDestroyed(context->handle);
}

constexpr cudasimSubscriber kSubscriber = {CUDASIM_TOOL_VERSION, OnEnter, OnLeave, OnContextCreated,
                                           OnContextDestroyed};

// Null if the driver is not cudasim.
void* FindSubscribe() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
  return driver != nullptr ? dlsym(driver, "cudasimSubscribe") : nullptr;
}

bool StartCudasim(char* why, std::size_t size) {
  void* symbol = FindSubscribe();
  if (symbol == nullptr) {
    const char* wanted = secure_getenv(kSourceVariable);
    if (wanted == nullptr || *wanted == '\0') return false;  // a driver as usual: nothing to say
    std::snprintf(why, size, "cudasim: the driver is not the simulated one.");
    return false;
  }
  const CUresult code = reinterpret_cast<decltype(&cudasimSubscribe)>(symbol)(&kSubscriber);
  if (code == CUDA_SUCCESS) return true;
  const bool is_taken = code == CUDA_ERROR_ALREADY_ACQUIRED;
  std::snprintf(why, size, "cudasim: %s.",
                is_taken ? "another tool has subscribed" : "it is of another version");
  return false;
}

constexpr const char* kCudasimBlindSpots[] = {nullptr};

}  // namespace

bool IsSimulated() { return FindSubscribe() != nullptr; }

const Source kCudasimSource = {"cudasim", StartCudasim, kCudasimBlindSpots};

}  // namespace cuguest::audit

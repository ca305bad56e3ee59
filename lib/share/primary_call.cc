// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/share/primary_call.h"

#include "lib/stack/thread_stack.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

CallOutcome PrimaryFailure(CUresult code, const char* doing, CUdevice device) {
  CallOutcome outcome = Failure(code, CallOutcome::Why::kPrimary, doing);
  outcome.device = device;
  return outcome;
}

}  // namespace

CallOutcome QueryPrimary(CUdevice device, PrimaryState* state) noexcept {
  const DriverTable* driver = nullptr;
  const CallOutcome found = GetInitializedDriver(&driver);
  if (!found.ok()) return found;
  unsigned flags = 0;
  int active = 0;
  const CUresult code =
      AskOf(device, [&] { return driver->DevicePrimaryCtxGetState(device, &flags, &active); });
  if (code != CUDA_SUCCESS) return PrimaryFailure(code, "query", device);
  *state = {active != 0, flags};
  return {};
}

CallOutcome RetainPrimary(CUdevice device, ContextRef* incarnation) noexcept {
  const DriverTable* driver = nullptr;
  const CallOutcome found = GetInitializedDriver(&driver);
  if (!found.ok()) return found;
  CUcontext context = nullptr;
  const CUresult code =
      AskOf(device, [&] { return driver->DevicePrimaryCtxRetain(&context, device); });
  if (code != CUDA_SUCCESS) return PrimaryFailure(code, "retain", device);
  LearnPrimary(device, context);
  const ContextRef retained = ContextRef::Borrow(context);
  if (!retained.ok()) {
    // Reset by somebody between the two calls: nothing that could be named was gained.
    static_cast<void>(driver->DevicePrimaryCtxRelease(device));
    return PrimaryFailure(retained.result(), "identify", device);
  }
  *incarnation = retained;
  return {};
}

CUresult ReleasePrimary(CUdevice device) noexcept {
  CUresult code = CUDA_SUCCESS;
  const DriverTable* driver = TryDriver(&code);
  if (driver != nullptr) code = driver->DevicePrimaryCtxRelease(device);
  // The process is ending, and the driver has taken everything back.
  return code == CUDA_ERROR_DEINITIALIZED ? CUDA_SUCCESS : code;
}

CUGUEST_END_INTERNAL_NAMESPACE

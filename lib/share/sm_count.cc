// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/sm_count.h"

#include "absl/strings/str_cat.h"
#include "cuguest/context_guard.h"
#include "cuguest/devices.h"
#include "cuguest/driver.h"
#include "cuguest/status.h"
#include "lib/core/driver_access.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

constexpr char kCountSms[] = "count the SMs";

}  // namespace

absl::StatusOr<SmCount> SmCountOf(Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::GetInitialized());
  int count = 0;
  const CUresult code = internal::AskOf(device.get(), [&] {
    return driver->DeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                      device.get());
  });
  CUGUEST_RETURN_IF_CUDA_ERROR(code, kCountSms, absl::StrCat("device ", device.get()));
  return SmCount{static_cast<unsigned>(count)};
}

absl::StatusOr<SmCount> SmCountOf(const ContextRef& context) {
  const ContextGuard guard(context);
  if (!guard.ok()) return ToStatus(guard);
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  if (driver->CtxGetExecAffinity != nullptr) {
    CUexecAffinityParam affinity = {};
    const CUresult code = driver->CtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT);
    if (code == CUDA_SUCCESS) return SmCount{affinity.param.smCount.val};
    // A green context has none: INVALID_CONTEXT.
    if (code != CUDA_ERROR_INVALID_CONTEXT && code != CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY) {
      return ToStatus(code, kCountSms, internal::ContextText(context.get()));
    }
  }
  if (driver->CtxGetDevResource != nullptr) {
    CUdevResource resource = {};
    CUGUEST_RETURN_IF_CUDA_ERROR(
        driver->CtxGetDevResource(context.get(), &resource, CU_DEV_RESOURCE_TYPE_SM), kCountSms,
        internal::ContextText(context.get()));
    return SmCount{resource.sm.smCount};
  }
  CUGUEST_ASSIGN_OR_RETURN(const Device device, CurrentDevice());
  return SmCountOf(device);
}

CUGUEST_END_NAMESPACE

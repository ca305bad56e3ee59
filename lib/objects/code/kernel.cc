// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/kernel.h"

#include <climits>

#include "absl/strings/str_cat.h"
#include "cuguest/status.h"
#include "lib/objects/code/code.h"
#include "lib/objects/code/image_status.h"
#include "lib/status/error_status.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE

using internal::KernelCall;
using internal::KernelText;

namespace {

constexpr auto kRelaxed = KernelCall::Captures::kRelaxed;

absl::Status NullHandle(const char* doing) {
  return internal::RefusalStatus(CUDA_ERROR_INVALID_VALUE, doing, "it is null");
}

}  // namespace

absl::StatusOr<Kernel> Kernel::Borrow(CUkernel kernel) {
  constexpr char kDoing[] = "borrow a kernel";
  if (kernel == nullptr) return NullHandle(kDoing);
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  CUGUEST_RETURN_IF_ERROR(driver->Require(&ObjectDriver::KernelGetFunction).status());
  const char* name = "";
  if (driver->KernelGetName != nullptr) {
    CUGUEST_RETURN_IF_CUDA_ERROR(driver->KernelGetName(&name, kernel), kDoing);
  }
  return std::make_shared<internal::Code>()->AddKernel(name, kernel);
}

absl::StatusOr<Kernel> Kernel::Borrow(CUfunction function, const ContextRef& context) {
  constexpr char kDoing[] = "borrow a function";
  if (function == nullptr) return NullHandle(kDoing);
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  CUGUEST_RETURN_IF_CUDA_ERROR(context.Check(), kDoing);
  const char* name = "";
  if (driver->FuncGetName != nullptr) {
    CUGUEST_RETURN_IF_CUDA_ERROR(driver->FuncGetName(&name, function), kDoing);
  }
  return internal::BorrowFunctionCode(function, context)->AddKernel(name, nullptr);
}

const std::string& Kernel::name() const noexcept {
  return state_ != nullptr ? state_->name : internal::NoName();
}

absl::StatusOr<CUfunction> Kernel::FunctionIn(const ContextRef& context) const {
  if (state_ == nullptr) return internal::NoKernel("use");
  CUGUEST_ASSIGN_OR_RETURN(const auto found, internal::FindFunction(*state_, context));
  return found.function->function;
}

absl::StatusOr<CUfunction> Kernel::FunctionIn(CUcontext context) const {
  if (state_ == nullptr) return internal::NoKernel("use");
  const ContextRef borrowed = ContextRef::Borrow(context);
  CUGUEST_RETURN_IF_CUDA_ERROR(borrowed.result(), KernelText("use", *state_), borrowed.advice());
  return FunctionIn(borrowed);
}

absl::Status Kernel::Preload(const ContextRef& context) const {
  const KernelCall call("use", *this, context, kRelaxed);
  CUGUEST_RETURN_IF_ERROR(call.status());
  const auto [driver, kernel, function] = call.here();
  if (driver.FuncLoad == nullptr) return absl::OkStatus();
  return ToStatus(driver.FuncLoad(function.function), KernelText("load", kernel));
}

// Finding the function would load it.
absl::StatusOr<bool> Kernel::IsLoaded(const ContextRef& context) const {
  if (state_ == nullptr) return internal::NoKernel("use");
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  CUGUEST_ASSIGN_OR_RETURN(const auto is_loaded, driver->Require(&ObjectDriver::FuncIsLoaded));
  CUGUEST_RETURN_IF_CUDA_ERROR(context.Check(), KernelText("use", *state_), context.advice());
  const internal::FoundFunction known = internal::KnownFunction(*state_, context);
  if (known.function == nullptr) return false;
  CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_UNLOADED;
  CUGUEST_RETURN_IF_CUDA_ERROR(is_loaded(&state, known.function->function),
                               KernelText("use", *state_));
  return state == CU_FUNCTION_LOADING_STATE_LOADED;
}

absl::StatusOr<Kernel::Attributes> Kernel::AttributesIn(const ContextRef& context) const {
  const KernelCall call("use", *this, context, kRelaxed);
  CUGUEST_RETURN_IF_ERROR(call.status());
  const auto [driver, kernel, function] = call.here();
  Kernel::Attributes found = {};
  const CUresult code = internal::AskEach(
      driver.FuncGetAttribute, function.function,
      {{CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &found.max_threads_per_block},
       {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &found.static_shared_bytes},
       {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &found.max_dynamic_shared_bytes},
       {CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &found.constant_bytes},
       {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &found.local_bytes},
       {CU_FUNC_ATTRIBUTE_NUM_REGS, &found.registers},
       {CU_FUNC_ATTRIBUTE_PTX_VERSION, &found.ptx_version},
       {CU_FUNC_ATTRIBUTE_BINARY_VERSION, &found.binary_version}});
  CUGUEST_RETURN_IF_CUDA_ERROR(code, KernelText("use", kernel));
  return found;
}

absl::Status Kernel::SetMaxDynamicSharedBytes(const ContextRef& context, std::size_t bytes) const {
  const KernelCall call("use", *this, context, kRelaxed);
  CUGUEST_RETURN_IF_ERROR(call.status());
  const auto [driver, kernel, function] = call.here();
  CUGUEST_RETURN_IF_ERROR(driver.Require(&ObjectDriver::FuncSetAttribute).status());
  CUresult code = CUDA_ERROR_INVALID_VALUE;
  if (bytes <= INT_MAX) {
    code = internal::AllowDynamicShared(driver, &function, static_cast<int>(bytes));
  }
  CUGUEST_RETURN_IF_CUDA_ERROR(
      code, KernelText("use", kernel),
      absl::StrCat(bytes, " bytes of dynamic shared memory beside ", function.static_shared_bytes,
                   " static ones; the device has ", function.device.opt_in_shared_bytes,
                   " for a block"));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Kernel::Parameter>> Kernel::ParametersIn(
    const ContextRef& context) const {
  const KernelCall call("use", *this, context, kRelaxed);
  CUGUEST_RETURN_IF_ERROR(call.status());
  const auto [driver, kernel, function] = call.here();
  CUGUEST_RETURN_IF_ERROR(driver.Require(&ObjectDriver::FuncGetParamInfo).status());
  internal::KernelParams::Places takes;
  CUGUEST_RETURN_IF_CUDA_ERROR(
      internal::AskParams(driver, function.function, function.parameters, &takes),
      KernelText("use", kernel));
  return std::vector<Kernel::Parameter>(takes.begin(), takes.end());
}

CUGUEST_END_NAMESPACE

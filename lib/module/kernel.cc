// SPDX-License-Identifier: Apache-2.0

#include "cuguest/kernel.h"

#include <climits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/error.h"
#include "lib/context/relaxed_scope.h"
#include "lib/core/error_status.h"
#include "lib/core/status_macros.h"
#include "lib/module/code.h"
#include "lib/module/image_status.h"

CUGUEST_BEGIN_NAMESPACE

using internal::FoundFunction;
using internal::FunctionInContext;
using internal::KernelState;
using internal::UseText;

namespace {

absl::Status NullHandle(const char* what) {
  return ToStatus(CUDA_ERROR_INVALID_VALUE, absl::StrCat("borrow a ", what), "it is null");
}

// What work(driver, function) returns, where `context` is current and captures are relaxed:
// a status, or something with one.
template <typename Work>
auto WithFunction(const KernelState* kernel, const ContextRef& context, const Work& work)
    -> decltype(work(std::declval<const Driver&>(), std::declval<FunctionInContext&>())) {
  if (kernel == nullptr) return internal::NoKernel("use");
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  const ContextGuard guard(context);
  if (!guard.ok()) return ToStatus(guard.result(), UseText(*kernel), guard.advice());
  const internal::RelaxedScope relaxed;
  if (relaxed.result() != CUDA_SUCCESS) return ToStatus(relaxed.result(), UseText(*kernel));
  CUGUEST_ASSIGN_OR_RETURN(const FoundFunction found, internal::FindFunction(*kernel, context));
  return work(*driver, *found.function);
}

std::string SharedText(const FunctionInContext& function, std::size_t bytes) {
  return absl::StrCat(bytes, " bytes of dynamic shared memory beside ",
                      function.static_shared_bytes, " static ones; the device has ",
                      function.device->opt_in_shared_bytes, " for a block");
}

}  // namespace

absl::StatusOr<Kernel> Kernel::Borrow(CUkernel kernel) {
  if (kernel == nullptr) return NullHandle("kernel");
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  const auto get_function = driver->Require(&Driver::KernelGetFunction);
  if (!get_function.ok()) return get_function.status();
  const char* name = "";
  if (driver->KernelGetName != nullptr) {
    const CUresult code = driver->KernelGetName(&name, kernel);
    if (code != CUDA_SUCCESS) return ToStatus(code, "borrow a kernel");
  }
  return internal::BorrowKernelCode()->AddKernel(name, kernel);
}

absl::StatusOr<Kernel> Kernel::Borrow(CUfunction function, const ContextRef& context) {
  if (function == nullptr) return NullHandle("function");
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  const CUresult life = context.Check();
  if (life != CUDA_SUCCESS) return ToStatus(life, "borrow a function");
  const char* name = "";
  if (driver->FuncGetName != nullptr) {
    const CUresult code = driver->FuncGetName(&name, function);
    if (code != CUDA_SUCCESS) return ToStatus(code, "borrow a function");
  }
  return internal::BorrowFunctionCode(function, context)->AddKernel(name, nullptr);
}

const std::string& Kernel::name() const noexcept {
  return state_ != nullptr ? state_->name : internal::NoName();
}

absl::StatusOr<CUfunction> Kernel::FunctionIn(const ContextRef& context) const {
  if (state_ == nullptr) return internal::NoKernel("use");
  CUGUEST_ASSIGN_OR_RETURN(const FoundFunction found, internal::FindFunction(*state_, context));
  return found.function->function;
}

absl::StatusOr<CUfunction> Kernel::FunctionIn(CUcontext context) const {
  if (state_ == nullptr) return internal::NoKernel("use");
  const ContextRef life = ContextRef::Borrow(context);
  if (!life.ok()) return ToStatus(life.result(), UseText(*state_), life.advice());
  return FunctionIn(life);
}

absl::Status Kernel::Preload(const ContextRef& context) const {
  return WithFunction(state_.get(), context,
                      [this](const Driver& driver, FunctionInContext& function) {
                        if (driver.FuncLoad == nullptr) return absl::OkStatus();
                        return ToStatus(driver.FuncLoad(function.function),
                                        "load for a launch: " + UseText(*state_));
                      });
}

// Finding the function would load it.
absl::StatusOr<bool> Kernel::IsLoaded(const ContextRef& context) const {
  if (state_ == nullptr) return internal::NoKernel("use");
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  const auto is_loaded = driver->Require(&Driver::FuncIsLoaded);
  if (!is_loaded.ok()) return is_loaded.status();
  const CUresult life = context.Check();
  if (life != CUDA_SUCCESS) return ToStatus(life, UseText(*state_), context.advice());
  const FoundFunction known = internal::KnownFunction(*state_, context);
  if (known.function == nullptr) return false;
  CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_UNLOADED;
  const CUresult code = (*is_loaded)(&state, known.function->function);
  if (code != CUDA_SUCCESS) return ToStatus(code, UseText(*state_));
  return state == CU_FUNCTION_LOADING_STATE_LOADED;
}

absl::StatusOr<KernelAttributes> Kernel::Attributes(const ContextRef& context) const {
  return WithFunction(
      state_.get(), context,
      [this](const Driver& driver,
             FunctionInContext& function) -> absl::StatusOr<KernelAttributes> {
        KernelAttributes attributes = {};
        const std::pair<CUfunction_attribute, int*> wanted[] = {
            {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &attributes.max_threads_per_block},
            {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &attributes.static_shared_bytes},
            {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &attributes.max_dynamic_shared_bytes},
            {CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &attributes.constant_bytes},
            {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &attributes.local_bytes},
            {CU_FUNC_ATTRIBUTE_NUM_REGS, &attributes.registers},
            {CU_FUNC_ATTRIBUTE_PTX_VERSION, &attributes.ptx_version},
            {CU_FUNC_ATTRIBUTE_BINARY_VERSION, &attributes.binary_version},
        };
        for (const auto& [attribute, value] : wanted) {
          const CUresult code = driver.FuncGetAttribute(value, attribute, function.function);
          if (code != CUDA_SUCCESS) return ToStatus(code, UseText(*state_));
        }
        return attributes;
      });
}

absl::Status Kernel::SetMaxDynamicSharedBytes(const ContextRef& context, std::size_t bytes) const {
  return WithFunction(
      state_.get(), context,
      [this, bytes](const Driver& driver, FunctionInContext& function) -> absl::Status {
        const auto set = driver.Require(&Driver::FuncSetAttribute);
        if (!set.ok()) return set.status();
        CUresult code = CUDA_ERROR_INVALID_VALUE;
        if (bytes <= INT_MAX) {
          code = (*set)(function.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                        static_cast<int>(bytes));
        }
        if (code == CUDA_SUCCESS) code = internal::AskMaxDynamicShared(driver, &function);
        return ToStatus(code, UseText(*state_), SharedText(function, bytes));
      });
}

absl::StatusOr<std::vector<KernelParameter>> Kernel::Parameters(const ContextRef& context) const {
  using Parameters = std::vector<KernelParameter>;
  return WithFunction(
      state_.get(), context,
      [this](const Driver& driver, FunctionInContext& function) -> absl::StatusOr<Parameters> {
        const auto get_info = driver.Require(&Driver::FuncGetParamInfo);
        if (!get_info.ok()) return get_info.status();
        Parameters parameters;
        for (;;) {
          KernelParameter parameter = {};
          const CUresult code =
              (*get_info)(function.function, parameters.size(), &parameter.offset, &parameter.size);
          if (code == CUDA_ERROR_INVALID_VALUE) return parameters;  // past the last
          if (code != CUDA_SUCCESS) return ToStatus(code, UseText(*state_));
          parameters.push_back(parameter);
        }
      });
}

CUGUEST_END_NAMESPACE

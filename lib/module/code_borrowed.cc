// SPDX-License-Identifier: Apache-2.0
//
// Somebody else's code, of which one kernel is known.                   tier: 3

#include "lib/module/code.h"

#include "absl/strings/str_cat.h"
#include "cuguest/error.h"
#include "cuguest/primary_context.h"
#include "lib/context/object_text.h"
#include "lib/core/error_status.h"
#include "lib/core/status_macros.h"
#include "lib/module/image_status.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

class KernelCode : public Code {
 private:
  absl::StatusOr<CUfunction> FindFunctionHere(const Driver& driver, const KernelState& kernel,
                                              const ContextRef& context,
                                              const CodeInContext& /*here*/) override {
    CUfunction function = nullptr;
    const CUresult code = driver.KernelGetFunction(&function, kernel.kernel);
    if (code == CUDA_SUCCESS) return function;
    return ToStatus(code, UseText(kernel), PlaceText(driver, context));
  }
};

// Whether the current context is a green one. Asked of a stream of our own: the question would
// end the capture of another's.
absl::StatusOr<bool> IsGreen(const Driver& driver) {
  if (driver.StreamGetGreenCtx == nullptr) return false;  // as there are none
  CUstream probe = nullptr;
  CUgreenCtx green = nullptr;
  CUresult code = driver.StreamCreate(&probe, CU_STREAM_NON_BLOCKING);
  if (code != CUDA_SUCCESS) return ToStatus(code, "ask whether a context is green");
  code = driver.StreamGetGreenCtx(probe, &green);
  const CUresult destroyed = driver.StreamDestroy(probe);
  if (code == CUDA_SUCCESS) code = destroyed;
  if (code != CUDA_SUCCESS) return ToStatus(code, "ask whether a context is green");
  return green != nullptr;
}

// Whether the current context is a green one of `primary`, in which the functions of that are
// good.
absl::StatusOr<bool> IsGreenOf(const Driver& driver, const ContextRef& primary) {
  const absl::StatusOr<bool> green = IsGreen(driver);
  if (!green.ok() || !*green) return green;
  CUdevice device = 0;
  const CUresult code = driver.CtxGetDevice(&device);
  if (code != CUDA_SUCCESS) return ToStatus(code, "ask for the device of a green context");
  // Which exists: the green one holds a reference.
  CUGUEST_ASSIGN_OR_RETURN(const PrimaryContext owner,
                           PrimaryContext::Retain(Device::Borrow(device)));
  return owner.incarnation() == primary;
}

class FunctionCode : public Code {
 public:
  FunctionCode(CUfunction function, const ContextRef& context)
      : function_(function), context_(context) {}

 private:
  absl::StatusOr<CUfunction> FindFunctionHere(const Driver& driver, const KernelState& kernel,
                                              const ContextRef& context,
                                              const CodeInContext& /*here*/) override {
    if (context == context_) return function_;
    CUGUEST_ASSIGN_OR_RETURN(const bool green, IsGreenOf(driver, context_));
    if (green) return function_;
    return ErrorStatus(
        CUDA_ERROR_INVALID_CONTEXT, UseText(kernel), ContextText(context.get()),
        absl::StrCat("it is a function of ", ContextText(context_.get()),
                     context.get() == context_.get() ? " in another of its incarnations" : "",
                     ", and good there only"));
  }

  const CUfunction function_;
  const ContextRef context_;
};

}  // namespace

std::shared_ptr<Code> BorrowKernelCode() { return std::make_shared<KernelCode>(); }

std::shared_ptr<Code> BorrowFunctionCode(CUfunction function, const ContextRef& context) {
  return std::make_shared<FunctionCode>(function, context);
}

}  // namespace internal
CUGUEST_END_NAMESPACE

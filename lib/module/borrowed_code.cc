// SPDX-License-Identifier: Apache-2.0
//
// Somebody else's code, of which one kernel is known.                   tier: 3

#include "absl/strings/str_cat.h"
#include "cuguest/error.h"
#include "lib/context/context_text.h"
#include "lib/core/error_status.h"
#include "lib/module/code.h"
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

class FunctionCode : public Code {
 public:
  FunctionCode(CUfunction function, const ContextRef& context)
      : function_(function), context_(context) {}

 private:
  absl::StatusOr<CUfunction> FindFunctionHere(const Driver& /*driver*/, const KernelState& kernel,
                                              const ContextRef& context,
                                              const CodeInContext& /*here*/) override {
    if (context == context_) return function_;
    return ErrorStatus(
        CUDA_ERROR_INVALID_CONTEXT, UseText(kernel), ContextText(context.get()),
        absl::StrCat("it is a function of ", ContextText(context_.get()),
                     context.get() == context_.get() ? " in another of its lives" : "",
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

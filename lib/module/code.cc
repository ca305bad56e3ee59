// SPDX-License-Identifier: Apache-2.0

#include "lib/module/code.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cuguest/context_guard.h"
#include "cuguest/error.h"
#include "lib/context/object_text.h"
#include "lib/context/relaxed_scope.h"
#include "lib/core/status_macros.h"
#include "lib/module/image_status.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

absl::Status NoKernel(const char* doing) {
  return absl::FailedPreconditionError(
      absl::StrCat(doing, " an empty kernel: moved from, or never set"));
}

std::string UseText(const KernelState& kernel) {
  return kernel.name.empty() ? "use a kernel" : "use kernel " + Quoted(kernel.name);
}

std::optional<Kernel> Code::KnownKernel(std::string_view name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = kernels_.find(name);
  if (known == kernels_.end()) return std::nullopt;
  return Share(known->second.get());
}

// What it keeps is allocated before the lock is held, and freed after it if another thread was
// faster.
Kernel Code::AddKernel(std::string name, CUkernel kernel) {
  auto state = std::make_unique<KernelState>();
  state->name = name;
  state->code = this;
  state->kernel = kernel;
  Kernels made;
  made.emplace(std::move(name), std::move(state));
  Kernels::node_type node = made.extract(made.begin());
  KernelState* kept = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    node.mapped()->number = static_cast<std::uint32_t>(kernels_.size());
    Kernels::insert_return_type added = kernels_.insert(std::move(node));
    kept = added.position->second.get();
    node = std::move(added.node);
  }
  return Share(kept);
}

Kernel Code::Share(KernelState* state) {
  return KernelAccess::Make(std::shared_ptr<KernelState>(shared_from_this(), state));
}

absl::StatusOr<Code::InContext> Code::Enter(const Driver& driver, const ContextRef& context,
                                            JitReport* report) {
  return contexts_.GetOrMake(
      context, [&](const ContextRef& entered) -> absl::StatusOr<CodeInContext> {
        DeviceLimits limits;
        const CUresult code = AskDeviceLimits(driver, entered.get(), &limits);
        if (code != CUDA_SUCCESS) {
          return ToStatus(code, "ask for the limits of a device", ContextText(entered.get()));
        }
        CUGUEST_ASSIGN_OR_RETURN(const CUmodule module, LoadModule(driver, entered, report));
        return CodeInContext(module, limits);
      });
}

std::uint64_t Code::RequiredBlock(const std::string& /*kernel*/) { return 0; }

absl::StatusOr<CUmodule> Code::LoadModule(const Driver& /*driver*/, const ContextRef& /*context*/,
                                          JitReport* /*report*/) {
  return nullptr;
}

absl::StatusOr<Kernel> LoadedCode::GetKernel(std::string_view name) {
  CUGUEST_RETURN_IF_ERROR(CheckName("get kernel", name));
  std::optional<Kernel> known = KnownKernel(name);
  if (known) return *std::move(known);
  std::string text(name);
  CUGUEST_ASSIGN_OR_RETURN(const CUkernel found, FindKernel(text));
  return AddKernel(std::move(text), found);
}

absl::StatusOr<FoundFunction> FindFunctionSlowly(const KernelState& kernel,
                                                 const ContextRef& context) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  const ContextGuard guard(context);
  if (!guard.ok()) return ToStatus(guard.result(), UseText(kernel), guard.advice());
  const RelaxedScope relaxed;
  if (relaxed.result() != CUDA_SUCCESS) return ToStatus(relaxed.result(), UseText(kernel));
  CUGUEST_ASSIGN_OR_RETURN(Code::InContext here, kernel.code->Enter(*driver, context, nullptr));
  const absl::StatusOr<CUfunction> function =
      kernel.code->FindFunctionHere(*driver, kernel, context, *here);
  if (!function.ok()) return function.status();
  auto found = std::make_unique<FunctionInContext>();
  found->function = *function;
  found->required_block = kernel.code->RequiredBlock(kernel.name);
  const CUresult code = AskFunctionLimits(*driver, found.get());
  if (code != CUDA_SUCCESS) return ToStatus(code, UseText(kernel), ContextText(context.get()));
  FunctionInContext* const kept = here->Keep(kernel.number, std::move(found));
  return FoundFunction{std::move(here), kept};
}

}  // namespace internal
CUGUEST_END_NAMESPACE

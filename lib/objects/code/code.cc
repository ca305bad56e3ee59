// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/objects/code/code.h"

#include "absl/strings/str_cat.h"
#include "cuguest/internal/primary.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "lib/objects/code/image_status.h"
#include "lib/status/error_status.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

// Whether the current context is a green one of `primary`, in which the functions of that are
// good.
absl::StatusOr<bool> IsGreenOf(const ObjectDriver& driver, const ContextRef& primary) {
  bool green = false;
  CUGUEST_RETURN_IF_CUDA_ERROR(AskIfGreen(&green), "ask whether a context is green");
  if (!green) return false;
  CUdevice device = 0;
  CUGUEST_RETURN_IF_CUDA_ERROR(driver.CtxGetDevice(&device),
                               "ask for the device of a green context");
  // Which exists: the green one holds a reference.
  CUGUEST_ASSIGN_OR_RETURN(const PrimaryContext owner,
                           PrimaryContext::Retain(Device::Borrow(device)));
  return owner.context() == primary;
}

// Somebody's function.
class FunctionCode : public Code {
 public:
  FunctionCode(CUfunction function, const ContextRef& context)
      : function_(function), context_(context) {}

 private:
  absl::StatusOr<CUfunction> FindFunctionHere(const ObjectDriver& driver, const KernelState& kernel,
                                              const ContextRef& context,
                                              const CodeInContext& /*here*/) override {
    if (context == context_) return function_;
    CUGUEST_ASSIGN_OR_RETURN(const bool green, IsGreenOf(driver, context_));
    if (green) return function_;
    return ErrorStatus(
        CUDA_ERROR_INVALID_CONTEXT, KernelText("use", kernel), ContextText(context.get()),
        absl::StrCat("it is a function of ", ContextText(context_.get()),
                     context.get() == context_.get() ? " in another of its incarnations" : "",
                     ", and good there only"));
  }

  const CUfunction function_;
  const ContextRef context_;
};

}  // namespace

absl::Status NoKernel(const char* doing) {
  return absl::FailedPreconditionError(
      absl::StrCat(doing, " an empty kernel: moved from, or never set"));
}

std::string KernelText(const char* doing, const KernelState& kernel) {
  if (kernel.name.empty()) return absl::StrCat(doing, " a borrowed kernel");
  return absl::StrCat(doing, " kernel ", Quoted(kernel.name));
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

absl::StatusOr<Code::InContext> Code::Enter(const ObjectDriver& driver, const ContextRef& context,
                                            JitReport* report) {
  return contexts_.GetOrMake(
      context, [&](const ContextRef& entered) -> absl::StatusOr<CodeInContext> {
        DeviceLimits limits;
        CUGUEST_RETURN_IF_CUDA_ERROR(AskDeviceLimits(driver, entered.get(), &limits),
                                     "ask for the limits of a device", ContextText(entered.get()));
        CodeInContext here(limits);  // before there is a module to own
        CUGUEST_RETURN_IF_ERROR(LoadModule(driver, entered, report, &here));
        return here;
      });
}

absl::StatusOr<CUfunction> Code::FindFunctionHere(const ObjectDriver& driver,
                                                  const KernelState& kernel,
                                                  const ContextRef& context,
                                                  const CodeInContext& /*here*/) {
  CUfunction function = nullptr;
  CUGUEST_RETURN_IF_CUDA_ERROR(driver.KernelGetFunction(&function, kernel.kernel),
                               KernelText("use", kernel), PlaceText(driver, context));
  return function;
}

std::shared_ptr<Code> BorrowFunctionCode(CUfunction function, const ContextRef& context) {
  return std::make_shared<FunctionCode>(function, context);
}

absl::StatusOr<Kernel> LoadedCode::GetKernel(std::string_view name) {
  CUGUEST_RETURN_IF_ERROR(CheckName("get kernel", name));
  std::optional<Kernel> known = KnownKernel(name);
  if (known) return *std::move(known);
  std::string text(name);
  CUGUEST_ASSIGN_OR_RETURN(const CUkernel found, FindKernel(text));
  return AddKernel(std::move(text), found);
}

// The image is read where nothing is locked, and its bytes and what is not kept are freed there.
KernelInImage LoadedCode::InImage(const std::string& kernel) {
  std::optional<CodeImage> image;
  std::map<std::string, KernelInImage> read;
  std::unique_lock<std::mutex> lock(image_mutex_);
  image = unread_;
  if (image) {
    lock.unlock();
    read = ImageAccess::Kernels(*image);
    lock.lock();
    if (unread_) in_image_.swap(read);
    unread_.reset();
  }
  const auto found = in_image_.find(kernel);
  return found != in_image_.end() ? found->second : KernelInImage();
}

absl::StatusOr<FoundFunction> FindFunctionSlowly(const KernelState& kernel,
                                                 const ContextRef& context) {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  const ContextGuard guard(context);
  CUGUEST_RETURN_IF_CUDA_ERROR(guard.result(), KernelText("use", kernel), guard.advice());
  const RelaxedScope relaxed;
  CUGUEST_RETURN_IF_CUDA_ERROR(relaxed.result(), KernelText("use", kernel));
  CUGUEST_ASSIGN_OR_RETURN(Code::InContext here, kernel.code->Enter(*driver, context, nullptr));
  FunctionInContext found;
  CUGUEST_ASSIGN_OR_RETURN(found.function,
                           kernel.code->FindFunctionHere(*driver, kernel, context, *here));
  const KernelInImage in_image = kernel.code->InImage(kernel.name);
  found.required_block = in_image.required_block;
  found.parameters = in_image.parameters;
  CUGUEST_RETURN_IF_CUDA_ERROR(AskFunctionLimits(*driver, &found), KernelText("use", kernel),
                               ContextText(context.get()));
  FunctionInContext* const kept = here->Keep(kernel.number, found);
  return FoundFunction{std::move(here), kept};
}

KernelCall::KernelCall(const char* doing, const Kernel& kernel, const ContextRef& context,
                       Captures captures)
    : kernel_(KernelAccess::Of(kernel)), status_(Enter(doing, context, captures)) {}

absl::Status KernelCall::Enter(const char* doing, const ContextRef& context, Captures captures) {
  if (kernel_ == nullptr) return NoKernel(doing);
  CUGUEST_ASSIGN_OR_RETURN(driver_, ObjectDriver::Get());
  guard_.emplace(context, GuardMode::kElide, Location::Here());
  CUGUEST_RETURN_IF_CUDA_ERROR(guard_->result(), KernelText(doing, *kernel_), guard_->advice());
  if (captures == Captures::kRelaxed) {
    relaxed_.emplace();
    CUGUEST_RETURN_IF_CUDA_ERROR(relaxed_->result(), KernelText(doing, *kernel_));
  }
  CUGUEST_ASSIGN_OR_RETURN(found_, FindFunction(*kernel_, context));
  return absl::OkStatus();
}

CUGUEST_END_INTERNAL_NAMESPACE

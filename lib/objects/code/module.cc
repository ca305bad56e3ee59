// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/module.h"

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuguest/context_guard.h"
#include "cuguest/objects/driver.h"
#include "cuguest/status.h"
#include "lib/guard/relaxed_scope.h"
#include "lib/objects/code/code.h"
#include "lib/objects/code/image_status.h"
#include "lib/objects/code/jit.h"
#include "lib/share/owed.h"
#include "lib/status/error_status.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE

using internal::LoadedCode;
using internal::MemoryRange;
using internal::Quoted;
using internal::RelaxedScope;

namespace {

using KnownContexts = LoadedCode::Contexts;

// A driver has all of them or none.
bool HasLibraries(const ObjectDriver& driver) {
  return driver.LibraryLoadData != nullptr && driver.LibraryUnload != nullptr &&
         driver.LibraryGetKernel != nullptr && driver.LibraryGetModule != nullptr &&
         driver.LibraryGetGlobal != nullptr && driver.KernelGetFunction != nullptr;
}

absl::Status CheckLoadable(const CodeImage& image) {
  const CodeImage::Kind kind = image.kind();
  if (kind == CodeImage::Kind::kPtx || kind == CodeImage::Kind::kCubin ||
      kind == CodeImage::Kind::kFatbin) {
    return absl::OkStatus();
  }
  return internal::ErrorStatus(CUDA_ERROR_INVALID_IMAGE, internal::LoadText(image), "",
                               "it is not finished code: a Linker makes an image of it that "
                               "can be loaded");
}

absl::StatusOr<std::shared_ptr<LoadedCode>> LoadCode(const CodeImage& image,
                                                     const JitOptions& options, JitReport* report) {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::GetInitialized());
  internal::EndOwed();
  CUGUEST_RETURN_IF_ERROR(CheckLoadable(image));
  CUGUEST_RETURN_IF_ERROR(internal::CheckJitOptions(options));
  CUGUEST_RETURN_IF_ERROR(internal::CheckDriverKnows(options, driver->version));
  const RelaxedScope relaxed;
  CUGUEST_RETURN_IF_CUDA_ERROR(relaxed.result(), internal::LoadText(image));
  if (!HasLibraries(*driver)) return internal::MakeModules(image, options);
  return internal::LoadLibrary(*driver, image, options, report);
}

absl::Status NoModule(std::string_view doing) {
  return absl::FailedPreconditionError(
      absl::StrCat(std::string(doing), ": the Module is empty, or unloaded"));
}

absl::Status CheckElements(std::string_view doing, const internal::Variable& variable,
                           const internal::ElementType& type) {
  const char* why = nullptr;
  if (variable.bytes % type.size != 0) why = "size";
  if (variable.pointer % type.alignment != 0) why = "alignment";
  if (why == nullptr) return absl::OkStatus();
  return internal::ErrorStatus(
      CUDA_ERROR_INVALID_VALUE, doing, "",
      absl::StrCat("it has ", variable.bytes, " bytes at 0x", absl::Hex(variable.pointer),
                   ", which by ", why, " are no elements of ", type.size, " bytes, aligned to ",
                   type.alignment));
}

// The context that the driver counts a variable as the memory of: `context`, or the primary one
// of a green `context`.
absl::StatusOr<ContextRef> OwnerOf(const ObjectDriver& driver, CUdeviceptr variable,
                                   const ContextRef& context) {
  constexpr char kDoing[] = "ask whose memory a variable is";
  CUcontext owner = nullptr;
  CUGUEST_RETURN_IF_CUDA_ERROR(
      driver.PointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, variable), kDoing);
  if (owner == nullptr || owner == context.get()) return context;
  ContextRef found = ContextRef::Borrow(owner);
  CUGUEST_RETURN_IF_CUDA_ERROR(found.result(), kDoing, found.advice());
  return found;
}

// What is kept, or else made and kept, unless another thread was first; `keep` is called by the
// thread whose own is kept.
template <typename T, typename Make, typename Keep>
absl::StatusOr<const T*> GetOnce(std::atomic<const T*>* kept, const Make& make, const Keep& keep) {
  const T* there = kept->load(std::memory_order_acquire);
  if (there != nullptr) return there;
  CUGUEST_ASSIGN_OR_RETURN(T made, make());
  auto mine = std::make_unique<const T>(std::move(made));
  const bool is_first = kept->compare_exchange_strong(there, mine.get(), std::memory_order_acq_rel,
                                                      std::memory_order_acquire);
  if (!is_first) return there;
  keep();
  return mine.release();
}

// Unloads code of which `kernels` Kernels are somebody's, who must be none.
absl::Status Unload(LoadedCode* code, long kernels, KnownContexts contexts) {
  const std::string doing = "unload " + Quoted(code->name());
  if (kernels > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(doing, ": ", kernels, " Kernels of it are still there"));
  }
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver,
                           ObjectDriver::GetInitialized());  // no forked child
  const RelaxedScope relaxed;
  const CUresult result = relaxed.ok() ? code->Unload(*driver, contexts) : relaxed.result();
  if (result != CUDA_ERROR_DEINITIALIZED) CUGUEST_RETURN_IF_CUDA_ERROR(result, doing);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Module> Module::Load(const CodeImage& image, const JitOptions& options) {
  CUGUEST_ASSIGN_OR_RETURN(std::shared_ptr<LoadedCode> code, LoadCode(image, options, nullptr));
  return Module(std::move(code));
}

absl::StatusOr<Module> Module::LoadIn(const ContextRef& context, const CodeImage& image,
                                      const JitOptions& options, JitReport* report) {
  if (report != nullptr) *report = JitReport();
  const ContextGuard guard(context);
  CUGUEST_RETURN_IF_CUDA_ERROR(guard.result(), internal::LoadText(image), guard.advice());
  CUGUEST_ASSIGN_OR_RETURN(std::shared_ptr<LoadedCode> code, LoadCode(image, options, report));
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  const RelaxedScope relaxed;
  CUGUEST_RETURN_IF_CUDA_ERROR(relaxed.result(), internal::LoadText(image));
  absl::Status loaded = code->LoadNow(*driver, context, report);
  if (!loaded.ok()) {
    static_cast<void>(code->Unload(*driver, KnownContexts::kExist));  // while captures are relaxed
    return loaded;
  }
  return Module(std::move(code));
}

absl::StatusOr<const Module*> Module::Once::Get() {
  return GetOnce(
      &loaded_,
      [this] {
        return ptx_.data() != nullptr ? Module::Load(ptx_, name_) : Module::Load(bytes_, name_);
      },
      [] {});
}

absl::Status Module::Once::Close() {
  internal::EndOwed();
  const Module* const module = loaded_.load(std::memory_order_acquire);
  if (module == nullptr) return absl::OkStatus();
  long kernels = 0;
  for (Kernel::Once* found = found_.load(std::memory_order_acquire); found != nullptr;
       found = found->next_) {
    ++kernels;
  }
  const absl::Status unloaded =
      Unload(module->code_.get(), module->code_.use_count() - 1 - kernels, KnownContexts::kUnknown);
  // A forked child has nothing to unload.
  if (!unloaded.ok() && CodeOf(unloaded) != CUDA_ERROR_NOT_INITIALIZED) return unloaded;
  Kernel::Once* found = found_.exchange(nullptr, std::memory_order_relaxed);
  while (found != nullptr) {
    Kernel::Once* const next = std::exchange(found->next_, nullptr);
    delete found->found_.exchange(nullptr, std::memory_order_relaxed);
    found = next;
  }
  delete loaded_.exchange(nullptr, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::StatusOr<const Kernel*> Kernel::Once::Get() {
  const auto find = [this]() -> absl::StatusOr<Kernel> {
    CUGUEST_ASSIGN_OR_RETURN(const Module* const code, code_.Get());
    return code->GetKernel(name_);
  };
  const auto remember = [this] {
    next_ = code_.found_.load(std::memory_order_relaxed);
    while (!code_.found_.compare_exchange_weak(next_, this, std::memory_order_release,
                                               std::memory_order_relaxed)) {
    }
  };
  return GetOnce(&found_, find, remember);
}

absl::StatusOr<Module> Module::Load(HostSpan<const unsigned char> bytes, std::string_view name,
                                    const JitOptions& options) {
  CUGUEST_ASSIGN_OR_RETURN(const CodeImage image, CodeImage::Borrow(bytes, name));
  return Load(image, options);
}

absl::StatusOr<Module> Module::LoadIn(const ContextRef& context,
                                      HostSpan<const unsigned char> bytes, std::string_view name,
                                      const JitOptions& options, JitReport* report) {
  if (report != nullptr) *report = JitReport();
  CUGUEST_ASSIGN_OR_RETURN(const CodeImage image, CodeImage::Borrow(bytes, name));
  return LoadIn(context, image, options, report);
}

absl::StatusOr<Module> Module::Load(std::string_view ptx, std::string_view name,
                                    const JitOptions& options) {
  CUGUEST_ASSIGN_OR_RETURN(const CodeImage image, CodeImage::FromPtx(ptx, name));
  return Load(image, options);
}

absl::StatusOr<Module> Module::LoadIn(const ContextRef& context, std::string_view ptx,
                                      std::string_view name, const JitOptions& options,
                                      JitReport* report) {
  if (report != nullptr) *report = JitReport();
  CUGUEST_ASSIGN_OR_RETURN(const CodeImage image, CodeImage::FromPtx(ptx, name));
  return LoadIn(context, image, options, report);
}

const std::string& Module::name() const noexcept {
  return code_ != nullptr ? code_->name() : internal::NoName();
}

absl::StatusOr<Kernel> Module::GetKernel(std::string_view name) const {
  if (code_ == nullptr) return NoModule("get kernel " + Quoted(name));
  // No forked child, where another thread of the parent's may have had the lock.
  CUGUEST_RETURN_IF_ERROR(ObjectDriver::GetInitialized().status());
  std::optional<Kernel> known = code_->KnownKernel(name);
  if (known) return *std::move(known);
  const RelaxedScope relaxed;
  CUGUEST_RETURN_IF_CUDA_ERROR(relaxed.result(), "get a kernel");
  return code_->GetKernel(name);
}

absl::StatusOr<std::vector<std::string>> Module::KernelNames() const {
  if (code_ == nullptr) return NoModule("list the kernels");
  const RelaxedScope relaxed;
  CUGUEST_RETURN_IF_CUDA_ERROR(relaxed.result(), "list the kernels");
  return code_->KernelNames();
}

absl::StatusOr<MemoryRange> Module::FindGlobal(const ContextRef& context, std::string_view name,
                                               const internal::ElementType& type) const {
  if (code_ == nullptr) return NoModule("find variable " + Quoted(name));
  const std::string doing = internal::FindVariableText(name, code_->name());
  CUGUEST_RETURN_IF_ERROR(internal::CheckName(doing, name));
  const ContextGuard guard(context);
  CUGUEST_RETURN_IF_CUDA_ERROR(guard.result(), doing, guard.advice());
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  const RelaxedScope relaxed;
  CUGUEST_RETURN_IF_CUDA_ERROR(relaxed.result(), doing);
  CUGUEST_ASSIGN_OR_RETURN(const internal::Variable variable,
                           code_->FindVariable(*driver, context, std::string(name)));
  CUGUEST_RETURN_IF_ERROR(CheckElements(doing, variable, type));
  CUdevice device = 0;
  CUGUEST_RETURN_IF_CUDA_ERROR(driver->CtxGetDevice(&device), doing);
  CUGUEST_ASSIGN_OR_RETURN(ContextRef owner, OwnerOf(*driver, variable.pointer, context));
  return MemoryRange{variable.pointer, variable.bytes, owner, Device::Borrow(device)};
}

absl::Status Module::Preload(const ContextRef& context) const {
  CUGUEST_ASSIGN_OR_RETURN(const std::vector<std::string> names, KernelNames());
  const ContextGuard guard(context);  // so that those of the kernels have nothing to do
  CUGUEST_RETURN_IF_CUDA_ERROR(guard.result(), "load all kernels", guard.advice());
  for (const std::string& name : names) {
    CUGUEST_ASSIGN_OR_RETURN(const Kernel kernel, GetKernel(name));
    CUGUEST_RETURN_IF_ERROR(kernel.Preload(context));
  }
  return absl::OkStatus();
}

void Module::ForgetDestroyed(const ContextRef& context) const {
  if (code_ != nullptr) code_->ForgetDestroyed(context);
}

absl::Status Module::Release() {
  if (code_ == nullptr) return absl::OkStatus();
  CUGUEST_RETURN_IF_ERROR(Unload(code_.get(), code_.use_count() - 1, KnownContexts::kExist));
  code_.reset();
  return absl::OkStatus();
}

absl::StatusOr<Module::LoadingMode> GetLoadingMode() {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  CUGUEST_ASSIGN_OR_RETURN(const auto get_mode,
                           driver->Require(&ObjectDriver::ModuleGetLoadingMode));
  CUmoduleLoadingMode mode = CU_MODULE_EAGER_LOADING;
  CUGUEST_RETURN_IF_CUDA_ERROR(get_mode(&mode), "ask for the loading mode");
  return mode == CU_MODULE_LAZY_LOADING ? Module::LoadingMode::kLazy : Module::LoadingMode::kEager;
}

CUGUEST_END_NAMESPACE

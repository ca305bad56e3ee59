// SPDX-License-Identifier: Apache-2.0
//
// Code as a library of the driver.                                      tier: 3

#include "lib/module/code.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cuguest/error.h"
#include "lib/context/relaxed_scope.h"
#include "lib/module/image_status.h"
#include "lib/module/jit.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

class LibraryCode : public LoadedCode {
 public:
  LibraryCode(const Driver& driver, const CodeImage& image, std::unique_ptr<JitCall> jit,
              CUlibrary library)
      : LoadedCode(image),
        driver_(driver),
        image_(CanEnumerate() ? std::nullopt : std::make_optional(image)),
        jit_(std::move(jit)),
        library_(library) {}
  ~LibraryCode() override {
    const RelaxedScope relaxed;
    if (relaxed.result() == CUDA_SUCCESS) static_cast<void>(Unload(driver_));
  }

  // What the driver thinks of the image.
  CUresult Check() const;

  absl::StatusOr<std::vector<std::string>> KernelNames() override;
  absl::Status LoadNow(const Driver& driver, const ContextRef& context, JitReport* report) override;
  absl::StatusOr<Variable> FindVariable(const Driver& driver, const ContextRef& context,
                                        const std::string& name) override;
  CUresult Unload(const Driver& driver) override;

 private:
  absl::StatusOr<CUkernel> FindKernel(const std::string& name) override;
  absl::StatusOr<CUfunction> FindFunctionHere(const Driver& driver, const KernelState& kernel,
                                              const ContextRef& context,
                                              const CodeInContext& here) override;
  bool CanEnumerate() const {
    return driver_.LibraryGetKernelCount != nullptr && driver_.LibraryEnumerateKernels != nullptr &&
           driver_.KernelGetName != nullptr;
  }
  CUresult Enumerate(std::vector<std::string>* names) const;

  const Driver& driver_;
  const std::optional<CodeImage> image_;  // where the driver cannot list the kernels
  // Written by the driver while it loads; no document says that it is not later.
  const std::unique_ptr<JitCall> jit_;
  CUlibrary library_;  // nullptr once it is unloaded
};

// It takes any, and says so when it is asked for something: for whatever kernel, without a
// context.
CUresult LibraryCode::Check() const {
  CUkernel none = nullptr;
  const CUresult code = driver_.LibraryGetKernel(&none, library_, "no kernel has this name");
  return code == CUDA_ERROR_NOT_FOUND ? CUDA_SUCCESS : code;
}

CUresult LibraryCode::Enumerate(std::vector<std::string>* names) const {
  unsigned count = 0;
  CUresult code = driver_.LibraryGetKernelCount(&count, library_);
  std::vector<CUkernel> kernels(count);
  if (code == CUDA_SUCCESS && count > 0) {
    code = driver_.LibraryEnumerateKernels(kernels.data(), count, library_);
  }
  for (std::size_t i = 0; code == CUDA_SUCCESS && i < kernels.size(); ++i) {
    const char* name = nullptr;
    code = driver_.KernelGetName(&name, kernels[i]);
    if (code == CUDA_SUCCESS) names->emplace_back(name);
  }
  std::sort(names->begin(), names->end());
  return code;
}

absl::StatusOr<std::vector<std::string>> LibraryCode::KernelNames() {
  if (image_) return ReadableNames(*image_);
  std::vector<std::string> names;
  const CUresult code = Enumerate(&names);
  if (code != CUDA_SUCCESS) return ToStatus(code, "list the kernels of " + Quoted(name()));
  return names;
}

absl::Status LibraryCode::LoadNow(const Driver& driver, const ContextRef& context,
                                  JitReport* report) {
  CUmodule module = nullptr;
  const CUresult code = driver.LibraryGetModule(&module, library_);
  if (report != nullptr) *report = jit_->Report();
  if (code == CUDA_SUCCESS) return absl::OkStatus();
  return CodeStatus(code, "load " + Quoted(name()), PlaceText(driver, context), jit_->error_log());
}

absl::StatusOr<Variable> LibraryCode::FindVariable(const Driver& driver, const ContextRef& context,
                                                   const std::string& name) {
  Variable variable;
  const CUresult code =
      driver.LibraryGetGlobal(&variable.pointer, &variable.bytes, library_, name.c_str());
  if (code == CUDA_SUCCESS) return variable;
  return ToStatus(code, FindVariableText(name, this->name()), PlaceText(driver, context));
}

CUresult LibraryCode::Unload(const Driver& driver) {
  if (library_ == nullptr) return CUDA_SUCCESS;
  const CUresult code = driver.LibraryUnload(library_);
  if (code == CUDA_SUCCESS) library_ = nullptr;
  return code;
}

absl::StatusOr<CUkernel> LibraryCode::FindKernel(const std::string& name) {
  CUkernel kernel = nullptr;
  const CUresult code = driver_.LibraryGetKernel(&kernel, library_, name.c_str());
  if (code == CUDA_SUCCESS) return kernel;
  if (code != CUDA_ERROR_NOT_FOUND) {
    return ToStatus(code, "get kernel " + Quoted(name), "of " + Quoted(this->name()));
  }
  const absl::StatusOr<std::vector<std::string>> names = KernelNames();
  return NoSuchKernel(name, this->name(), names.ok() ? *names : std::vector<std::string>());
}

absl::StatusOr<CUfunction> LibraryCode::FindFunctionHere(const Driver& driver,
                                                         const KernelState& kernel,
                                                         const ContextRef& context,
                                                         const CodeInContext& /*here*/) {
  CUfunction function = nullptr;
  const CUresult code = driver.KernelGetFunction(&function, kernel.kernel);
  if (code == CUDA_SUCCESS) return function;
  return CodeStatus(code, UseText(kernel) + " of " + Quoted(name()), PlaceText(driver, context),
                    jit_->error_log());
}

}  // namespace

absl::StatusOr<std::shared_ptr<LoadedCode>> LoadLibrary(const Driver& driver,
                                                        const CodeImage& image,
                                                        const JitOptions& options,
                                                        JitReport* report) {
  auto jit = std::make_unique<JitCall>(options, driver.version);
  CUlibrary library = nullptr;
  CUresult code = LoadWithLogs(
      jit.get(),
      [&] {
        return driver.LibraryLoadData(&library, image.bytes().data(), jit->names(), jit->values(),
                                      jit->count(), nullptr, nullptr, 0);
      },
      [&] { static_cast<void>(driver.LibraryUnload(library)); });
  if (report != nullptr) *report = jit->Report();
  if (code != CUDA_SUCCESS) return CodeStatus(code, LoadText(image), "", jit->error_log());
  const std::string log(jit->error_log());
  const auto loaded = std::make_shared<LibraryCode>(driver, image, std::move(jit), library);
  code = loaded->Check();
  if (code != CUDA_SUCCESS) return CodeStatus(code, LoadText(image), "", log);
  return std::shared_ptr<LoadedCode>(loaded);
}

}  // namespace internal
CUGUEST_END_NAMESPACE

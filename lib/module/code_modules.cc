// SPDX-License-Identifier: Apache-2.0
//
// Code as a module for each context, of a driver without libraries.     tier: 3

#include "lib/module/code.h"

#include <algorithm>
#include <utility>

#include "cuguest/error.h"
#include "lib/core/status_macros.h"
#include "lib/module/image_status.h"
#include "lib/module/jit.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

class ModuleCode : public LoadedCode {
 public:
  ModuleCode(const CodeImage& image, const JitOptions& options)
      : LoadedCode(image), image_(image), options_(options) {}

  absl::StatusOr<std::vector<std::string>> KernelNames() override { return ReadableNames(image_); }
  absl::Status LoadNow(const Driver& driver, const ContextRef& context,
                       JitReport* report) override {
    return Enter(driver, context, report).status();
  }
  absl::StatusOr<Variable> FindVariable(const Driver& driver, const ContextRef& context,
                                        const std::string& name) override;
  // The module of each context is a value of the PerContext.
  CUresult Unload(const Driver& /*driver*/) override {
    LeaveAll();
    return CUDA_SUCCESS;
  }

 private:
  absl::StatusOr<CUkernel> FindKernel(const std::string& name) override;
  absl::StatusOr<CUmodule> LoadModule(const Driver& driver, const ContextRef& context,
                                      JitReport* report) override;
  absl::StatusOr<CUfunction> FindFunctionHere(const Driver& driver, const KernelState& kernel,
                                              const ContextRef& context,
                                              const CodeInContext& here) override;

  const CodeImage image_;
  const JitOptions options_;
};

absl::StatusOr<Variable> ModuleCode::FindVariable(const Driver& driver, const ContextRef& context,
                                                  const std::string& name) {
  CUGUEST_ASSIGN_OR_RETURN(const InContext here, Enter(driver, context, nullptr));
  Variable variable;
  const CUresult code =
      driver.ModuleGetGlobal(&variable.pointer, &variable.bytes, here->module(), name.c_str());
  if (code == CUDA_SUCCESS) return variable;
  return ToStatus(code, FindVariableText(name, this->name()), PlaceText(driver, context));
}

absl::StatusOr<CUkernel> ModuleCode::FindKernel(const std::string& name) {
  const std::vector<std::string>& names = image_.kernel_names();
  if (!image_.names_all_kernels() || std::binary_search(names.begin(), names.end(), name)) {
    return nullptr;
  }
  return NoSuchKernel(name, this->name(), names);
}

absl::StatusOr<CUmodule> ModuleCode::LoadModule(const Driver& driver, const ContextRef& context,
                                                JitReport* report) {
  JitCall jit(options_, driver.version);
  CUmodule module = nullptr;
  const CUresult code = LoadWithLogs(
      &jit,
      [&] {
        return driver.ModuleLoadDataEx(&module, image_.bytes().data(), jit.count(), jit.names(),
                                       jit.values());
      },
      [&] { static_cast<void>(driver.ModuleUnload(module)); });
  if (report != nullptr) *report = jit.Report();
  if (code == CUDA_SUCCESS) return module;
  return CodeStatus(code, LoadText(image_), PlaceText(driver, context), jit.error_log());
}

absl::StatusOr<CUfunction> ModuleCode::FindFunctionHere(const Driver& driver,
                                                        const KernelState& kernel,
                                                        const ContextRef& context,
                                                        const CodeInContext& here) {
  CUfunction function = nullptr;
  const CUresult code = driver.ModuleGetFunction(&function, here.module(), kernel.name.c_str());
  if (code == CUDA_SUCCESS) return function;
  if (code == CUDA_ERROR_NOT_FOUND) {
    return NoSuchKernel(kernel.name, name(), image_.kernel_names());
  }
  return ToStatus(code, UseText(kernel) + " of " + Quoted(name()), PlaceText(driver, context));
}

}  // namespace

std::shared_ptr<LoadedCode> MakeModules(const CodeImage& image, const JitOptions& options) {
  return std::make_shared<ModuleCode>(image, options);
}

}  // namespace internal
CUGUEST_END_NAMESPACE

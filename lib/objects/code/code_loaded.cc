// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code of a Module: a code library, or a module for each context of a driver without code
// libraries.                                                            tier: 3

#include "lib/objects/code/code.h"

#include <algorithm>

#include "cuguest/status.h"
#include "lib/objects/code/image_status.h"
#include "lib/objects/code/jit.h"
#include "lib/share/owed.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

class LibraryCode : public LoadedCode {
 public:
  // Not loaded yet.
  LibraryCode(const ObjectDriver& driver, const CodeImage& image, const JitOptions& options)
      : LoadedCode(image),
        driver_(driver),
        image_(CanEnumerate() ? std::nullopt : std::make_optional(image)),
        jit_(options, driver.version) {}
  ~LibraryCode() override {
    struct Owned {
      const ObjectDriver& driver;
      CUlibrary library;
    };
    constexpr auto kUnload = [](Owned& owned) noexcept -> CUresult {
      if (owned.library == nullptr) return CUDA_SUCCESS;
      return CallInRelaxedScope([&] { return owned.driver.LibraryUnload(owned.library); });
    };
    Owned owned{driver_, library_};
    EndOrOwe(owned, "a Module", kUnload);
  }

  absl::Status Load(const CodeImage& image, JitReport* report) {
    CUresult code = LoadWithLogs(
        &jit_,
        [&] {
          CUlibrary library = nullptr;
          const CUresult loaded =
              driver_.LibraryLoadData(&library, image.bytes().data(), jit_.names(), jit_.values(),
                                      jit_.count(), nullptr, nullptr, 0);
          if (loaded == CUDA_SUCCESS) library_ = library;
          return loaded;
        },
        [&] { static_cast<void>(UnloadLibrary()); });
    if (report != nullptr) *report = jit_.Report();
    if (code == CUDA_SUCCESS) code = Check(image);
    targets_ = TargetsText(image);
    if (code == CUDA_SUCCESS) return absl::OkStatus();
    absl::Status status = OfImage(code, LoadText(image), DevicesText(driver_));
    static_cast<void>(UnloadLibrary());  // while captures are relaxed
    return status;
  }

  // What the driver thinks of the image. It takes any, and says so when it is asked for something:
  // for whatever kernel, without a context. For one that it has, if any can be read off it: asking
  // for another is a call that fails.
  CUresult Check(const CodeImage& image) const {
    const std::vector<std::string>& names = image.kernel_names();
    CUkernel kernel = nullptr;
    const CUresult code = driver_.LibraryGetKernel(
        &kernel, library_, names.empty() ? "no kernel has this name" : names.front().c_str());
    return code == CUDA_ERROR_NOT_FOUND ? CUDA_SUCCESS : code;
  }

  absl::StatusOr<std::vector<std::string>> KernelNames() override {
    if (image_) return ReadableNames(*image_);
    const std::string doing = "list the kernels of " + Quoted(name());
    unsigned count = 0;
    CUGUEST_RETURN_IF_CUDA_ERROR(driver_.LibraryGetKernelCount(&count, library_), doing);
    std::vector<CUkernel> kernels(count);
    if (count > 0) {
      CUGUEST_RETURN_IF_CUDA_ERROR(driver_.LibraryEnumerateKernels(kernels.data(), count, library_),
                                   doing);
    }
    std::vector<std::string> names;
    for (const CUkernel kernel : kernels) {
      const char* name = nullptr;
      CUGUEST_RETURN_IF_CUDA_ERROR(driver_.KernelGetName(&name, kernel), doing);
      names.emplace_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::Status LoadNow(const ObjectDriver& driver, const ContextRef& context,
                       JitReport* report) override {
    CUmodule module = nullptr;
    const CUresult code = driver.LibraryGetModule(&module, library_);
    if (report != nullptr) *report = jit_.Report();
    if (code == CUDA_SUCCESS) return absl::OkStatus();
    return OfImage(code, "load " + Quoted(name()), PlaceText(driver, context));
  }

  absl::StatusOr<Variable> FindVariable(const ObjectDriver& driver, const ContextRef& context,
                                        const std::string& name) override {
    Variable found;
    const CUresult code =
        driver.LibraryGetGlobal(&found.pointer, &found.bytes, library_, name.c_str());
    if (code == CUDA_SUCCESS) return found;
    return OfImage(code, FindVariableText(name, this->name()), PlaceText(driver, context));
  }

  // The driver does it for each context, and knows which exist.
  CUresult Unload(const ObjectDriver& /*driver*/, Contexts /*contexts*/) override {
    return UnloadLibrary();
  }

 private:
  CUresult UnloadLibrary() {
    if (library_ == nullptr) return CUDA_SUCCESS;
    const CUresult code = driver_.LibraryUnload(library_);
    if (code == CUDA_SUCCESS) library_ = nullptr;
    return code;
  }

  absl::StatusOr<CUkernel> FindKernel(const std::string& name) override {
    CUkernel kernel = nullptr;
    const CUresult code = driver_.LibraryGetKernel(&kernel, library_, name.c_str());
    if (code == CUDA_ERROR_NOT_FOUND) {
      return NoSuchKernel(name, this->name(), KernelNames().value_or(std::vector<std::string>()));
    }
    if (code == CUDA_SUCCESS) return kernel;
    return OfImage(code, "get kernel " + Quoted(name) + " of " + Quoted(this->name()),
                   DevicesText(driver_));
  }

  absl::StatusOr<CUfunction> FindFunctionHere(const ObjectDriver& driver, const KernelState& kernel,
                                              const ContextRef& context,
                                              const CodeInContext& /*here*/) override {
    CUfunction function = nullptr;
    const CUresult code = driver.KernelGetFunction(&function, kernel.kernel);
    if (code == CUDA_SUCCESS) return function;
    return OfImage(code, KernelText("use", kernel) + " of " + Quoted(name()),
                   PlaceText(driver, context));
  }

  absl::Status OfImage(CUresult code, std::string_view doing, std::string_view object) const {
    return ImageStatus(code, doing, object, jit_.error_log(), targets_);
  }

  bool CanEnumerate() const {
    return driver_.LibraryGetKernelCount != nullptr && driver_.LibraryEnumerateKernels != nullptr &&
           driver_.KernelGetName != nullptr;
  }

  const ObjectDriver& driver_;
  const std::optional<CodeImage> image_;  // where the driver cannot list the kernels
  // Written by the driver while it loads; no document says that it is not later.
  JitCall jit_;
  std::string targets_;
  CUlibrary library_ = nullptr;  // once it is loaded, and until it is unloaded
};

class ModuleCode : public LoadedCode {
 public:
  ModuleCode(const CodeImage& image, const JitOptions& options)
      : LoadedCode(image), image_(image), options_(options) {}

  absl::StatusOr<std::vector<std::string>> KernelNames() override { return ReadableNames(image_); }
  absl::Status LoadNow(const ObjectDriver& driver, const ContextRef& context,
                       JitReport* report) override {
    return Enter(driver, context, report).status();
  }
  absl::StatusOr<Variable> FindVariable(const ObjectDriver& driver, const ContextRef& context,
                                        const std::string& name) override {
    CUGUEST_ASSIGN_OR_RETURN(const InContext here, Enter(driver, context, nullptr));
    Variable found;
    CUGUEST_RETURN_IF_CUDA_ERROR(
        driver.ModuleGetGlobal(&found.pointer, &found.bytes, here->module(), name.c_str()),
        FindVariableText(name, this->name()), PlaceText(driver, context));
    return found;
  }

  // The module of each context is a value of the PerContext, which ends those of contexts that it
  // can ask about: not where the driver refuses that.
  CUresult Unload(const ObjectDriver& driver, Contexts contexts) override {
    CUcontext current = nullptr;
    const CUresult code = driver.CtxGetCurrent(&current);
    if (code == CUDA_SUCCESS && contexts == Contexts::kExist) LeaveAll();
    return code;
  }

 private:
  absl::StatusOr<CUkernel> FindKernel(const std::string& name) override {
    const std::vector<std::string>& names = image_.kernel_names();
    if (!image_.names_all_kernels() || std::binary_search(names.begin(), names.end(), name)) {
      return nullptr;
    }
    return NoSuchKernel(name, this->name(), names);
  }

  absl::Status LoadModule(const ObjectDriver& driver, const ContextRef& context, JitReport* report,
                          CodeInContext* here) override {
    JitCall jit(options_, driver.version);
    const CUresult code = LoadWithLogs(
        &jit,
        [&] {
          CUmodule module = nullptr;
          const CUresult loaded = driver.ModuleLoadDataEx(&module, image_.bytes().data(),
                                                          jit.count(), jit.names(), jit.values());
          if (loaded == CUDA_SUCCESS) here->Adopt(module);
          return loaded;
        },
        [&] { static_cast<void>(driver.ModuleUnload(here->Adopt(nullptr))); });
    if (report != nullptr) *report = jit.Report();
    if (code == CUDA_SUCCESS) return absl::OkStatus();
    return ImageStatus(code, LoadText(image_), PlaceText(driver, context), jit.error_log(),
                       TargetsText(image_));
  }

  absl::StatusOr<CUfunction> FindFunctionHere(const ObjectDriver& driver, const KernelState& kernel,
                                              const ContextRef& context,
                                              const CodeInContext& here) override {
    CUfunction function = nullptr;
    const CUresult code = driver.ModuleGetFunction(&function, here.module(), kernel.name.c_str());
    if (code == CUDA_ERROR_NOT_FOUND) {
      return NoSuchKernel(kernel.name, name(), image_.kernel_names());
    }
    CUGUEST_RETURN_IF_CUDA_ERROR(code, KernelText("use", kernel) + " of " + Quoted(name()),
                                 PlaceText(driver, context));
    return function;
  }

  const CodeImage image_;
  const JitOptions options_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<LoadedCode>> LoadLibrary(const ObjectDriver& driver,
                                                        const CodeImage& image,
                                                        const JitOptions& options,
                                                        JitReport* report) {
  const auto code = std::make_shared<LibraryCode>(driver, image, options);
  CUGUEST_RETURN_IF_ERROR(code->Load(image, report));
  return std::shared_ptr<LoadedCode>(code);
}

std::shared_ptr<LoadedCode> MakeModules(const CodeImage& image, const JitOptions& options) {
  return std::make_shared<ModuleCode>(image, options);
}

CUGUEST_END_INTERNAL_NAMESPACE

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code of a Module, or borrowed, and its kernels: what module.h, kernel.h and launch.h stand
// on.                                                                   tier: 3
//
// Note [Four kinds of code]
// ~~~~~~~~~~~~~~~~~~~~~~~~~
//   a code library (12.0)                        code_loaded.cc
//   an image, and a module of it in each context code_loaded.cc
//   somebody's kernel, good in every context     code.cc
//   somebody's function in one context           code.cc
//
// They differ in how a kernel's function is found in a context for the first time. What was
// found is kept here, in a PerContext of each code: FindFunction() asks nobody again.

#ifndef CUGUEST_LIB_OBJECTS_CODE_CODE_H_
#define CUGUEST_LIB_OBJECTS_CODE_CODE_H_

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/objects/code_image.h"
#include "cuguest/objects/driver.h"
#include "cuguest/objects/jit.h"
#include "cuguest/objects/kernel.h"
#include "cuguest/objects/module.h"
#include "cuguest/per_context.h"
#include "cuguest/status.h"
#include "lib/guard/relaxed_scope.h"
#include "lib/objects/code/function_in_context.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

class Code;

// KernelParams
//
// A kernel's own parameters, which the driver is asked for once, so that every launch is held
// against them and not against what is like them.
//
// Threads: all members from any threads at the same time. What is kept once is never replaced,
//          so that a launch reads it without a lock.
class KernelParams {
 public:
  using Places = absl::InlinedVector<Kernel::Parameter, 8>;

  KernelParams() noexcept = default;
  KernelParams(const KernelParams&) = delete;
  KernelParams& operator=(const KernelParams&) = delete;
  ~KernelParams() { delete kept_.load(std::memory_order_relaxed); }

  // nullptr until Keep().
  [[nodiscard]] const Places* get() const noexcept {
    const Kept* const kept = kept_.load(std::memory_order_acquire);
    return kept != nullptr ? &kept->places : nullptr;
  }

  // Nothing if others were first.
  void Keep(Places places) {
    auto kept = std::make_unique<const Kept>(Kept{std::move(places)});
    const Kept* none = nullptr;
    if (kept_.compare_exchange_strong(none, kept.get(), std::memory_order_release,
                                      std::memory_order_relaxed)) {
      static_cast<void>(kept.release());
    }
  }

 private:
  // A launch reads it cold: three parameters are in its first line.
  struct alignas(kCodeLine) Kept {
    Places places;
  };

  std::atomic<const Kept*> kept_{nullptr};
};

// A kernel's own parameters: `count` of them, or all if that is KernelInImage::kUnknown, where a
// call that fails says that there are no more. The driver needs no context for that, and
// invalidates no capture (cudasim/test/library_facts_test.cc).
inline CUresult AskParams(const ObjectDriver& driver, CUfunction function, std::size_t count,
                          KernelParams::Places* parameters) {
  while (parameters->size() != count) {
    Kernel::Parameter asked = {};
    const CUresult code =
        driver.FuncGetParamInfo(function, parameters->size(), &asked.offset, &asked.size);
    if (code == CUDA_ERROR_INVALID_VALUE) return CUDA_SUCCESS;  // past the last
    if (code != CUDA_SUCCESS) return code;
    parameters->push_back(asked);
  }
  return CUDA_SUCCESS;
}

// What every copy of a Kernel shares. It lives as long as its code. In one line: a launch reads it
// cold.
struct alignas(kCodeLine) KernelState {
  Code* code = nullptr;
  std::uint32_t number = 0;  // among the kernels of its code that were asked for
  KernelParams params;
  CUkernel kernel = nullptr;  // where the code knows it without a context
  std::string name;
};

// A function in a context, which is kept for as long as this object.
struct FoundFunction {
  PerContext<CodeInContext>::Pin pin;
  FunctionInContext* function = nullptr;
};

// The memory of a variable.
struct Variable {
  CUdeviceptr pointer = 0;
  std::size_t bytes = 0;
};

// Code
//
// As it is: somebody's kernel, which has a handle without a context.
//
// Threads: all members from any threads at the same time.
class Code : public std::enable_shared_from_this<Code> {
 public:
  Code() = default;
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  virtual ~Code() = default;  // nobody uses it any more

  // What the code is in `context`, which is gone, is gone with it.
  void ForgetDestroyed(const ContextRef& context) { contexts_.ForgetDestroyed(context); }

  // One that was found or added before.
  std::optional<Kernel> KnownKernel(std::string_view name);

  // The kernel of that name: the same for all that ask.
  Kernel AddKernel(std::string name, CUkernel kernel);

 protected:
  using InContext = PerContext<CodeInContext>::Pin;

  // What the code is in `context`, which is current. `report` may be null.
  absl::StatusOr<InContext> Enter(const ObjectDriver& driver, const ContextRef& context,
                                  JitReport* report);
  // Ends what the code is in each context. The caller vouches for these: PerContext::ForgetAll().
  void LeaveAll() { contexts_.ForgetAll(); }

 private:
  friend absl::StatusOr<FoundFunction> FindFunctionSlowly(const KernelState& kernel,
                                                          const ContextRef& context);
  friend FoundFunction KnownFunction(const KernelState& kernel, const ContextRef& context);

  // These where `context` is current, and captures are relaxed. Gives `here` what is loaded for
  // this context alone, if anything is.
  virtual absl::Status LoadModule(const ObjectDriver& /*driver*/, const ContextRef& /*context*/,
                                  JitReport* /*report*/, CodeInContext* /*here*/) {
    return absl::OkStatus();
  }
  virtual absl::StatusOr<CUfunction> FindFunctionHere(const ObjectDriver& driver,
                                                      const KernelState& kernel,
                                                      const ContextRef& context,
                                                      const CodeInContext& here);

  virtual KernelInImage InImage(const std::string& /*kernel*/) { return {}; }

  Kernel Share(KernelState* state);

  using Kernels = std::map<std::string, std::unique_ptr<KernelState>, std::less<>>;

  PerContext<CodeInContext> contexts_;
  std::mutex mutex_;
  Kernels kernels_;
};

// LoadedCode
//
// What a Module is.
class LoadedCode : public Code {
 public:
  // Of the image.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  // These with captures relaxed.

  absl::StatusOr<Kernel> GetKernel(std::string_view name);
  virtual absl::StatusOr<std::vector<std::string>> KernelNames() = 0;

  // These two where `context` is current, too. Compiles and loads it there; `report` may be
  // null.
  virtual absl::Status LoadNow(const ObjectDriver& driver, const ContextRef& context,
                               JitReport* report) = 0;
  virtual absl::StatusOr<Variable> FindVariable(const ObjectDriver& driver,
                                                const ContextRef& context,
                                                const std::string& name) = 0;

  // What the caller knows of the contexts in which it was used.
  enum class Contexts { kExist, kUnknown };

  // Where nobody uses it any more: unloads it from all contexts, or of unknown ones what can be
  // unloaded at once; the rest is with the object.
  virtual CUresult Unload(const ObjectDriver& driver, Contexts contexts) = 0;

 protected:
  explicit LoadedCode(const CodeImage& image) : name_(image.name()), unread_(image) {}

 private:
  // A kernel that there is, or may be: its handle, if it has one without a context.
  virtual absl::StatusOr<CUkernel> FindKernel(const std::string& name) = 0;
  KernelInImage InImage(const std::string& kernel) override;

  const std::string name_;
  std::mutex image_mutex_;
  std::optional<CodeImage> unread_;  // until a kernel is used
  std::map<std::string, KernelInImage> in_image_;
};

// Finds it in `context` for the first time.
[[gnu::noinline]] absl::StatusOr<FoundFunction> FindFunctionSlowly(const KernelState& kernel,
                                                                   const ContextRef& context);

// The function of `kernel` in `context`, which the caller vouches is alive; none if it was not
// found there yet. No driver call, no lock, no allocation.
inline FoundFunction KnownFunction(const KernelState& kernel, const ContextRef& context) {
  PerContext<CodeInContext>::Pin pin = kernel.code->contexts_.Find(context);
  FunctionInContext* const function = pin ? pin->At(kernel.number) : nullptr;
  return {std::move(pin), function};
}

// The same, found now if it was not.
//
// Errors: those of Kernel's functions.
inline absl::StatusOr<FoundFunction> FindFunction(const KernelState& kernel,
                                                  const ContextRef& context) {
  FoundFunction known = KnownFunction(kernel, context);
  if (__builtin_expect(known.function != nullptr, 1)) return known;
  return FindFunctionSlowly(kernel, context);
}

// A kernel in a context, and the driver that can be asked about it.
struct KernelInContext {
  const ObjectDriver& driver;
  KernelState& kernel;
  FunctionInContext& function;
};

// KernelCall
//
// Makes the context of a question about a kernel current for its scope, and finds the kernel there.
class KernelCall {
 public:
  enum class Captures { kAsTheyAre, kRelaxed };

  // `doing` as of KernelText().
  KernelCall(const char* doing, const Kernel& kernel, const ContextRef& context, Captures captures);

  [[nodiscard]] const absl::Status& status() const noexcept { return status_; }
  // Where status() is OK.
  [[nodiscard]] KernelInContext here() const noexcept {
    return {*driver_, *kernel_, *found_.function};
  }

 private:
  absl::Status Enter(const char* doing, const ContextRef& context, Captures captures);

  KernelState* const kernel_;
  const ObjectDriver* driver_ = nullptr;
  std::optional<ContextGuard> guard_;
  std::optional<RelaxedScope> relaxed_;
  FoundFunction found_;
  const absl::Status status_;
};

// Of an empty Kernel; `doing` is "launch".
absl::Status NoKernel(const char* doing);

// "use kernel \"scale\"", where `doing` is "use": for statuses.
std::string KernelText(const char* doing, const KernelState& kernel);

// `image` is one that a driver loads, and `options` were checked.
absl::StatusOr<std::shared_ptr<LoadedCode>> LoadLibrary(const ObjectDriver& driver,
                                                        const CodeImage& image,
                                                        const JitOptions& options,
                                                        JitReport* report);
std::shared_ptr<LoadedCode> MakeModules(const CodeImage& image, const JitOptions& options);

std::shared_ptr<Code> BorrowFunctionCode(CUfunction function, const ContextRef& context);

struct KernelAccess {
  // nullptr of an empty one.
  static KernelState* Of(const Kernel& kernel) noexcept { return kernel.state_.get(); }
  static Kernel Make(std::shared_ptr<KernelState> state) noexcept {
    return Kernel(std::move(state));
  }
};

struct ModuleAccess {
  static Module Make(std::shared_ptr<LoadedCode> code) noexcept { return Module(std::move(code)); }
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_OBJECTS_CODE_CODE_H_

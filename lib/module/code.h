// SPDX-License-Identifier: Apache-2.0
//
// Code of a Module, or borrowed, and its kernels: what module.h, kernel.h and launch.h stand
// on.                                                                   tier: 3
//
// Note [Three kinds of code]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~
// library_code.cc    a library of the driver (12.0)
// module_code.cc     an image, and a module of it for each context
// borrowed_code.cc   somebody's kernel, or somebody's function in one context
//
// They differ in how a kernel's function is found in a context for the first time. What was
// found is kept here, in a PerContext of each code: FindFunction() asks nobody again.

#ifndef CUGUEST_LIB_MODULE_CODE_H_
#define CUGUEST_LIB_MODULE_CODE_H_

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/driver.h"
#include "cuguest/export.h"
#include "cuguest/kernel.h"
#include "cuguest/per_context.h"
#include "lib/module/function_in_context.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

class Code;
struct ParamLayoutView;

// What every copy of a Kernel shares. It lives as long as its code.
struct KernelState {
  std::string name;
  Code* code = nullptr;
  std::uint32_t number = 0;   // among the kernels of its code that were asked for
  CUkernel kernel = nullptr;  // of a library only
  // The layout that a launch has compared with the kernel's parameters and found right.
  std::atomic<const ParamLayoutView*> accepted_layout{nullptr};
};

// A function in a context, which is held for as long as this object.
struct FoundFunction {
  PerContext<CodeInContext>::Pin pin;
  FunctionInContext* function = nullptr;
};

// Threads: all members from any threads at the same time, but Unload().
class Code : public std::enable_shared_from_this<Code> {
 public:
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  // Each kind unloads what it owns; see Unload().
  virtual ~Code() = default;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  // The kernel of that name: always the same, once it was found.
  absl::StatusOr<Kernel> GetKernel(std::string_view name);

  virtual absl::StatusOr<std::vector<std::string>> KernelNames() = 0;

  // The address and the bytes of a variable. Inside of a guard of `context`.
  struct Variable {
    CUdeviceptr pointer = 0;
    std::size_t bytes = 0;
  };
  virtual absl::StatusOr<Variable> FindVariable(const Driver& driver, const ContextRef& context,
                                                const std::string& name) = 0;

  // Compiles and loads it in `context` now. Inside of a guard of that.
  virtual absl::Status LoadNow(const Driver& driver, const ContextRef& context) = 0;

  // Nobody uses it any more. Not loaded anywhere, on success.
  virtual absl::Status Unload() = 0;

 protected:
  explicit Code(std::string name) : name_(std::move(name)) {}

  // A kernel that there is, or may be: `kernel` is its handle if the kind has such.
  virtual absl::StatusOr<CUkernel> FindKernel(const std::string& name) = 0;

  // What the code is in `context`, which is current.
  virtual absl::StatusOr<CodeInContext> Enter(const Driver& driver, const ContextRef& context) = 0;

  // The function of `kernel` in the context of `here`, which is current.
  virtual CUresult FindFunctionHere(const Driver& driver, const KernelState& kernel,
                                    const CodeInContext& here, CUfunction* function) = 0;

  PerContext<CodeInContext> contexts_;

 private:
  friend absl::StatusOr<FoundFunction> FindFunctionSlowly(const KernelState& kernel,
                                                          const ContextRef& context);
  friend absl::StatusOr<FoundFunction> FindFunction(const KernelState& kernel,
                                                    const ContextRef& context);

  const std::string name_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<KernelState>, std::less<>> kernels_;
};

// Finds it in `context` for the first time.
[[gnu::noinline]] absl::StatusOr<FoundFunction> FindFunctionSlowly(const KernelState& kernel,
                                                                   const ContextRef& context);

// The function of `kernel` in `context`, whose life the caller vouches for.
//
// Errors: those of Kernel's functions.
// Cost:   where it was found before: no driver call, no lock, no allocation.
inline absl::StatusOr<FoundFunction> FindFunction(const KernelState& kernel,
                                                  const ContextRef& context) {
  PerContext<CodeInContext>::Pin pin = kernel.code->contexts_.Find(context);
  if (__builtin_expect(static_cast<bool>(pin), 1)) {
    FunctionInContext* const function = pin->At(kernel.number);
    if (__builtin_expect(function != nullptr, 1)) return FoundFunction{std::move(pin), function};
  }
  return FindFunctionSlowly(kernel, context);
}

struct KernelAccess {
  // nullptr of an empty one.
  static KernelState* Of(const Kernel& kernel) noexcept { return kernel.state_.get(); }
  static Kernel Make(std::shared_ptr<KernelState> state) noexcept {
    return Kernel(std::move(state));
  }
};

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_MODULE_CODE_H_

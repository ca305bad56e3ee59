// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// `Kernel` is a kernel by name, of a Module (module.h) or of somebody else's code, for every
/// context where its code can be used. It finds its CUfunction, attributes and limits once in each.
///
///   absl::StatusOr<Kernel> scale = module.GetKernel("scale");
///   if (!scale.ok()) return scale.status();                  // lists the names there are
///   absl::StatusOr<CUfunction> function = scale->FunctionIn(context);

#ifndef CUGUEST_OBJECTS_KERNEL_H_
#define CUGUEST_OBJECTS_KERNEL_H_

#include <cuda.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

namespace internal {
struct KernelState;
struct KernelAccess;
}  // namespace internal

/// A copy is the same kernel. It keeps its code loaded, unless the code is borrowed.
/// Stack:   net 0 in every call.
/// Count:   net 0 in every call; it keeps no context alive.
/// Threads: value. Not from a stream callback: kPermissionDenied.
/// Errors:  those of ObjectDriver::Get(), what each function adds, and from all that take a context
///            kFailedPrecondition  the kernel is empty; the context was destroyed or reset; a
///                                 borrowed function belongs to another context: the text names
///                                 both; or the code has nothing for the device
///            kInvalidArgument     PTX that does not compile: the text has the compiler's log
///            kNotFound            no such kernel, where only use shows it: Note [Where code is]
///            kDataLoss            an earlier sticky error
///          Nothing has changed then.
/// Cost:    in driver calls, in a context that is current and in which the kernel was found before.
///          One that is not current adds two; the first time adds about twenty, and loading. The
///          first kernel of a Module that is used reads the image's bytes once, decompressed (for
///          launches: see Note [What is checked of a shape]).
class CUGUEST_API Kernel {
 public:
  /// What a kernel is in one context. Bytes, and numbers of threads and of registers.
  struct Attributes {
    int max_threads_per_block;
    int static_shared_bytes;
    int max_dynamic_shared_bytes;
    int constant_bytes;
    int local_bytes;  ///< of a thread
    int registers;    ///< of a thread
    int ptx_version;  ///< 90 is 9.0; of the architecture that it was compiled for
    int binary_version;
  };

  /// Where a parameter lies in a packed buffer. Bytes.
  struct Parameter {
    std::size_t offset;
    std::size_t size;
    CUGUEST_HIDE friend bool operator==(const Parameter& a, const Parameter& b) {
      return a.offset == b.offset && a.size == b.size;
    }
  };

  class Once;  // see module.h

  CUGUEST_HIDE Kernel(const Kernel&) = default;
  CUGUEST_HIDE Kernel(Kernel&&) = default;
  CUGUEST_HIDE Kernel& operator=(const Kernel&) = default;
  CUGUEST_HIDE Kernel& operator=(Kernel&&) = default;
  CUGUEST_HIDE ~Kernel() = default;

  CUGUEST_HIDE Kernel() noexcept = default;  // empty

  /// A kernel of somebody else's code library. Good in every context.
  /// Requires: the library stays loaded.
  /// Errors: kInvalidArgument  null
  ///         kUnimplemented    a driver below CUDA 12.0
  /// Cost:   one driver call; and 2 KiB of host memory, 2 KiB more for each context that it is used
  ///         in: keep the Kernel rather than make it anew.
  [[nodiscard]] static absl::StatusOr<Kernel> Borrow(CUkernel kernel);

  /// A function of somebody else's module. Good only in `context`, in which the module was loaded,
  /// and, if that is a primary context, in its green contexts.
  /// Requires: the module stays loaded.
  /// Errors: kInvalidArgument     null
  ///         kFailedPrecondition  no context, or it was destroyed or reset
  /// Cost:   as above, and one driver call. The first use in another context adds about eight: it
  ///         creates and destroys a stream there, to find out whether the context is a green one.
  [[nodiscard]] static absl::StatusOr<Kernel> Borrow(CUfunction function,
                                                     const ContextRef& context);

  [[nodiscard]] CUGUEST_HIDE explicit operator bool() const noexcept { return state_ != nullptr; }

  /// As in the image, so mangled for C++. Empty if the kernel is, or borrowed below CUDA 12.3.
  [[nodiscard]] const std::string& name() const noexcept;

  /// For cuLaunchKernel and the like. The first call loads the code there, and the kernel too (seen
  /// with driver 580, also in lazy mode; Preload() makes sure of it).
  /// Requires: the incarnation that `context` names is alive: the caller knows it from a guard or
  ///           the stream's owner, for example. Where the kernel was found before, the driver is
  ///           not asked again.
  /// Cost: none, no lock: about 20 ns beside an H100 (docs/cost.md).
  [[nodiscard]] absl::StatusOr<CUfunction> FunctionIn(const ContextRef& context) const;

  /// As above, in the handle's present incarnation.
  /// Requires: the handle is alive, as for ContextRef::Borrow().
  /// Cost: one, contention-free.
  [[nodiscard]] absl::StatusOr<CUfunction> FunctionIn(CUcontext context) const;

  /// Loads the kernel's machine code to the device, so that the first launch finds it there.
  /// Cost:  six.
  /// Needs: CUDA 12.4 (cuFuncLoad). Below that it is as FunctionIn(): what that has not loaded,
  ///        only a launch loads.
  absl::Status Preload(const ContextRef& context) const;

  /// Whether a launch has nothing left to load. False if this kernel was not asked for its function
  /// there before, since asking would load it.
  /// Errors: kUnimplemented  a driver below CUDA 12.4 (cuFuncIsLoaded)
  /// Cost:   two, contention-free.
  [[nodiscard]] absl::StatusOr<bool> IsLoaded(const ContextRef& context) const;

  /// Cost: thirteen.
  [[nodiscard]] absl::StatusOr<Attributes> AttributesIn(const ContextRef& context) const;

  /// Allows launches with as many bytes of dynamic shared memory in this context: more than the 48
  /// KiB that every device allows must be asked for. It is for this kernel in this context alone:
  /// what launches on several devices asks in the context of each, and again after a primary
  /// context was reset, as in the `make` of a PerContext. The limit is the driver's, for all users
  /// of the function: less than is allowed already changes nothing, and where other code lowers it
  /// (cuFuncSetAttribute), the next launch that needs what was allowed here raises it again.
  /// Errors: kInvalidArgument  more than the device has, less the kernel's static shared memory:
  ///                           the text has all three numbers
  ///         kUnimplemented    a driver below CUDA 9.0
  /// Cost:   six, and eight where the limit must be raised.
  absl::Status SetMaxDynamicSharedBytes(const ContextRef& context, std::size_t bytes) const;

  /// In their order.
  /// Errors: kUnimplemented  a driver below CUDA 12.4 (cuFuncGetParamInfo)
  /// Cost:   five, and one for each parameter; one more, which fails, for a borrowed kernel, since
  ///         no image says how many it has.
  [[nodiscard]] absl::StatusOr<std::vector<Parameter>> ParametersIn(
      const ContextRef& context) const;

  /// The same kernel of the same code.
  CUGUEST_HIDE friend bool operator==(const Kernel& a, const Kernel& b) noexcept {
    return a.state_ == b.state_;
  }
  CUGUEST_HIDE friend bool operator!=(const Kernel& a, const Kernel& b) noexcept {
    return !(a == b);
  }

 private:
  friend struct internal::KernelAccess;
  CUGUEST_HIDE explicit Kernel(std::shared_ptr<internal::KernelState> state) noexcept
      : state_(std::move(state)) {}

  std::shared_ptr<internal::KernelState> state_;  // shares the code's count
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_KERNEL_H_

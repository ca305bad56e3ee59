// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 4
/// \file
/// Kernels: the runtime's symbol (`&kernel`, a __global__ function of the program), its kernel in
/// every context, its function in one, and the code that they are in.
///
///   absl::StatusOr<CUfunction> blur = runtime::FunctionOf(&Blur, context);
///   if (!blur.ok()) return blur.status();
///   cuLaunchKernel(*blur, ...);                         // a driver launch of a <<<>>> kernel
///
///   cudaLaunchKernel(runtime::ToSymbol(driver_kernel), grid, block, arguments, 0, stream);

#ifndef CUGUEST_RUNTIME_FUNCTION_H_
#define CUGUEST_RUNTIME_FUNCTION_H_

#include <cuda.h>

#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/objects/driver.h"
#include "cuguest/runtime/binding.h"
#include "cuguest/runtime/error.h"
#include "cuguest/runtime/last_error_scope.h"
#include "cuguest/status.h"

CUGUEST_BEGIN_RUNTIME_NAMESPACE

static_assert(std::is_same_v<cudaFunction_t, CUfunction>);

/// The conversions below: null stays null.
/// Stack, count, last error: not touched. Nothing is called or checked. Threads: any. Cost: none.
/// Source:  CUDA Runtime API, "Interactions between CUkernel and cudaKernel_t"; <driver_types.h>.
[[nodiscard]] constexpr CUfunction ToDriver(cudaFunction_t function) noexcept { return function; }
[[nodiscard]] constexpr cudaFunction_t ToRuntime(CUfunction function) noexcept { return function; }

#if CUDART_VERSION >= 12010
static_assert(std::is_same_v<cudaKernel_t, CUkernel>);

/// Needs: headers of CUDA 12.1 or newer; the runtime of older ones has no kernels.
[[nodiscard]] constexpr CUkernel ToDriver(cudaKernel_t kernel) noexcept { return kernel; }
[[nodiscard]] constexpr cudaKernel_t ToRuntime(CUkernel kernel) noexcept { return kernel; }
#endif

/// A kernel in a symbol's place, for cudaLaunchKernel, cudaFuncGetAttributes and the like.
/// Source: CUDA Runtime API, cudaLaunchKernel.
[[nodiscard]] inline const void* ToSymbol(CUkernel kernel) noexcept { return kernel; }

#if CUDART_VERSION >= 12090
static_assert(std::is_same_v<cudaLibrary_t, CUlibrary>);

/// Needs: headers of CUDA 12.9 or newer; older ones may not have libraries.
[[nodiscard]] constexpr CUlibrary ToDriver(cudaLibrary_t library) noexcept { return library; }
[[nodiscard]] constexpr cudaLibrary_t ToRuntime(CUlibrary library) noexcept { return library; }
#endif

namespace impl {

template <typename Function>
absl::StatusOr<Function> FindEntry(Function ObjectDriver::*entry) {
  const absl::StatusOr<const ObjectDriver*> driver = ObjectDriver::Get();
  if (!driver.ok()) return driver.status();
  return (*driver)->Require(entry);
}

}  // namespace impl

/// The queries below
/// Stack:   net 0: a ContextGuard enters `context` where one is given.
/// Count:   none; no context is created.
/// Threads: any.
/// Errors:  those of ObjectDriver::Get() and of ContextGuard, kInvalidArgument for null, and what
///          each adds. The runtime's last error stays as it was, but a runtime call that fails
///          overwrites one that was set before: see LastErrorScope::Leave.

/// The function that `symbol` names, in `context`. Loads its code there if it was not yet.
/// Errors: kNotFound  no __global__ function of a loaded shared object
///         and those of loading code
/// Cost:   a ContextGuard and one runtime call, which looks `symbol` up under a lock.
/// Source: CUDA Runtime API, cudaGetFuncBySymbol.
[[nodiscard]] inline absl::StatusOr<CUfunction> FunctionOf(const void* symbol,
                                                           const ContextRef& context) {
  if (symbol == nullptr) return absl::InvalidArgumentError("find the function of a null symbol");
  const ContextGuard guard(context);
  if (!guard.ok()) return cuguest::ToStatus(guard);
  LastErrorScope errors;
  cudaFunction_t function = nullptr;
  const cudaError_t code =
      errors.Note(cudaGetFuncBySymbol(&function, symbol), "cudaGetFuncBySymbol");
  if (code != cudaSuccess) return ToStatus(code, "find the function of a symbol");
  return ToDriver(function);
}

/// The same for a __global__ function of the program: FunctionOf(&Blur, context).
template <typename... Parameters>
[[nodiscard]] absl::StatusOr<CUfunction> FunctionOf(void (*kernel)(Parameters...),
                                                    const ContextRef& context) {
  return FunctionOf(reinterpret_cast<const void*>(kernel), context);
}

#if CUDART_VERSION >= 12010
/// The kernel that `symbol` names, for every context. Needs: headers of CUDA 12.1 or newer.
/// Errors: kNotFound  no __global__ function of a loaded shared object
/// Cost:   one runtime call, which looks `symbol` up under a lock.
/// Source: CUDA Runtime API, cudaGetKernel.
[[nodiscard]] inline absl::StatusOr<CUkernel> KernelOf(const void* symbol) {
  if (symbol == nullptr) return absl::InvalidArgumentError("find the kernel of a null symbol");
  LastErrorScope errors;
  cudaKernel_t kernel = nullptr;
  const cudaError_t code = errors.Note(cudaGetKernel(&kernel, symbol), "cudaGetKernel");
  if (code != cudaSuccess) return ToStatus(code, "find the kernel of a symbol");
  return ToDriver(kernel);
}

/// The same for a __global__ function of the program: KernelOf(&Blur).
template <typename... Parameters>
[[nodiscard]] absl::StatusOr<CUkernel> KernelOf(void (*kernel)(Parameters...)) {
  return KernelOf(reinterpret_cast<const void*>(kernel));
}
#endif

/// The function of `kernel` in `context`. Loads its code there if it was not yet.
/// Errors: kUnimplemented  a driver below CUDA 12.0
///         and those of loading code
/// Cost:   a ContextGuard and one driver call.
/// Source: CUDA Driver API, cuKernelGetFunction; docs/guarantees.md.
[[nodiscard]] inline absl::StatusOr<CUfunction> FunctionOf(CUkernel kernel,
                                                           const ContextRef& context) {
  if (kernel == nullptr) return absl::InvalidArgumentError("find the function of a null kernel");
  const auto get = impl::FindEntry(&ObjectDriver::KernelGetFunction);
  if (!get.ok()) return get.status();
  const ContextGuard guard(context);
  if (!guard.ok()) return cuguest::ToStatus(guard);
  CUfunction function = nullptr;
  const CUresult code = (*get)(&function, kernel);
  if (code != CUDA_SUCCESS) return cuguest::ToStatus(code, "find the function of a kernel");
  return function;
}

/// The loaded code that a kernel is in. Cost: one driver call.
/// Errors: kUnimplemented  a driver below CUDA 12.5
[[nodiscard]] inline absl::StatusOr<CUlibrary> LibraryOf(CUkernel kernel) {
  if (kernel == nullptr) return absl::InvalidArgumentError("find a null kernel's code library");
  const auto get = impl::FindEntry(&ObjectDriver::KernelGetLibrary);
  if (!get.ok()) return get.status();
  CUlibrary library = nullptr;
  const CUresult code = (*get)(&library, kernel);
  if (code != CUDA_SUCCESS) return cuguest::ToStatus(code, "find the code library of a kernel");
  return library;
}

/// The loaded code that a function is in. Cost: one driver call.
/// Errors: kUnimplemented  a driver below CUDA 11.0
[[nodiscard]] inline absl::StatusOr<CUmodule> ModuleOf(CUfunction function) {
  if (function == nullptr) return absl::InvalidArgumentError("find the module of a null function");
  const auto get = impl::FindEntry(&ObjectDriver::FuncGetModule);
  if (!get.ok()) return get.status();
  CUmodule module = nullptr;
  const CUresult code = (*get)(&module, function);
  if (code != CUDA_SUCCESS) return cuguest::ToStatus(code, "find the module of a function");
  return module;
}

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_RUNTIME_FUNCTION_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 4
/// \file
/// cuSOLVER's dense part in any context, from any thread. What libraries/cublas.h says of cuBLAS
/// holds here too, also where a handle may be used and what captures forbid.
///
///   const runtime::CusolverDnScope solver(handles, stream);
///   if (!solver.ok()) return solver.status();
///   return runtime::ToStatus(cusolverDnSpotrf(solver.handle(), ...), "factorise");

#ifndef CUGUEST_LIBRARIES_CUSOLVER_H_
#define CUGUEST_LIBRARIES_CUSOLVER_H_

#include <cusolverDn.h>

#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "cuguest/libraries/internal/library_handle.h"
#include "cuguest/libraries/internal/toolkit_library.h"
#include "cuguest/libraries/library.h"
#include "cuguest/runtime/error.h"

// The headers before cuSOLVER 11.5, CUDA 12.2's, do not declare the deterministic mode.
#if CUSOLVER_VERSION >= 11500
#define CUGUEST_CUSOLVER_MODE_ENTRIES(X)                  \
  X(GetDeterministicMode, cusolverDnGetDeterministicMode) \
  X(SetDeterministicMode, cusolverDnSetDeterministicMode)
#else
#define CUGUEST_CUSOLVER_MODE_ENTRIES(X)
#endif

#define CUGUEST_CUSOLVER_ENTRIES(X)   \
  X(Create, cusolverDnCreate)         \
  X(Destroy, cusolverDnDestroy)       \
  X(GetProperty, cusolverGetProperty) \
  X(SetStream, cusolverDnSetStream)   \
  CUGUEST_CUSOLVER_MODE_ENTRIES(X)

CUGUEST_BEGIN_RUNTIME_NAMESPACE

/// As ToStatus(cublasStatus_t). cuSOLVER has no words of its own: these are from its documentation.
[[nodiscard]] inline absl::Status ToStatus(cusolverStatus_t code, std::string_view doing,
                                           std::string_view object = {}) {
  return internal::ToLibraryStatus(internal::Library::kCusolver, code, doing, object);
}

/// As CublasCodeOf().
[[nodiscard]] inline std::optional<cusolverStatus_t> CusolverCodeOf(const absl::Status& status) {
  return internal::LibraryCodeOfType<cusolverStatus_t>(internal::Library::kCusolver, status);
}

namespace impl {

struct Cusolver {
  CUGUEST_CUSOLVER_ENTRIES(CUGUEST_LIBRARY_POINTER)

  static constexpr internal::Library kLibrary = internal::Library::kCusolver;
  static constexpr char kStem[] = "libcusolver";
  static constexpr int kMajor = CUSOLVER_VER_MAJOR;
  using Handle = cusolverDnHandle_t;
  static constexpr bool kHasLayouts = false;
  using Code = cusolverStatus_t;
  static constexpr char kName[] = "a cuSOLVER handle";
  static constexpr bool kDestroyEndsCaptures = true;
  static constexpr bool kTakesWorkspace = false;
#if CUSOLVER_VERSION >= 11500
  using Settings =
      std::tuple<Setting<&Cusolver::GetDeterministicMode, &Cusolver::SetDeterministicMode>>;
#else
  using Settings = std::tuple<>;
#endif

 protected:
  Cusolver() = default;
  void Link() { CUGUEST_CUSOLVER_ENTRIES(CUGUEST_LIBRARY_LINK); }
  std::vector<internal::LibraryEntry> Entries() {
    return {CUGUEST_CUSOLVER_ENTRIES(CUGUEST_LIBRARY_FIND)};
  }
};

}  // namespace impl

#undef CUGUEST_CUSOLVER_ENTRIES
#undef CUGUEST_CUSOLVER_MODE_ENTRIES

/// See ToolkitFunctions. Open() opens "libcusolver.so.<major version of the header>" by default.
using CusolverLibrary = ToolkitFunctions<impl::Cusolver>;

/// As CublasHandles. A handle takes about 100 MiB of device memory: it has a cuBLAS handle inside.
using CusolverDnHandles = LibraryHandles<impl::Cusolver>;

/// As CublasScope, without a workspace: cuSOLVER takes it with each call. At its end the handle has
/// the deterministic mode with which cuSOLVER made it, if compiled with headers of CUDA 12.2 or
/// newer. The caller restores math mode and emulation strategy, which not every cuSOLVER 12 has.
/// Cost:    as CublasScope, with one cusolverDnGetDeterministicMode instead of four cublasGet...
using CusolverDnScope = LibraryScope<impl::Cusolver>;

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_LIBRARIES_CUSOLVER_H_

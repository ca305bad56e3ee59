// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// runtime/cusolver.h                                                    tier: 4
// -----------------------------------------------------------------------------
/// \file
/// cuSOLVER's dense part in whatever context, from whatever thread: the same as runtime/cublas.h is
/// for cuBLAS, which says what is to be known; also where a handle may be used, and what
/// captures forbid.
///
///   const runtime::CusolverDnScope solver(handles, stream);
///   if (!solver.ok()) return solver.status();
///   return runtime::ToStatus(cusolverDnSpotrf(solver.handle(), ...), "factorise");

#ifndef CUGUEST_RUNTIME_CUSOLVER_H_
#define CUGUEST_RUNTIME_CUSOLVER_H_

#include <cuda.h>
#include <cusolverDn.h>

#include <cstddef>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/internal/handle_pool.h"
#include "cuguest/internal/library_error.h"
#include "cuguest/internal/library_handle.h"
#include "cuguest/runtime/error.h"
#include "cuguest/runtime/library.h"
#include "cuguest/stream.h"

// The headers before cuSOLVER 11.5, CUDA 12.2's, do not declare the deterministic mode.
#if CUSOLVER_VERSION >= 11500
#define CUGUEST_CUSOLVER_MODE_ENTRIES(X)                  \
  X(GetDeterministicMode, cusolverDnGetDeterministicMode) \
  X(SetDeterministicMode, cusolverDnSetDeterministicMode)
#else
#define CUGUEST_CUSOLVER_MODE_ENTRIES(X)
#endif

/// X(member, function)
#define CUGUEST_CUSOLVER_ENTRIES(X)   \
  X(Create, cusolverDnCreate)         \
  X(Destroy, cusolverDnDestroy)       \
  X(GetProperty, cusolverGetProperty) \
  X(SetStream, cusolverDnSetStream)   \
  CUGUEST_CUSOLVER_MODE_ENTRIES(X)

CUGUEST_BEGIN_RUNTIME_NAMESPACE

/// As ToStatus(cublasStatus_t). cuSOLVER has no words of its own: these are from its documentation.
[[nodiscard]] CUGUEST_HIDE inline absl::Status ToStatus(cusolverStatus_t code,
                                                        std::string_view doing,
                                                        std::string_view object = {}) {
  return ::cuguest::internal::ToLibraryStatus(::cuguest::internal::Library::kCusolver, code, doing,
                                              object);
}

/// As CublasCodeOf().
[[nodiscard]] CUGUEST_HIDE inline std::optional<cusolverStatus_t> CusolverCodeOf(
    const absl::Status& status) {
  return ::cuguest::internal::LibraryCodeOfType<cusolverStatus_t>(
      ::cuguest::internal::Library::kCusolver, status);
}

/// CusolverLibrary
///
/// See LibraryTable. Open() opens "libcusolver.so.<major version of the header>" by default.
struct CusolverLibrary : LibraryTable {
  CUGUEST_CUSOLVER_ENTRIES(CUGUEST_LIBRARY_POINTER)

  [[nodiscard]] CUGUEST_HIDE static CusolverLibrary Linked() {
    CusolverLibrary library;
    CUGUEST_CUSOLVER_ENTRIES(CUGUEST_LIBRARY_LINK)
    return library;
  }

  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<CusolverLibrary> Open(
      const char* name = nullptr) {
    CusolverLibrary library;
    absl::Status status = library.Load(
        ::cuguest::internal::Library::kCusolver, name, "libcusolver", CUSOLVER_VER_MAJOR,
        {CUGUEST_CUSOLVER_ENTRIES(CUGUEST_LIBRARY_FIND)}, &library.GetProperty);
    if (!status.ok()) return status;
    return library;
  }

 private:
  CUGUEST_HIDE CusolverLibrary() = default;
};

#undef CUGUEST_CUSOLVER_ENTRIES
#undef CUGUEST_CUSOLVER_MODE_ENTRIES

namespace internal {

struct CusolverDnApi {
  using Table = CusolverLibrary;
  using Handle = cusolverDnHandle_t;
  using Code = cusolverStatus_t;
  CUGUEST_HIDE static constexpr ::cuguest::internal::Library kLibrary =
      ::cuguest::internal::Library::kCusolver;
  CUGUEST_HIDE static constexpr char kName[] = "a cuSOLVER handle";
  CUGUEST_HIDE static constexpr bool kDestroyEndsCaptures = true;
  CUGUEST_HIDE static constexpr bool kTakesWorkspace = false;

#if CUSOLVER_VERSION >= 11500
  struct Settings {
    CUGUEST_HIDE Code Read(const Table& cusolver, Handle handle) {
      return cusolver.GetDeterministicMode(handle, &mode);
    }
    CUGUEST_HIDE Code PutBack(const Table& cusolver, Handle handle) const {
      return internal::PutBack(cusolver.GetDeterministicMode, cusolver.SetDeterministicMode, handle,
                               mode);
    }

    cusolverDeterministicMode_t mode = CUSOLVER_DETERMINISTIC_RESULTS;
  };
#else
  struct Settings {
    CUGUEST_HIDE Code Read(const Table& /*cusolver*/, Handle /*handle*/) const { return Code{}; }
    CUGUEST_HIDE Code PutBack(const Table& /*cusolver*/, Handle /*handle*/) const { return Code{}; }
  };
#endif
};

}  // namespace internal

/// CusolverDnHandles
///
/// As CublasHandles. A handle takes about 100 MiB of device memory: it has a cuBLAS handle inside.
class CusolverDnHandles : public LibraryHandles<CusolverLibrary> {
 public:
  CUGUEST_HIDE CusolverDnHandles() : CusolverDnHandles(CusolverLibrary::Linked()) {}
  CUGUEST_HIDE explicit CusolverDnHandles(const CusolverLibrary& library)
      : LibraryHandles(internal::kHandleType<internal::CusolverDnApi>, library) {}

  CUGUEST_HIDE absl::Status Prepare(const ContextRef& context, std::size_t count = 1,
                                    const char* file = __builtin_FILE(),
                                    int line = __builtin_LINE()) {
    return pools().Prepare(context, nullptr, count, file, line);
  }

 private:
  friend class CusolverDnScope;
};

/// CusolverDnScope
///
/// As CublasScope, without a workspace: cuSOLVER takes it with each call. At its end the scope sets
/// the handle's deterministic mode to the one that cuSOLVER made it with, where the program is
/// compiled with the headers of CUDA 12.2 or newer: older ones have no such mode. The caller
/// restores math mode and emulation strategy, which not every cuSOLVER 12 has.
///
/// Stack, count, threads, errors: as CublasScope.
/// Cost:    as CublasScope, with one cusolverDnGetDeterministicMode instead of four cublasGet...
/// Source:  test/runtime/cusolver_test.cc; test/runtime/library_test.cc.
class [[nodiscard]] CusolverDnScope : public LibraryScope {
 public:
  CUGUEST_HIDE CusolverDnScope(CusolverDnHandles& handles, const StreamRef& stream,
                               const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : LibraryScope(handles.pools(), {stream}, file, line) {}

  /// nullptr unless ok(). Good until the scope ends, on this thread; not to be destroyed.
  [[nodiscard]] CUGUEST_HIDE cusolverDnHandle_t handle() const noexcept {
    return internal::LibraryHandle<internal::CusolverDnApi>::Get(borrowed());
  }
};

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_RUNTIME_CUSOLVER_H_

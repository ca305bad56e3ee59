// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// runtime/cusparse.h                                                    tier: 4
// -----------------------------------------------------------------------------
/// \file
/// cuSPARSE in whatever context, from whatever thread: the same as runtime/cublas.h is for cuBLAS,
/// which says what is to be known; also where a handle may be used. Descriptors of matrices and
/// vectors belong to no context, and are not part of this.
///
///   const runtime::CusparseScope sparse(handles, stream);
///   if (!sparse.ok()) return sparse.status();
///   return runtime::ToStatus(cusparseSpMV(sparse.handle(), ...), "multiply");

#ifndef CUGUEST_RUNTIME_CUSPARSE_H_
#define CUGUEST_RUNTIME_CUSPARSE_H_

#include <cuda.h>
#include <cusparse.h>

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

/// X(member, function)
#define CUGUEST_CUSPARSE_ENTRIES(X)   \
  X(Create, cusparseCreate)           \
  X(Destroy, cusparseDestroy)         \
  X(GetProperty, cusparseGetProperty) \
  X(SetStream, cusparseSetStream)     \
  X(GetPointerMode, cusparseGetPointerMode) X(SetPointerMode, cusparseSetPointerMode)

CUGUEST_BEGIN_RUNTIME_NAMESPACE

/// As ToStatus(cublasStatus_t), with the words of cusparseGetErrorString.
[[nodiscard]] CUGUEST_HIDE inline absl::Status ToStatus(cusparseStatus_t code,
                                                        std::string_view doing,
                                                        std::string_view object = {}) {
  return ::cuguest::internal::ToLibraryStatus(::cuguest::internal::Library::kCusparse, code, doing,
                                              object);
}

/// As CublasCodeOf().
[[nodiscard]] CUGUEST_HIDE inline std::optional<cusparseStatus_t> CusparseCodeOf(
    const absl::Status& status) {
  return ::cuguest::internal::LibraryCodeOfType<cusparseStatus_t>(
      ::cuguest::internal::Library::kCusparse, status);
}

/// CusparseLibrary
///
/// See LibraryTable. Open() opens "libcusparse.so.<major version of the header>" by default.
struct CusparseLibrary : LibraryTable {
  CUGUEST_CUSPARSE_ENTRIES(CUGUEST_LIBRARY_POINTER)

  [[nodiscard]] CUGUEST_HIDE static CusparseLibrary Linked() {
    CusparseLibrary library;
    CUGUEST_CUSPARSE_ENTRIES(CUGUEST_LIBRARY_LINK)
    return library;
  }

  [[nodiscard]] CUGUEST_HIDE static absl::StatusOr<CusparseLibrary> Open(
      const char* name = nullptr) {
    CusparseLibrary library;
    absl::Status status = library.Load(
        ::cuguest::internal::Library::kCusparse, name, "libcusparse", CUSPARSE_VER_MAJOR,
        {CUGUEST_CUSPARSE_ENTRIES(CUGUEST_LIBRARY_FIND)}, &library.GetProperty);
    if (!status.ok()) return status;
    return library;
  }

 private:
  CUGUEST_HIDE CusparseLibrary() = default;
};

#undef CUGUEST_CUSPARSE_ENTRIES

namespace internal {

struct CusparseApi {
  using Table = CusparseLibrary;
  using Handle = cusparseHandle_t;
  using Code = cusparseStatus_t;
  CUGUEST_HIDE static constexpr ::cuguest::internal::Library kLibrary =
      ::cuguest::internal::Library::kCusparse;
  CUGUEST_HIDE static constexpr char kName[] = "a cuSPARSE handle";
  CUGUEST_HIDE static constexpr bool kDestroyEndsCaptures = false;
  CUGUEST_HIDE static constexpr bool kTakesWorkspace = false;

  struct Settings {
    CUGUEST_HIDE Code Read(const Table& cusparse, Handle handle) {
      return cusparse.GetPointerMode(handle, &mode);
    }
    CUGUEST_HIDE Code PutBack(const Table& cusparse, Handle handle) const {
      return internal::PutBack(cusparse.GetPointerMode, cusparse.SetPointerMode, handle, mode);
    }

    cusparsePointerMode_t mode = CUSPARSE_POINTER_MODE_HOST;
  };
};

}  // namespace internal

/// CusparseHandles
///
/// As CublasHandles. Handles are cheap here: they take no device memory and microseconds to make,
/// and destroying one invalidates no capture.
class CusparseHandles : public LibraryHandles<CusparseLibrary> {
 public:
  CUGUEST_HIDE CusparseHandles() : CusparseHandles(CusparseLibrary::Linked()) {}
  CUGUEST_HIDE explicit CusparseHandles(const CusparseLibrary& library)
      : LibraryHandles(internal::kHandleType<internal::CusparseApi>, library) {}

  CUGUEST_HIDE absl::Status Prepare(const ContextRef& context, std::size_t count = 1,
                                    const char* file = __builtin_FILE(),
                                    int line = __builtin_LINE()) {
    return pools().Prepare(context, nullptr, count, file, line);
  }

 private:
  friend class CusparseScope;
};

/// CusparseScope
///
/// As CublasScope, without a workspace: cuSPARSE takes it with each call. At its end the handle has
/// the pointer mode with which cuSPARSE made it.
///
/// Stack, count, threads, errors: as CublasScope.
/// Cost:    as CublasScope, with one cusparseGetPointerMode instead of four cublasGet...
/// Source:  test/runtime/cusparse_test.cc; test/runtime/library_test.cc.
class [[nodiscard]] CusparseScope : public LibraryScope {
 public:
  CUGUEST_HIDE CusparseScope(CusparseHandles& handles, const StreamRef& stream,
                             const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : LibraryScope(handles.pools(), {stream}, file, line) {}

  /// nullptr unless ok(). Good until the scope ends, on this thread; not to be destroyed.
  [[nodiscard]] CUGUEST_HIDE cusparseHandle_t handle() const noexcept {
    return internal::LibraryHandle<internal::CusparseApi>::Get(borrowed());
  }
};

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_RUNTIME_CUSPARSE_H_

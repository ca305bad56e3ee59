// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 4
/// \file
/// cuSPARSE in any context, from any thread. What libraries/cublas.h says of cuBLAS holds here too,
/// also where a handle may be used. Descriptors of matrices and vectors, which belong to no
/// context, are not part of this.
///
///   const runtime::CusparseScope sparse(handles, stream);
///   if (!sparse.ok()) return sparse.status();
///   return runtime::ToStatus(cusparseSpMV(sparse.handle(), ...), "multiply");

#ifndef CUGUEST_LIBRARIES_CUSPARSE_H_
#define CUGUEST_LIBRARIES_CUSPARSE_H_

#include <cusparse.h>

#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "cuguest/libraries/internal/library_handle.h"
#include "cuguest/libraries/internal/toolkit_library.h"
#include "cuguest/libraries/library.h"
#include "cuguest/runtime/error.h"

#define CUGUEST_CUSPARSE_ENTRIES(X)   \
  X(Create, cusparseCreate)           \
  X(Destroy, cusparseDestroy)         \
  X(GetProperty, cusparseGetProperty) \
  X(SetStream, cusparseSetStream)     \
  X(GetPointerMode, cusparseGetPointerMode) X(SetPointerMode, cusparseSetPointerMode)

CUGUEST_BEGIN_RUNTIME_NAMESPACE

/// As ToStatus(cublasStatus_t), with the words of cusparseGetErrorString.
[[nodiscard]] inline absl::Status ToStatus(cusparseStatus_t code, std::string_view doing,
                                           std::string_view object = {}) {
  return internal::ToLibraryStatus(internal::Library::kCusparse, code, doing, object);
}

/// As CublasCodeOf().
[[nodiscard]] inline std::optional<cusparseStatus_t> CusparseCodeOf(const absl::Status& status) {
  return internal::LibraryCodeOfType<cusparseStatus_t>(internal::Library::kCusparse, status);
}

namespace impl {

struct Cusparse {
  CUGUEST_CUSPARSE_ENTRIES(CUGUEST_LIBRARY_POINTER)

  static constexpr internal::Library kLibrary = internal::Library::kCusparse;
  static constexpr char kStem[] = "libcusparse";
  static constexpr int kMajor = CUSPARSE_VER_MAJOR;
  using Handle = cusparseHandle_t;
  static constexpr bool kHasLayouts = false;
  using Code = cusparseStatus_t;
  static constexpr char kName[] = "a cuSPARSE handle";
  static constexpr bool kDestroyEndsCaptures = false;
  static constexpr bool kTakesWorkspace = false;
  using Settings = std::tuple<Setting<&Cusparse::GetPointerMode, &Cusparse::SetPointerMode>>;

 protected:
  Cusparse() = default;
  void Link() { CUGUEST_CUSPARSE_ENTRIES(CUGUEST_LIBRARY_LINK); }
  std::vector<internal::LibraryEntry> Entries() {
    return {CUGUEST_CUSPARSE_ENTRIES(CUGUEST_LIBRARY_FIND)};
  }
};

}  // namespace impl

#undef CUGUEST_CUSPARSE_ENTRIES

/// See ToolkitFunctions. Open() opens "libcusparse.so.<major version of the header>" by default.
using CusparseLibrary = ToolkitFunctions<impl::Cusparse>;

/// As CublasHandles. Handles are cheap here: they take no device memory and microseconds to make,
/// and destroying one invalidates no capture.
using CusparseHandles = LibraryHandles<impl::Cusparse>;

/// As CublasScope, without a workspace: cuSPARSE takes it with each call. At its end the handle has
/// the pointer mode with which cuSPARSE made it.
/// Cost:    as CublasScope, with one cusparseGetPointerMode instead of four cublasGet...
using CusparseScope = LibraryScope<impl::Cusparse>;

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_LIBRARIES_CUSPARSE_H_

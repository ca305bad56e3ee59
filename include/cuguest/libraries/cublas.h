// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 4
/// \file
/// cuBLAS in any context, from any thread: a pool of handles for each context, and a scope that has
/// one of them to itself, in the right context, on the right stream.
///
///   absl::Status Multiply(CublasHandles& handles, CUstream stream, ...) {
///     const runtime::CublasScope blas(handles, stream);
///     if (!blas.ok()) return blas.status();
///     return runtime::ToStatus(cublasSgemm(blas.handle(), ...), "multiply");
///   }
///
/// It does not call the program's CUDA runtime (cuBLAS has its own inside). It calls cuBLAS by a
/// table of functions, so that the program may link the library or load it at run time.

#ifndef CUGUEST_LIBRARIES_CUBLAS_H_
#define CUGUEST_LIBRARIES_CUBLAS_H_

#include <cublas_v2.h>

#include <cstddef>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "cuguest/libraries/internal/library_handle.h"
#include "cuguest/libraries/internal/toolkit_library.h"
#include "cuguest/libraries/library.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/objects/stream.h"
#include "cuguest/runtime/error.h"

#define CUGUEST_CUBLAS_ENTRIES(X)             \
  X(Create, cublasCreate_v2)                  \
  X(Destroy, cublasDestroy_v2)                \
  X(GetProperty, cublasGetProperty)           \
  X(SetStream, cublasSetStream_v2)            \
  X(SetWorkspace, cublasSetWorkspace_v2)      \
  X(GetPointerMode, cublasGetPointerMode_v2)  \
  X(SetPointerMode, cublasSetPointerMode_v2)  \
  X(GetMathMode, cublasGetMathMode)           \
  X(SetMathMode, cublasSetMathMode)           \
  X(GetAtomicsMode, cublasGetAtomicsMode)     \
  X(SetAtomicsMode, cublasSetAtomicsMode)     \
  X(GetSmCountTarget, cublasGetSmCountTarget) \
  X(SetSmCountTarget, cublasSetSmCountTarget)

CUGUEST_BEGIN_RUNTIME_NAMESPACE

/// A status with `doing`, `object`, the code's name, the words of cublasGetStatusString, and
/// advice: "multiply, layer 3: CUBLAS_STATUS_INVALID_VALUE (7): an unsupported value or parameter
/// was passed to the function; check sizes, ...". The words are in cuguest: nothing has to be
/// linked or loaded. A code newer than cuguest has its number. Where a sticky error was already
/// seen in the current context, the status is that: kDataLoss, with CodeOf() of status.h.
/// Threads: any. Stack, last error: not touched. No handle is needed.
/// Cost:    one comparison on success; on failure two driver calls, contention-free.
[[nodiscard]] inline absl::Status ToStatus(cublasStatus_t code, std::string_view doing,
                                           std::string_view object = {}) {
  return internal::ToLibraryStatus(internal::Library::kCublas, code, doing, object);
}

/// The code that ToStatus() made `status` from, directly or in a function here; nothing for another
/// status. CUBLAS_STATUS_SUCCESS for an OK one.
[[nodiscard]] inline std::optional<cublasStatus_t> CublasCodeOf(const absl::Status& status) {
  return internal::LibraryCodeOfType<cublasStatus_t>(internal::Library::kCublas, status);
}

namespace impl {

struct Cublas {
  CUGUEST_CUBLAS_ENTRIES(CUGUEST_LIBRARY_POINTER)

  static constexpr internal::Library kLibrary = internal::Library::kCublas;
  static constexpr char kStem[] = "libcublas";
  static constexpr int kMajor = CUBLAS_VER_MAJOR;
  using Handle = cublasHandle_t;
  static constexpr bool kHasLayouts = false;
  using Code = cublasStatus_t;
  static constexpr char kName[] = "a cuBLAS handle";
  static constexpr bool kDestroyEndsCaptures = true;
  static constexpr bool kTakesWorkspace = true;
  using Settings = std::tuple<Setting<&Cublas::GetPointerMode, &Cublas::SetPointerMode>,
                              Setting<&Cublas::GetMathMode, &Cublas::SetMathMode>,
                              Setting<&Cublas::GetAtomicsMode, &Cublas::SetAtomicsMode>,
                              Setting<&Cublas::GetSmCountTarget, &Cublas::SetSmCountTarget>>;

 protected:
  Cublas() = default;
  void Link() { CUGUEST_CUBLAS_ENTRIES(CUGUEST_LIBRARY_LINK); }
  std::vector<internal::LibraryEntry> Entries() {
    return {CUGUEST_CUBLAS_ENTRIES(CUGUEST_LIBRARY_FIND)};
  }
};

}  // namespace impl

#undef CUGUEST_CUBLAS_ENTRIES

/// See ToolkitFunctions. Open() opens "libcublas.so.<major version of the header>" by default.
using CublasLibrary = ToolkitFunctions<impl::Cublas>;

/// The cuBLAS handles of a library or program. LibraryHandles has the rest of the contract.
/// Count:   none. cuBLAS itself keeps two references to a primary context, from the first handle
///          that is made in it to the end of the process.
/// Cost:    on an H100 a handle takes 66 MiB of device memory and 0.1 to 0.3 ms to make, the first
///          in a process 17 ms. The first call of a routine in a process takes another 0.2 s, and
///          in a context waits for all work there: call it before any work there waits for you.
using CublasHandles = LibraryHandles<impl::Cublas>;

/// Borrows a handle for itself, makes the context of `stream` current, puts the thread into relaxed
/// capture mode, and sets the handle's stream, and its workspace if one is given. Its end restores
/// the pointer mode, math mode, atomics mode and SM count target with which cuBLAS made the handle,
/// and the caller's stack and capture mode, as a ContextGuard and a CaptureModeGuard do. A handle
/// that could not be restored is not lent again. Stream and workspace stay in the idle handle,
/// which uses neither, until the next scope sets its own. The settings of floating-point emulation
/// (cuBLAS 13.1) are not restored: code that sets them must do so.
/// Stack:   as ContextGuard: +1 or +0 on construction, undone at the end.
/// Count:   none.
/// Threads: bound; as ContextGuard, scopes end in any order. A thread may have several, each with a
///          handle of its own.
/// Errors:  test ok(); nothing is disturbed and nothing borrowed when it is false. status() is
///            kInvalidArgument     an empty StreamRef; CU_STREAM_PER_THREAD of a green context; a
///                                 workspace of another device, or not aligned to 256 bytes
///            kFailedPrecondition  the context, or that of the workspace's memory, was destroyed or
///                                 reset; a forked child; stream 0, while a blocking stream of its
///                                 context captures: any work on it would invalidate the capture
///            kPermissionDenied    inside a stream callback
///            kCancelled           the process is ending
///            kDataLoss            an earlier sticky error
///            kResourceExhausted   a handle had to be made, and there was no memory
///            and others of ContextGuard, CaptureModeGuard and ToStatus(cublasStatus_t)
/// Cost:    with an idle handle and the context current, five contention-free driver calls (six for
///          stream 0 and CU_STREAM_PER_THREAD), one cublasSetStream and four cublasGet...: on an
///          H200 1.7 times a push, a cublasSetStream and a pop, and the whole scope 2.6 times; with
///          16 threads 0.17 times (docs/cost.md). A push, a pop and a query more if it is not
///          current; a cublasSetWorkspace more with a workspace. A thread finds at once the handle
///          that it had last. The first scope in a context, and at each depth of concurrency, makes
///          its handle: see CublasHandles.
using CublasScope = LibraryScope<impl::Cublas>;

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_LIBRARIES_CUBLAS_H_

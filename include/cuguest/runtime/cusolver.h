// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// runtime/cusolver.h                                                    tier: 4
// -----------------------------------------------------------------------------
//
// cuSOLVER's dense part in whatever context, from whatever thread: the same as runtime/cublas.h is
// for cuBLAS, which says what is to be known; also where a handle may be used, and what
// captures forbid.
//
//   const runtime::CusolverDnScope solver(handles, stream);
//   if (!solver.ok()) return solver.status();
//   return runtime::ToStatus(cusolverDnSpotrf(solver.handle(), ...), "factorise");

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
#include "cuguest/internal/library_file.h"
#include "cuguest/internal/library_handle.h"
#include "cuguest/runtime/error.h"
#include "cuguest/stream.h"

// X(member, function)
#define CUGUEST_CUSOLVER_ENTRIES(X)                       \
  X(Create, cusolverDnCreate)                             \
  X(Destroy, cusolverDnDestroy)                           \
  X(GetProperty, cusolverGetProperty)                     \
  X(SetStream, cusolverDnSetStream)                       \
  X(GetDeterministicMode, cusolverDnGetDeterministicMode) \
  X(SetDeterministicMode, cusolverDnSetDeterministicMode)

CUGUEST_BEGIN_RUNTIME_NAMESPACE

// As ToStatus(cublasStatus_t). cuSOLVER has no words of its own: these are from its documentation.
[[nodiscard]] inline absl::Status ToStatus(cusolverStatus_t code, std::string_view doing,
                                           std::string_view object = {}) {
  if (code == CUSOLVER_STATUS_SUCCESS) return absl::OkStatus();
  return ::cuguest::internal::MakeLibraryStatus(::cuguest::internal::Library::kCusolver,
                                                static_cast<int>(code), doing, object);
}

// As CublasCodeOf().
[[nodiscard]] inline std::optional<cusolverStatus_t> CusolverCodeOf(const absl::Status& status) {
  const std::optional<int> code =
      ::cuguest::internal::LibraryCodeOf(::cuguest::internal::Library::kCusolver, status);
  if (!code.has_value()) return std::nullopt;
  return static_cast<cusolverStatus_t>(*code);
}

// As CublasLibrary, which says what each function does, needs and costs; by default
// "libcusolver.so.<major version of the header>".
struct CusolverLibrary {
#define CUGUEST_DECLARE_ENTRY(Name, function) decltype(&::function) Name = nullptr;
  CUGUEST_CUSOLVER_ENTRIES(CUGUEST_DECLARE_ENTRY)
#undef CUGUEST_DECLARE_ENTRY

  [[nodiscard]] static CusolverLibrary Linked() {
    CusolverLibrary library;
#define CUGUEST_TAKE_ENTRY(Name, function) library.Name = &::function;
    CUGUEST_CUSOLVER_ENTRIES(CUGUEST_TAKE_ENTRY)
#undef CUGUEST_TAKE_ENTRY
    return library;
  }

  [[nodiscard]] static absl::StatusOr<CusolverLibrary> Open(const char* name = nullptr) {
    absl::StatusOr<::cuguest::internal::LibraryFile> file =
        ::cuguest::internal::LibraryFile::Open(name, "libcusolver", CUSOLVER_VER_MAJOR);
    if (!file.ok()) return file.status();
    CusolverLibrary library;
    library.file_ = *std::move(file);
    absl::Status status;
#define CUGUEST_FILL_ENTRY(Name, function) library.file_.Fill(#function, &library.Name, &status);
    CUGUEST_CUSOLVER_ENTRIES(CUGUEST_FILL_ENTRY)
#undef CUGUEST_FILL_ENTRY
    int major = 0;
    if (status.ok()) {
      status = ToStatus(library.GetProperty(MAJOR_VERSION, &major), "ask cuSOLVER for its version");
    }
    if (status.ok()) status = library.file_.CheckMajor(major, CUSOLVER_VER_MAJOR);
    if (!status.ok()) return status;
    return library;
  }

  template <typename Function>
  [[nodiscard]] absl::StatusOr<Function> Find(const char* symbol) const {
    return file_.FindAs<Function>(symbol);
  }

 private:
  CusolverLibrary() = default;

  ::cuguest::internal::LibraryFile file_;
};

#undef CUGUEST_CUSOLVER_ENTRIES

namespace internal {

struct CusolverDnApi {
  using Library = CusolverLibrary;
  using Handle = cusolverDnHandle_t;
  using Code = cusolverStatus_t;
  static constexpr char kName[] = "a cuSOLVER handle";
  static constexpr bool kDestroyEndsCaptures = true;
  static constexpr bool kTakesWorkspace = false;

  static absl::Status ToStatus(Code code, std::string_view doing) {
    return runtime::ToStatus(code, doing);
  }

  struct Settings {
    Code Read(const Library& cusolver, Handle handle) {
      return cusolver.GetDeterministicMode(handle, &mode);
    }
    Code PutBack(const Library& cusolver, Handle handle) const {
      return internal::PutBack(cusolver.GetDeterministicMode, cusolver.SetDeterministicMode, handle,
                               mode);
    }

    cusolverDeterministicMode_t mode = CUSOLVER_DETERMINISTIC_RESULTS;
  };
};

}  // namespace internal

// CusolverDnHandles
//
// As CublasHandles, which says everything. A handle takes about 100 MiB of device memory: it has a
// cuBLAS handle inside.
class CusolverDnHandles {
 public:
  CusolverDnHandles() : CusolverDnHandles(CusolverLibrary::Linked()) {}
  explicit CusolverDnHandles(const CusolverLibrary& library)
      : library_(library), pools_(internal::kHandleType<internal::CusolverDnApi>, &library_) {}
  CusolverDnHandles(const CusolverDnHandles&) = delete;
  CusolverDnHandles& operator=(const CusolverDnHandles&) = delete;
  ~CusolverDnHandles() = default;

  [[nodiscard]] const CusolverLibrary& library() const noexcept { return library_; }

  absl::Status Prepare(const ContextRef& context, std::size_t count = 1,
                       const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return pools_.Prepare(context, nullptr, count, file, line);
  }
  bool Forget(const ContextRef& context) { return pools_.Forget(context); }
  bool ForgetDestroyed(const ContextRef& context) { return pools_.ForgetDestroyed(context); }
  std::size_t DropDead() { return pools_.DropDead(); }

 private:
  friend class CusolverDnScope;

  CusolverLibrary library_;
  ::cuguest::internal::HandlePools pools_;
};

// CusolverDnScope
//
// As CublasScope, without a workspace: cuSOLVER takes it with each call. At its end the handle has
// the deterministic mode with which cuSOLVER made it. Not put back: math mode and emulation
// strategy, which not every cuSOLVER 12 has; who sets them puts them back.
//
// Stack, count, threads, errors: as CublasScope.
// Cost:    as CublasScope, with one cusolverDnGetDeterministicMode instead of four cublasGet...
// Source:  test/runtime/cusolver_test.cc; test/runtime/library_test.cc.
class [[nodiscard]] CusolverDnScope {
 public:
  CusolverDnScope(CusolverDnHandles& handles, const StreamRef& stream,
                  const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : scope_(handles.pools_, {stream}, file, line) {}

  [[nodiscard]] bool ok() const noexcept { return scope_.ok(); }
  [[nodiscard]] const absl::Status& status() const noexcept { return scope_.status(); }

  // nullptr unless ok(). Good until the scope ends, on this thread; not to be destroyed.
  [[nodiscard]] cusolverDnHandle_t handle() const noexcept {
    return internal::LibraryHandle<internal::CusolverDnApi>::Get(scope_.handle());
  }

  // As those of CublasScope.
  [[nodiscard]] absl::Status CheckOperand(const void* pointer, std::size_t bytes) const {
    return scope_.CheckOperand(::cuguest::internal::AddressOf(pointer), bytes);
  }
  absl::Status Reassert() { return scope_.Reassert(); }
  absl::Status Restore() { return scope_.Restore(); }

 private:
  ::cuguest::internal::HandleScope scope_;
};

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_RUNTIME_CUSOLVER_H_

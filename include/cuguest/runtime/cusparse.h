// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// runtime/cusparse.h                                                    tier: 4
// -----------------------------------------------------------------------------
//
// cuSPARSE in whatever context, from whatever thread: the same as runtime/cublas.h is for cuBLAS,
// which says what is to be known; also where a handle may be used. Descriptors of matrices and
// vectors belong to no context, and are not part of this.
//
//   const runtime::CusparseScope sparse(handles, stream);
//   if (!sparse.ok()) return sparse.status();
//   return runtime::ToStatus(cusparseSpMV(sparse.handle(), ...), "multiply");

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
#include "cuguest/internal/library_file.h"
#include "cuguest/internal/library_handle.h"
#include "cuguest/runtime/error.h"
#include "cuguest/stream.h"

// X(member, function)
#define CUGUEST_CUSPARSE_ENTRIES(X)   \
  X(Create, cusparseCreate)           \
  X(Destroy, cusparseDestroy)         \
  X(GetProperty, cusparseGetProperty) \
  X(SetStream, cusparseSetStream)     \
  X(GetPointerMode, cusparseGetPointerMode) X(SetPointerMode, cusparseSetPointerMode)

CUGUEST_BEGIN_RUNTIME_NAMESPACE

// As ToStatus(cublasStatus_t), with the words of cusparseGetErrorString.
[[nodiscard]] inline absl::Status ToStatus(cusparseStatus_t code, std::string_view doing,
                                           std::string_view object = {}) {
  if (code == CUSPARSE_STATUS_SUCCESS) return absl::OkStatus();
  return ::cuguest::internal::MakeLibraryStatus(::cuguest::internal::Library::kCusparse,
                                                static_cast<int>(code), doing, object);
}

// As CublasCodeOf().
[[nodiscard]] inline std::optional<cusparseStatus_t> CusparseCodeOf(const absl::Status& status) {
  const std::optional<int> code =
      ::cuguest::internal::LibraryCodeOf(::cuguest::internal::Library::kCusparse, status);
  if (!code.has_value()) return std::nullopt;
  return static_cast<cusparseStatus_t>(*code);
}

// As CublasLibrary, which says what each function does, needs and costs; by default
// "libcusparse.so.<major version of the header>".
struct CusparseLibrary {
#define CUGUEST_DECLARE_ENTRY(Name, function) decltype(&::function) Name = nullptr;
  CUGUEST_CUSPARSE_ENTRIES(CUGUEST_DECLARE_ENTRY)
#undef CUGUEST_DECLARE_ENTRY

  [[nodiscard]] static CusparseLibrary Linked() {
    CusparseLibrary library;
#define CUGUEST_TAKE_ENTRY(Name, function) library.Name = &::function;
    CUGUEST_CUSPARSE_ENTRIES(CUGUEST_TAKE_ENTRY)
#undef CUGUEST_TAKE_ENTRY
    return library;
  }

  [[nodiscard]] static absl::StatusOr<CusparseLibrary> Open(const char* name = nullptr) {
    absl::StatusOr<::cuguest::internal::LibraryFile> file =
        ::cuguest::internal::LibraryFile::Open(name, "libcusparse", CUSPARSE_VER_MAJOR);
    if (!file.ok()) return file.status();
    CusparseLibrary library;
    library.file_ = *std::move(file);
    absl::Status status;
#define CUGUEST_FILL_ENTRY(Name, function) library.file_.Fill(#function, &library.Name, &status);
    CUGUEST_CUSPARSE_ENTRIES(CUGUEST_FILL_ENTRY)
#undef CUGUEST_FILL_ENTRY
    int major = 0;
    if (status.ok()) {
      status = ToStatus(library.GetProperty(MAJOR_VERSION, &major), "ask cuSPARSE for its version");
    }
    if (status.ok()) status = library.file_.CheckMajor(major, CUSPARSE_VER_MAJOR);
    if (!status.ok()) return status;
    return library;
  }

  template <typename Function>
  [[nodiscard]] absl::StatusOr<Function> Find(const char* symbol) const {
    return file_.FindAs<Function>(symbol);
  }

 private:
  CusparseLibrary() = default;

  ::cuguest::internal::LibraryFile file_;
};

#undef CUGUEST_CUSPARSE_ENTRIES

namespace internal {

struct CusparseApi {
  using Library = CusparseLibrary;
  using Handle = cusparseHandle_t;
  using Code = cusparseStatus_t;
  static constexpr char kName[] = "a cuSPARSE handle";
  static constexpr bool kDestroyEndsCaptures = false;
  static constexpr bool kTakesWorkspace = false;

  static absl::Status ToStatus(Code code, std::string_view doing) {
    return runtime::ToStatus(code, doing);
  }

  struct Settings {
    Code Read(const Library& cusparse, Handle handle) {
      return cusparse.GetPointerMode(handle, &mode);
    }
    Code PutBack(const Library& cusparse, Handle handle) const {
      return internal::PutBack(cusparse.GetPointerMode, cusparse.SetPointerMode, handle, mode);
    }

    cusparsePointerMode_t mode = CUSPARSE_POINTER_MODE_HOST;
  };
};

}  // namespace internal

// CusparseHandles
//
// As CublasHandles, which says everything. Handles are cheap here: they take no device memory
// and microseconds to make, and destroying one harms no capture.
class CusparseHandles {
 public:
  CusparseHandles() : CusparseHandles(CusparseLibrary::Linked()) {}
  explicit CusparseHandles(const CusparseLibrary& library)
      : library_(library), pools_(internal::kHandleType<internal::CusparseApi>, &library_) {}
  CusparseHandles(const CusparseHandles&) = delete;
  CusparseHandles& operator=(const CusparseHandles&) = delete;
  ~CusparseHandles() = default;

  [[nodiscard]] const CusparseLibrary& library() const noexcept { return library_; }

  absl::Status Prepare(const ContextRef& context, std::size_t count = 1,
                       const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return pools_.Prepare(context, nullptr, count, file, line);
  }
  bool Forget(const ContextRef& context) { return pools_.Forget(context); }
  bool ForgetDestroyed(const ContextRef& context) { return pools_.ForgetDestroyed(context); }
  std::size_t DropDead() { return pools_.DropDead(); }

 private:
  friend class CusparseScope;

  CusparseLibrary library_;
  ::cuguest::internal::HandlePools pools_;
};

// CusparseScope
//
// As CublasScope, without a workspace: cuSPARSE takes it with each call. At its end the handle has
// the pointer mode with which cuSPARSE made it.
//
// Stack, count, threads, errors: as CublasScope.
// Cost:    as CublasScope, with one cusparseGetPointerMode instead of four cublasGet...
// Source:  test/runtime/cusparse_test.cc; test/runtime/library_test.cc.
class [[nodiscard]] CusparseScope {
 public:
  CusparseScope(CusparseHandles& handles, const StreamRef& stream,
                const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : scope_(handles.pools_, {stream}, file, line) {}

  [[nodiscard]] bool ok() const noexcept { return scope_.ok(); }
  [[nodiscard]] const absl::Status& status() const noexcept { return scope_.status(); }

  // nullptr unless ok(). Good until the scope ends, on this thread; not to be destroyed.
  [[nodiscard]] cusparseHandle_t handle() const noexcept {
    return internal::LibraryHandle<internal::CusparseApi>::Get(scope_.handle());
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

#endif  // CUGUEST_RUNTIME_CUSPARSE_H_

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
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/internal/handle_pool.h"
#include "cuguest/internal/library_error.h"
#include "cuguest/internal/library_file.h"
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
    absl::StatusOr<::cuguest::internal::LibraryFile> file = ::cuguest::internal::LibraryFile::Open(
        name != nullptr ? name : "libcusolver.so." + std::to_string(CUSOLVER_VER_MAJOR));
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
    const absl::StatusOr<void*> found = file_.Find(symbol);
    if (!found.ok()) return found.status();
    return reinterpret_cast<Function>(*found);
  }

 private:
  ::cuguest::internal::LibraryFile file_;
};

#undef CUGUEST_CUSOLVER_ENTRIES

namespace internal {

// A handle, and the setting with which cuSOLVER made it.
class CusolverDnHandle {
 public:
  static absl::StatusOr<void*> Make(const void* library, const ContextRef&, const void*) {
    std::unique_ptr<CusolverDnHandle> made(new (std::nothrow) CusolverDnHandle);
    if (made == nullptr) {
      return absl::ResourceExhaustedError("make a cuSOLVER handle: no host memory");
    }
    const CusolverLibrary& cusolver = Of(library);
    absl::Status status = ToStatus(cusolver.Create(&made->handle_), "make a cuSOLVER handle");
    if (!status.ok()) return status;
    status = ToStatus(cusolver.GetDeterministicMode(made->handle_, &made->mode_),
                      "read a cuSOLVER handle's settings");
    if (status.ok()) return made.release();
    // Not destroyed: that would end captures.
    return status;
  }

  static absl::Status Begin(const void* library, void* self,
                            const ::cuguest::internal::HandleRequest& request) {
    return ToStatus(
        Of(library).SetStream(Get(self), reinterpret_cast<cudaStream_t>(request.stream.get())),
        "set the stream of a cuSOLVER handle");
  }

  static absl::Status End(const void* library, void* self) {
    const CusolverLibrary& cusolver = Of(library);
    const auto& made = *static_cast<const CusolverDnHandle*>(self);
    cusolverDeterministicMode_t now = made.mode_;
    cusolverStatus_t code = cusolver.GetDeterministicMode(made.handle_, &now);
    if (code == CUSOLVER_STATUS_SUCCESS && now != made.mode_) {
      code = cusolver.SetDeterministicMode(made.handle_, made.mode_);
    }
    return ToStatus(code, "put a cuSOLVER handle back as it was made");
  }

  static void Destroy(const void* library, void* self, bool is_over) {
    const std::unique_ptr<CusolverDnHandle> ending(static_cast<CusolverDnHandle*>(self));
    if (!is_over) static_cast<void>(Of(library).Destroy(ending->handle_));
  }

  static cusolverDnHandle_t Get(void* self) {
    return self == nullptr ? nullptr : static_cast<CusolverDnHandle*>(self)->handle_;
  }

 private:
  static const CusolverLibrary& Of(const void* library) {
    return *static_cast<const CusolverLibrary*>(library);
  }

  cusolverDnHandle_t handle_ = nullptr;
  cusolverDeterministicMode_t mode_ = {};
};

inline constexpr ::cuguest::internal::HandleType kCusolverDnHandles = {"a cuSOLVER handle",
                                                                       false,
                                                                       true,
                                                                       &CusolverDnHandle::Make,
                                                                       nullptr,
                                                                       &CusolverDnHandle::Begin,
                                                                       &CusolverDnHandle::End,
                                                                       &CusolverDnHandle::Destroy};

}  // namespace internal

// CusolverDnHandles
//
// As CublasHandles, which says everything. A handle takes about 100 MiB of device memory: it has a
// cuBLAS handle inside.
class CusolverDnHandles {
 public:
  CusolverDnHandles() : CusolverDnHandles(CusolverLibrary::Linked()) {}
  explicit CusolverDnHandles(const CusolverLibrary& library)
      : library_(library), pools_(internal::kCusolverDnHandles, &library_) {}
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
// the deterministic mode with which cuSOLVER made it.
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
    return internal::CusolverDnHandle::Get(scope_.handle());
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

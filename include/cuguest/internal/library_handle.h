// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// internal/library_handle.h                                             tier: 4
// -----------------------------------------------------------------------------
//
// Not for embedders. What the headers of cuBLAS, cuSOLVER and cuSPARSE under runtime/ share: a
// handle as a HandlePool deals with it.

#ifndef CUGUEST_INTERNAL_LIBRARY_HANDLE_H_
#define CUGUEST_INTERNAL_LIBRARY_HANDLE_H_

#include <cuda.h>

#include <memory>
#include <new>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/internal/handle_pool.h"
#include "cuguest/internal/library_error.h"
#include "cuguest/runtime/binding.h"

CUGUEST_BEGIN_RUNTIME_NAMESPACE
namespace internal {

// LibraryHandle
//
// A handle, and the settings with which the library made it. `Api` has
//   kLibrary, kName, kDestroyEndsCaptures
//   Table, Handle, Code            types; Code{} is success
//   kTakesWorkspace                and if it does
//   SetWorkspace(library, handle, area)
//   Settings                       with Code Read(library, handle), and
//                                  Code PutBack(library, handle) const
template <typename Api>
class LibraryHandle {
  using Table = typename Api::Table;
  using Handle = typename Api::Handle;
  using Code = typename Api::Code;
  using Request = ::cuguest::internal::HandleRequest;

 public:
  CUGUEST_HIDE static Handle Get(void* self) {
    return self == nullptr ? nullptr : static_cast<LibraryHandle*>(self)->handle_;
  }

  CUGUEST_HIDE static absl::StatusOr<void*> Make(const void* library, const ContextRef&,
                                                 const void*) {
    std::unique_ptr<LibraryHandle> made(new (std::nothrow) LibraryHandle);
    if (made == nullptr) {
      return absl::ResourceExhaustedError(std::string("make ") + Api::kName + ": no host memory");
    }
    const absl::Status created = Say(Of(library).Create(&made->handle_), "make ");
    if (!created.ok()) return created;
    const absl::Status read =
        Say(made->settings_.Read(Of(library), made->handle_), "read the settings of ");
    // On failure it is not destroyed: that may end captures.
    if (!read.ok()) return read;
    return made.release();
  }

  CUGUEST_HIDE static absl::Status Begin(const void* library, void* self, const Request& request) {
    // Of cuBLAS, this takes the last user's workspace away, too.
    const auto stream = reinterpret_cast<cudaStream_t>(request.stream.get());
    absl::Status status = Say(Of(library).SetStream(Get(self), stream), "set the stream of ");
    if constexpr (Api::kTakesWorkspace) {
      if (!status.ok() || !request.brings_work_area) return status;
      return Say(Api::SetWorkspace(Of(library), Get(self), request.work_area),
                 "set the workspace of ");
    }
    return status;
  }

  CUGUEST_HIDE static bool End(const void* library, void* self, absl::Status* why) {
    const Code code = static_cast<LibraryHandle*>(self)->settings_.PutBack(Of(library), Get(self));
    if (why != nullptr) static_cast<void>(*why = Say(code, "put back the settings of "));
    return code == Code{};
  }

  CUGUEST_HIDE static void Destroy(const void* library, void* self, bool is_over) {
    const std::unique_ptr<LibraryHandle> ending(static_cast<LibraryHandle*>(self));
    if (!is_over) static_cast<void>(Of(library).Destroy(ending->handle_));
  }

 private:
  CUGUEST_HIDE static const Table& Of(const void* library) {
    return *static_cast<const Table*>(library);
  }

  CUGUEST_HIDE static absl::Status Say(Code code, const char* doing) {
    if (code == Code{}) return absl::OkStatus();  // before the text is made
    return ::cuguest::internal::ToLibraryStatus(Api::kLibrary, code,
                                                std::string(doing) + Api::kName);
  }

  Handle handle_ = nullptr;
  typename Api::Settings settings_;
};

template <typename Api>
inline constexpr ::cuguest::internal::HandleType kHandleType = {Api::kName,
                                                                /*make_ends_captures=*/false,
                                                                Api::kDestroyEndsCaptures,
                                                                &LibraryHandle<Api>::Make,
                                                                nullptr,
                                                                &LibraryHandle<Api>::Begin,
                                                                &LibraryHandle<Api>::End,
                                                                &LibraryHandle<Api>::Destroy};

// One setting of a handle: reads it and, if it differs from `made`, sets it.
template <typename Code, typename Handle, typename Value>
CUGUEST_HIDE Code PutBack(Code (*get)(Handle, Value*), Code (*set)(Handle, Value), Handle handle,
                          Value made) {
  Value now = made;
  const Code code = get(handle, &now);
  return code == Code{} && now != made ? set(handle, made) : code;
}

}  // namespace internal
CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_INTERNAL_LIBRARY_HANDLE_H_

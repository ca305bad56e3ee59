// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 4
//
// Not for embedders. A handle of cuBLAS, cuSOLVER or cuSPARSE, as a HandlePool deals with it. That
// of cuFFT, a plan, is in libraries/cufft.h.

#ifndef CUGUEST_LIBRARIES_INTERNAL_LIBRARY_HANDLE_H_
#define CUGUEST_LIBRARIES_INTERNAL_LIBRARY_HANDLE_H_

#include <cuda.h>

#include <memory>
#include <new>
#include <string>
#include <tuple>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/libraries/internal/handle_pool.h"
#include "cuguest/libraries/internal/toolkit_library.h"
#include "cuguest/runtime/binding.h"

CUGUEST_BEGIN_RUNTIME_NAMESPACE
namespace impl {

// What a `Library`, impl::Cublas and the like, has: pointers to its functions, by the names of its
// list, which Link() sets and Entries() names, and
//   kLibrary, kStem, kMajor                       its codes, its file's name and version
//   Handle                                        type
//   kHasLayouts, kTakesWorkspace                  what a handle is made for, and a scope is given
// and, where LibraryHandle below is its handle's class,
//   Code                                          type; Code{} is success
//   kName, kDestroyEndsCaptures
//   Settings                                      a std::tuple of Setting<...>

// One setting of a handle, by the functions of its library, and the value with which the library
// made it.
template <auto kGet, auto kSet>
class Setting;
template <typename Library, typename Code, typename Handle, typename Value,
          Code (*Library::*kGet)(Handle, Value*), Code (*Library::*kSet)(Handle, Value)>
class Setting<kGet, kSet> {
 public:
  Code Read(const Library& library, Handle handle) { return (library.*kGet)(handle, &made_); }
  // `*changed` if it had to be set.
  Code PutBack(const Library& library, Handle handle, bool* changed) const {
    Value now = made_;
    const Code code = (library.*kGet)(handle, &now);
    if (code != Code{} || now == made_) return code;
    *changed = true;
    return (library.*kSet)(handle, made_);
  }

 private:
  Value made_{};
};

// LibraryHandle
//
// A handle, and the settings with which the library made it.
template <typename Library>
class LibraryHandle {
  using Handle = typename Library::Handle;
  using Code = typename Library::Code;

 public:
  static Handle Get(void* self) {
    return self == nullptr ? nullptr : static_cast<LibraryHandle*>(self)->handle_;
  }

  static absl::StatusOr<void*> Make(const void* library, const ContextRef&, const void*) {
    std::unique_ptr<LibraryHandle> made(new (std::nothrow) LibraryHandle);
    if (made == nullptr) {
      return absl::ResourceExhaustedError(std::string("make ") + Library::kName +
                                          ": no host memory");
    }
    absl::Status created = Say(Of(library).Create(&made->handle_), "make ");
    if (!created.ok()) return created;
    // If this fails the handle is not destroyed: that may end captures.
    absl::Status read = Say(made->ForEachSetting([&](auto& setting) {
      return setting.Read(Of(library), made->handle_);
    }),
                            "read the settings of ");
    if (!read.ok()) return read;
    return made.release();
  }

  static absl::Status Begin(const void* library, void* self,
                            const internal::HandleRequest& request) {
    // Of cuBLAS, this takes the last user's workspace away, too.
    const cudaStream_t stream = request.stream.get();
    absl::Status status = Say(Of(library).SetStream(Get(self), stream), "set the stream of ");
    if constexpr (Library::kTakesWorkspace) {
      if (!status.ok() || request.work_area == nullptr) return status;
      return Say(
          Of(library).SetWorkspace(Get(self), reinterpret_cast<void*>(request.work_area->pointer),
                                   request.work_area->bytes),
          "set the workspace of ");
    }
    return status;
  }

  static internal::PutBack End(const void* library, void* self, absl::Status* why) {
    bool changed = false;
    const Code code = static_cast<LibraryHandle*>(self)->ForEachSetting(
        [&](const auto& setting) { return setting.PutBack(Of(library), Get(self), &changed); });
    if (internal::Rarely(code != Code{})) {
      if (why != nullptr) {
        static_cast<void>(*why = Failure(code, "put back the settings of "));  // nvcc asks for it
      }
      return internal::PutBack::kFailed;
    }
    return changed ? internal::PutBack::kChanged : internal::PutBack::kUnchanged;
  }

  static void Destroy(const void* library, void* self, bool is_over) {
    const std::unique_ptr<LibraryHandle> ending(static_cast<LibraryHandle*>(self));
    if (!is_over) static_cast<void>(Of(library).Destroy(ending->handle_));
  }

  static constexpr internal::HandleType kType = {Library::kName,
                                                 /*make_ends_captures=*/false,
                                                 Library::kDestroyEndsCaptures,
                                                 &Make,
                                                 nullptr,
                                                 &Begin,
                                                 &End,
                                                 &Destroy};

 private:
  static const Library& Of(const void* library) { return *static_cast<const Library*>(library); }

  static absl::Status Say(Code code, const char* doing) {
    return internal::Mostly(code == Code{}) ? absl::OkStatus() : Failure(code, doing);
  }
  // Out of line, because of the text.
  [[gnu::noinline, gnu::cold]] static absl::Status Failure(Code code, const char* doing) {
    return internal::ToLibraryStatus(Library::kLibrary, code, std::string(doing) + Library::kName);
  }

  // The first failure of step(setting).
  template <typename Step>
  Code ForEachSetting(const Step& step) {
    Code code{};
    std::apply(
        [&](auto&... setting) { static_cast<void>((((code = step(setting)) == Code{}) && ...)); },
        settings_);
    return code;
  }

  Handle handle_ = nullptr;
  typename Library::Settings settings_;
};

}  // namespace impl
CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_LIBRARIES_INTERNAL_LIBRARY_HANDLE_H_

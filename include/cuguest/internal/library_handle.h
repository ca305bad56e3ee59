// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 4
//
// Not for embedders. A handle of cuBLAS, cuSOLVER or cuSPARSE, as a HandlePool deals with it. That
// of cuFFT, a plan, is in runtime/cufft.h.

#ifndef CUGUEST_INTERNAL_LIBRARY_HANDLE_H_
#define CUGUEST_INTERNAL_LIBRARY_HANDLE_H_

#include <cuda.h>

#include <memory>
#include <new>
#include <string>
#include <tuple>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/internal/handle_pool.h"
#include "cuguest/internal/toolkit_library.h"
#include "cuguest/runtime/binding.h"

CUGUEST_BEGIN_RUNTIME_NAMESPACE
namespace impl {

// LibraryTraits
//
// What is to be known of the library of a `Table`, beside its functions:
//   kLibrary, kStem, kMajor                       its codes, its file's name and version
// and for LibraryHandle
//   Handle, Code                                  types; Code{} is success
//   kName, kDestroyEndsCaptures, kTakesWorkspace
//   Settings                                      a std::tuple of Setting<...>
template <typename Table>
struct LibraryTraits;

// One setting of a handle, by the functions of its table, and the value with which the library
// made it.
template <auto kGet, auto kSet>
class Setting;
template <typename Table, typename Code, typename Handle, typename Value,
          Code (*Table::*kGet)(Handle, Value*), Code (*Table::*kSet)(Handle, Value)>
class Setting<kGet, kSet> {
 public:
  CUGUEST_HIDE Code Read(const Table& library, Handle handle) {
    return (library.*kGet)(handle, &made_);
  }
  // `*changed` if it had to be set.
  CUGUEST_HIDE Code PutBack(const Table& library, Handle handle, bool* changed) const {
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
template <typename Table>
class LibraryHandle {
  using Traits = LibraryTraits<Table>;
  using Handle = typename Traits::Handle;
  using Code = typename Traits::Code;

 public:
  CUGUEST_HIDE static Handle Get(void* self) {
    return self == nullptr ? nullptr : static_cast<LibraryHandle*>(self)->handle_;
  }

  CUGUEST_HIDE static absl::StatusOr<void*> Make(const void* library, const ContextRef&,
                                                 const void*) {
    std::unique_ptr<LibraryHandle> made(new (std::nothrow) LibraryHandle);
    if (made == nullptr) {
      return absl::ResourceExhaustedError(std::string("make ") + Traits::kName +
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

  CUGUEST_HIDE static absl::Status Begin(const void* library, void* self,
                                         const internal::HandleRequest& request) {
    // Of cuBLAS, this takes the last user's workspace away, too.
    const auto stream = reinterpret_cast<cudaStream_t>(request.stream.get());
    absl::Status status = Say(Of(library).SetStream(Get(self), stream), "set the stream of ");
    if constexpr (Traits::kTakesWorkspace) {
      if (!status.ok() || request.work_area == nullptr) return status;
      return Say(
          Of(library).SetWorkspace(Get(self), reinterpret_cast<void*>(request.work_area->pointer),
                                   request.work_area->bytes),
          "set the workspace of ");
    }
    return status;
  }

  CUGUEST_HIDE static internal::PutBack End(const void* library, void* self, absl::Status* why) {
    bool changed = false;
    const Code code = static_cast<LibraryHandle*>(self)->ForEachSetting(
        [&](const auto& setting) { return setting.PutBack(Of(library), Get(self), &changed); });
    if (why != nullptr) static_cast<void>(*why = Say(code, "put back the settings of "));
    if (code != Code{}) return internal::PutBack::kFailed;
    return changed ? internal::PutBack::kChanged : internal::PutBack::kUnchanged;
  }

  CUGUEST_HIDE static void Destroy(const void* library, void* self, bool is_over) {
    const std::unique_ptr<LibraryHandle> ending(static_cast<LibraryHandle*>(self));
    if (!is_over) static_cast<void>(Of(library).Destroy(ending->handle_));
  }

  CUGUEST_HIDE static constexpr internal::HandleType kType = {Traits::kName,
                                                              /*make_ends_captures=*/false,
                                                              Traits::kDestroyEndsCaptures,
                                                              &Make,
                                                              nullptr,
                                                              &Begin,
                                                              &End,
                                                              &Destroy};

 private:
  CUGUEST_HIDE static const Table& Of(const void* library) {
    return *static_cast<const Table*>(library);
  }

  CUGUEST_HIDE static absl::Status Say(Code code, const char* doing) {
    if (code == Code{}) return absl::OkStatus();  // before the text is made
    return internal::ToLibraryStatus(Traits::kLibrary, code, std::string(doing) + Traits::kName);
  }

  // The first failure of step(setting).
  template <typename Step, CUGUEST_HIDE_TEMPLATE>
  CUGUEST_HIDE Code ForEachSetting(const Step& step) {
    Code code{};
    std::apply(
        [&](auto&... setting) { static_cast<void>((((code = step(setting)) == Code{}) && ...)); },
        settings_);
    return code;
  }

  Handle handle_ = nullptr;
  typename Traits::Settings settings_;
};

}  // namespace impl
CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_INTERNAL_LIBRARY_HANDLE_H_

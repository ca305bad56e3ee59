// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// `Module` is device code that is loaded once for the process and used in every context: its
/// kernels by name, its variables by context.
///
///   absl::StatusOr<CodeImage> image = CodeImage::FromFile("filters.fatbin");
///   if (!image.ok()) return image.status();
///   absl::StatusOr<Module> module = Module::LoadIn(context, *image);
///   if (!module.ok()) return module.status();         // with the compiler's log
///   absl::StatusOr<Kernel> blur = module->GetKernel("blur");
///   absl::StatusOr<DeviceView<float>> weights = module->GetGlobal<float>(context, "weights");
///
///   extern const unsigned char kKernels[];            // embedded in the program
///   absl::StatusOr<Module> embedded = Module::Load({kKernels, kKernelsSize}, "kernels");
///
///   const char kPtx[] = R"(.version 8.0 ...)";        // or PTX, as text
///   absl::StatusOr<Module> compiled = Module::Load(kPtx, "kernels");
///
///   static Module::Once g_code(kPtx, "kernels");      // loaded once, when it is first needed
///   static Kernel::Once g_scale(g_code, "scale");
///   absl::StatusOr<const Kernel*> scale = g_scale.Get();

#ifndef CUGUEST_OBJECTS_MODULE_H_
#define CUGUEST_OBJECTS_MODULE_H_

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/objects/code_image.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/objects/host_span.h"
#include "cuguest/objects/internal/memory_range.h"
#include "cuguest/objects/jit.h"
#include "cuguest/objects/kernel.h"

CUGUEST_BEGIN_NAMESPACE

namespace internal {
class LoadedCode;
struct ModuleAccess;

// Text that stays as it is. Of a literal it is a constant at the start of the process also where
// the compiler does not count the letters of a string_view beforehand (GCC 12, C++17).
struct StaticText {
  template <std::size_t kSize, CUGUEST_HIDE_TEMPLATE>
  CUGUEST_HIDE constexpr StaticText(const char (&literal)[kSize]) noexcept
      : text(literal, kSize - 1) {}
  CUGUEST_HIDE constexpr StaticText(std::string_view view) noexcept : text(view) {}
  std::string_view text;
};
}  // namespace internal

/// Stack:   net 0 in every call.
/// Count:   none; it keeps no context alive.
/// Threads: any; moves, Release() and the destructor not at the same time as another member. Not
///          from a stream callback: kPermissionDenied.
/// Errors:  those of ObjectDriver::Get(), what each function adds, and from all but Load(),
/// LoadIn() and
///          Release()
///            kFailedPrecondition  the Module is empty: moved from or unloaded; or the context that
///                                 it was given was destroyed or reset
///            kInvalidArgument     as of Kernel, in kernel.h
///          Nothing has changed then.
/// Captures: none is invalidated; see Note [Loading while something captures].
class CUGUEST_API Module {
 public:
  /// When the driver loads kernels: all with their code, or each at its first use.
  enum class LoadingMode { kEager, kLazy };

  /// Loads `image` for every context; no context need exist, and none is created.
  /// Requires: `image` has no damage that CodeImage::Validate() finds: it may crash the driver.
  /// Errors: those of Driver::GetInitialized(), and
  ///         kInvalidArgument  the image needs a linker (linker.h), or the driver refuses it or the
  ///                           options; for PTX the text has the compiler's error log
  ///         kUnimplemented    PTX of a newer toolkit than the driver's: the log has both versions
  ///         kFailedPrecondition  the image has nothing for any of the devices, as far as the
  ///                           driver says so here: the text has theirs, and what the image is for
  /// Cost:   four driver calls, one of which compiles PTX (milliseconds to minutes) unless the
  ///         driver's cache has it.
  [[nodiscard]] static absl::StatusOr<Module> Load(const CodeImage& image,
                                                   const JitOptions& options = {});

  /// As Load(), and loads the code in `context` now, so that the driver reports its errors here.
  /// Errors: those of Load(), and
  ///         kFailedPrecondition  the context was destroyed or reset; no code for its device
  ///         kResourceExhausted   no device memory
  /// Post:   *report, if given, has what the compiler reported, also on failure.
  /// Cost:   ten driver calls if the context is current, else twelve, with those of a guard.
  [[nodiscard]] static absl::StatusOr<Module> LoadIn(const ContextRef& context,
                                                     const CodeImage& image,
                                                     const JitOptions& options = {},
                                                     JitReport* report = nullptr);

  /// Both for an image that is embedded in the program, as by CodeImage::Borrow() and with its
  /// errors. `name` is for messages.
  /// Requires: `bytes` stay unchanged until the code is unloaded.
  [[nodiscard]] static absl::StatusOr<Module> Load(HostSpan<const unsigned char> bytes,
                                                   std::string_view name,
                                                   const JitOptions& options = {});
  [[nodiscard]] static absl::StatusOr<Module> LoadIn(const ContextRef& context,
                                                     HostSpan<const unsigned char> bytes,
                                                     std::string_view name,
                                                     const JitOptions& options = {},
                                                     JitReport* report = nullptr);

  /// Not for bytes that may end with the statement: see Note [Temporary containers].
  template <typename Bytes, typename = internal::IfEndsTooEarly<unsigned char, Bytes>>
  static absl::StatusOr<Module> Load(Bytes&& bytes, std::string_view name,
                                     const JitOptions& options = {}) = delete;
  template <typename Bytes, typename = internal::IfEndsTooEarly<unsigned char, Bytes>>
  static absl::StatusOr<Module> LoadIn(const ContextRef& context, Bytes&& bytes,
                                       std::string_view name, const JitOptions& options = {},
                                       JitReport* report = nullptr) = delete;

  /// Both for PTX, as by CodeImage::FromPtx() and with its errors: the text is copied.
  [[nodiscard]] static absl::StatusOr<Module> Load(std::string_view ptx, std::string_view name,
                                                   const JitOptions& options = {});
  [[nodiscard]] static absl::StatusOr<Module> LoadIn(const ContextRef& context,
                                                     std::string_view ptx, std::string_view name,
                                                     const JitOptions& options = {},
                                                     JitReport* report = nullptr);

  class Once;

  CUGUEST_HIDE Module() noexcept = default;  // empty
  CUGUEST_HIDE Module(Module&& other) noexcept = default;
  CUGUEST_HIDE Module& operator=(Module&& other) noexcept = default;
  /// Unloads the code once the last Kernel of it is destroyed too, and ignores the driver's result;
  /// Note [Where code is] says from which contexts. Safe wherever destructors run; but better never
  /// destroy a Module that lasts to the end of the process: see Note [No driver calls after main].
  CUGUEST_HIDE ~Module() = default;

  [[nodiscard]] CUGUEST_HIDE explicit operator bool() const noexcept { return code_ != nullptr; }

  /// The image's; empty if the Module is.
  [[nodiscard]] const std::string& name() const noexcept;

  /// Errors: kNotFound            the text lists the names that there are (from CUDA 12.4 on, those
  ///                              that the driver lists), the nearest first; and for a C++ kernel,
  ///                              whose name is mangled, how to declare it
  ///         kInvalidArgument     an empty name, or one with a NUL in it
  ///         and those of Driver::GetInitialized()
  /// Cost:   three driver calls, none if it was asked for before; and a lock, and a shared count:
  ///         keep the Kernel.
  [[nodiscard]] absl::StatusOr<Kernel> GetKernel(std::string_view name) const;

  /// Sorted; C++ names are mangled.
  /// Errors: kUnimplemented  below CUDA 12.4 (cuLibraryEnumerateKernels), and the image does not
  ///                         name all its kernels: see CodeImage::names_all_kernels()
  /// Cost:   four driver calls and one for each kernel; two below CUDA 12.4.
  [[nodiscard]] absl::StatusOr<std::vector<std::string>> KernelNames() const;

  /// The memory of a `__device__`, `__constant__` or `__managed__` variable in `context`, one T or
  /// an array of them. It exists as long as the code is loaded there; after a reset it is another
  /// one. Constants may be written between launches. In a green context it is memory of the primary
  /// context, which the view names and with which it ends.
  /// Errors: kNotFound         the code has no variable of that name; a kernel is none
  ///         kInvalidArgument  an empty name, or one with a NUL in it; the variable's size is no
  ///                           multiple of sizeof(T), or it is not aligned for T: the text has both
  ///                           numbers
  /// Cost:   eight driver calls, ten if the context is not current.
  template <typename T>
  [[nodiscard]] CUGUEST_HIDE absl::StatusOr<DeviceView<T>> GetGlobal(const ContextRef& context,
                                                                     std::string_view name) const {
    absl::StatusOr<internal::MemoryRange> range =
        FindGlobal(context, name, {sizeof(T), alignof(T)});
    if (!range.ok()) return range.status();
    return internal::RangeAccess::View<T>(*range);
  }

  /// Loads the machine code of every kernel to the context's device, as Kernel::Preload() does.
  /// Errors: those of KernelNames() and Kernel::Preload()
  absl::Status Preload(const ContextRef& context) const;

  /// Drops what is kept for a context that was destroyed or reset, without a driver call. Needed
  /// only below CUDA 12.0: see Note [Where code is].
  void ForgetDestroyed(const ContextRef& context) const;

  /// Unloads the code from every context now, and reports what the destructor cannot.
  /// Requires: what runs of it has ended, and no graph runs it later.
  /// Errors: kFailedPrecondition  Kernels hold the code, the text says how many; or a forked child
  /// Post:   empty on success, which CUDA_ERROR_DEINITIALIZED is: the process is ending.
  absl::Status Release();

 private:
  friend struct internal::ModuleAccess;
  CUGUEST_HIDE explicit Module(std::shared_ptr<internal::LoadedCode> code) noexcept
      : code_(std::move(code)) {}

  absl::StatusOr<internal::MemoryRange> FindGlobal(const ContextRef& context, std::string_view name,
                                                   const internal::ElementType& type) const;

  std::shared_ptr<internal::LoadedCode> code_;
};

/// Code that is loaded once for the process, when it is first needed, and unloaded by Close(). For
/// a static variable: it runs nothing when its library is loaded, unloaded, or at exit.
///
///   extern "C" int acme_close() { return ResultOf(g_code.Close()); }  // before dlclose()
///
/// A library that is unloaded without Close() leaves its code in the driver until the process ends.
/// Threads: any; Close() not at the same time as another member. No lock is held while the driver
///          is called: of two threads that load it at the same time one unloads its own.
class Module::Once {
 public:
  /// Of an embedded image, or of PTX.
  /// Requires: the image or the text, and `name`, stay as they are.
  CUGUEST_HIDE constexpr Once(HostSpan<const unsigned char> bytes,
                              internal::StaticText name) noexcept
      : bytes_(bytes), name_(name.text) {}
  CUGUEST_HIDE constexpr Once(internal::StaticText ptx, internal::StaticText name) noexcept
      : ptx_(ptx.text), name_(name.text) {}
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;

  /// Never null, and valid until Close().
  /// Errors, cost: those of Load() until it has succeeded: a failure is not kept. Then none.
  [[nodiscard]] CUGUEST_API absl::StatusOr<const Module*> Get();

  /// Unloads the code from every context that still exists, whichever is current, and ends each
  /// Kernel::Once of it. The next Get() loads it again. Nothing to do, and OK: where it is not
  /// loaded, after another Close(), at the end of the process, and in a forked child, in which the
  /// code is the parent's, and only the host memory is freed. Contexts may have been destroyed or
  /// reset. Below CUDA 12.0 it is unloaded from primary contexts and the current one; see Note
  /// [Where code is].
  /// Requires: no other call that uses the Module or a Kernel of it; what runs of it has ended, and
  ///           no graph runs it later.
  /// Errors:   kFailedPrecondition  somebody copied a Kernel, the text says how many copies exist
  ///           kPermissionDenied    in a stream callback
  ///           and the driver's. The code stays loaded then and can be used, or closed later.
  /// Captures: none is invalidated.
  /// Cost:     three driver calls; none where there is nothing to do. Below CUDA 12.0 three, and
  ///           three to six for each context.
  CUGUEST_API absl::Status Close();

 private:
  friend class Kernel::Once;

  HostSpan<const unsigned char> bytes_;
  std::string_view ptx_;
  std::string_view name_;
  std::atomic<const Module*> loaded_{nullptr};
  std::atomic<Kernel::Once*> found_{nullptr};  // the last one that has found its kernel
};

/// A kernel of such code, which is found once; in all else as Module::Once.
class Kernel::Once {
 public:
  /// Requires: `code` and `name` stay as they are; and from the first Get() on it exists as long as
  ///           `code` is used, or until that is closed.
  CUGUEST_HIDE constexpr Once(Module::Once& code, internal::StaticText name) noexcept
      : code_(code), name_(name.text) {}
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;

  /// Never null, and valid until Module::Once::Close().
  /// Errors, cost: those of Module::Once::Get() and Module::GetKernel() until it has succeeded.
  [[nodiscard]] CUGUEST_API absl::StatusOr<const Kernel*> Get();

 private:
  friend class Module::Once;

  Module::Once& code_;
  std::string_view name_;
  std::atomic<const Kernel*> found_{nullptr};
  Once* next_ = nullptr;  // that has found one of the same code
};

/// The mode that CUDA_MODULE_LOADING named when the driver was initialised.
/// Errors: those of ObjectDriver::Get(), and
///         kUnimplemented       a driver below CUDA 11.7, which knows eager loading only
///         kFailedPrecondition  before cuInit
/// Threads: any.
/// Cost:    one driver call.
[[nodiscard]] CUGUEST_API absl::StatusOr<Module::LoadingMode> GetLoadingMode();

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_MODULE_H_

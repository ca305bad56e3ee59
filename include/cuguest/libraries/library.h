// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 4
/// \file
/// What libraries/cublas.h, cufft.h, cusolver.h and cusparse.h share: the table of a library's
/// functions, its handles in all contexts, and the scope that borrows one. Each of those headers
/// says what differs, above all which calls end captures, and what they cost.

#ifndef CUGUEST_LIBRARIES_LIBRARY_H_
#define CUGUEST_LIBRARIES_LIBRARY_H_

#include <cuda.h>
#include <library_types.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/libraries/internal/handle_pool.h"
#include "cuguest/libraries/internal/library_handle.h"
#include "cuguest/libraries/internal/toolkit_library.h"
#include "cuguest/location.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/objects/internal/memory_range.h"
#include "cuguest/objects/stream.h"
#include "cuguest/runtime/binding.h"

/// What a library's list X(member, function) is expanded with.
#define CUGUEST_LIBRARY_POINTER(Name, function) decltype(&::function) Name = nullptr;
#define CUGUEST_LIBRARY_LINK(Name, function) Name = &::function;
#define CUGUEST_LIBRARY_FIND(Name, function) {#function, &Name},

CUGUEST_BEGIN_RUNTIME_NAMESPACE

template <typename Library>
class LibraryScope;

/// The functions of one toolkit library that its pool and its scope need: CublasLibrary and the
/// like.
/// Stack, count, last error: not touched. Needs and initialises no driver.
/// Threads: value.
template <typename Library>
class ToolkitFunctions : public Library {
 public:
  /// Those that the program is linked with. Only a program that calls it (or the handles' default
  /// constructor) needs the library at link time.
  [[nodiscard]] static ToolkitFunctions Linked() {
    ToolkitFunctions library;
    library.Link();
    return library;
  }

  /// Those of the library `name`, a soname or a path; by default NVIDIA's soname for the header's
  /// major version. It stays loaded to the end of the process, also on failure.
  /// Errors: kUnavailable         it cannot be loaded: the text holds the loader's words
  ///         kUnimplemented       one of the functions is missing: the text names it
  ///         kFailedPrecondition  its major version is not the header's
  ///         and those of the library's ToStatus(), if it does not say its version
  /// Cost:   the first time: loading it (a second, and hundreds of MiB of address space).
  [[nodiscard]] static absl::StatusOr<ToolkitFunctions> Open(const char* name = nullptr) {
    ToolkitFunctions library;
    absl::Status status = library.Load(name);
    if (!status.ok()) return status;
    return library;
  }

  /// Another function of the same library, for a program that does not link it:
  ///
  ///   auto sgemm = library.Find<decltype(&cublasSgemm_v2)>("cublasSgemm_v2");
  ///
  /// Errors: kUnimplemented    the library does not have it
  ///         kInvalidArgument  `symbol` is null
  /// Cost:   dlsym().
  template <typename Function>
  [[nodiscard]] absl::StatusOr<Function> Find(const char* symbol) const {
    const absl::StatusOr<void*> found = internal::FindSymbol(file_, name_, symbol);
    if (!found.ok()) return found.status();
    return reinterpret_cast<Function>(*found);
  }

 private:
  ToolkitFunctions() = default;

  absl::Status Load(const char* name) {
    name_ = name != nullptr ? name : Library::kStem + (".so." + std::to_string(Library::kMajor));
    const absl::StatusOr<void*> file = internal::OpenLibrary(name_);
    if (!file.ok()) return file.status();
    file_ = *file;
    int major = 0;
    absl::Status status = internal::FindEntries(file_, name_, this->Entries());
    if (status.ok()) {
      status =
          internal::ToLibraryStatus(Library::kLibrary, this->GetProperty(MAJOR_VERSION, &major),
                                    "ask for the version", Library::kStem);
    }
    return status.ok() ? internal::CheckMajor(name_, major, Library::kMajor) : status;
  }

  std::string name_;
  void* file_ = nullptr;
};

/// The handles (of cuFFT: plans) of a library or program, CublasHandles and the like: for each
/// incarnation of a context as many as were in use at a time. They are made when they are first
/// needed, or by Prepare(), and kept.
/// Stack:   net 0.
/// Count:   none; no context is kept alive. Call Forget() before destroying a context. The
///          destructor destroys the handles of primary contexts and of the current one, and gives
///          up all others, as PerContext does: call ForgetAll() first where the contexts go on.
/// Threads: any; the destructor not at the same time as another member.
/// Fork, and the end of the process: as PerContext. In a forked child and in a stream callback
///          everything is refused and nothing is called. Give it neither static nor thread_local
///          duration: `static auto& handles = *new CublasHandles;`.
/// After the context: a handle whose context was destroyed or reset is given up without a call, as
///          PerContext does with values, because most libraries would crash. Its device memory went
///          with the context; the library's host memory is leaked.
template <typename Library>
class LibraryHandles {
 public:
  /// With the library that the program is linked with; see ToolkitFunctions::Linked().
  LibraryHandles() : LibraryHandles(ToolkitFunctions<Library>::Linked()) {}
  explicit LibraryHandles(const ToolkitFunctions<Library>& library) : library_(library) {}
  LibraryHandles(const LibraryHandles&) = delete;
  LibraryHandles& operator=(const LibraryHandles&) = delete;

  /// See Count above; destroys as Forget().
  /// Requires: no scope is open.
  ~LibraryHandles() = default;

  [[nodiscard]] const ToolkitFunctions<Library>& library() const noexcept { return library_; }

  /// Makes handles until `context` has at least `count`, idle or in use. Invalidates no capture.
  /// Errors: those of ContextGuard, CaptureModeGuard and the library's ToStatus(), and
  ///         kResourceExhausted  no device or host memory. Handles made before the failure stay.
  /// Cost:   that of the handles, and five driver calls if the context is current, else seven.
  absl::Status Prepare(const ContextRef& context, std::size_t count = 1,
                       Location where = Location::Here()) {
    static_assert(!Library::kHasLayouts, "a plan is prepared for its layout");
    return pools_.Prepare(context, nullptr, count, where).status();
  }

  /// Drops the handles of this incarnation of `context`, and destroys them and those dropped
  /// before, unless a scope still uses one of them: then call Forget() again when it has ended,
  /// because no other call destroys them (only the caller knows what captures there by then), or
  /// ForgetDestroyed() when the context is destroyed. Returns whether there were any to drop; by
  /// then no other thread is destroying a handle of the context.
  /// Requires: nothing in the context captures: see Note [Handles and captures].
  /// Cost: most libraries wait for the context, once for each handle; Forget() waits for other
  ///       threads that destroy handles of the context.
  bool Forget(const ContextRef& context) { return pools_.Forget(context); }

  /// The same for an incarnation that the caller knows to be destroyed or reset: its handles are
  /// given up, without a call.
  bool ForgetDestroyed(const ContextRef& context) { return pools_.ForgetDestroyed(context); }

  /// Forget() of every context; returns of how many there were handles.
  /// Requires: no context with handles was destroyed without a ForgetDestroyed(), as for
  ///           PerContext::ForgetAll().
  std::size_t ForgetAll() { return pools_.ForgetAll(); }

  /// Gives up those of every context that is known to be over, and returns how many contexts those
  /// were. PerContext::DropDead() says of which it is known, and what it costs.
  std::size_t DropDead() { return pools_.DropDead(); }

 protected:
  [[nodiscard]] internal::HandlePools& pools() noexcept { return pools_; }

 private:
  friend class LibraryScope<Library>;

  ToolkitFunctions<Library> library_;
  internal::HandlePools pools_{impl::LibraryHandle<Library>::kType,
                               static_cast<const Library*>(&library_)};
};

/// Has a handle to itself, in the context of a stream, which it makes current, with the thread in
/// relaxed capture mode. CublasScope has the contract, and each library's scope what differs.
template <typename Library>
class [[nodiscard]] LibraryScope {
 public:
  /// With the workspace that the library has for the handle.
  LibraryScope(LibraryHandles<Library>& handles, const StreamRef& stream,
               Location where = Location::Here())
      : LibraryScope(handles, {stream, nullptr, nullptr}, where) {
    static_assert(!Library::kHasLayouts, "a plan is borrowed for its layout");
  }

  /// The same for a stream that was handed in, with the errors and the two driver calls of
  /// StreamRef::Borrow(), of which status() is then the status.
  LibraryScope(LibraryHandles<Library>& handles, internal::CallersStream stream,
               Location where = Location::Here())
      : LibraryScope(handles,
                     internal::RequestFor(
                         StreamRef::Borrow(stream.handle, internal::ZeroStream::kLegacy), nullptr),
                     where) {
    static_assert(!Library::kHasLayouts, "a plan is borrowed for its layout");
  }

  /// Of cuBLAS: with `workspace`. cuBLAS recommends 32 MiB on Hopper, 4 MiB on older devices; with
  /// an empty view it does without.
  /// Requires: `workspace` outlives the scope's work and any graph that captured it; that of one
  ///           call does as a ScratchBuffer (scratch_buffer.h) that ends after the scope.
  LibraryScope(LibraryHandles<Library>& handles, const StreamRef& stream,
               DeviceView<std::byte> workspace, Location where = Location::Here())
      : LibraryScope(handles, {stream, nullptr, &internal::RangeAccess::Of(workspace)}, where) {
    static_assert(Library::kTakesWorkspace, "this library takes its workspace with each call");
  }

  LibraryScope(const LibraryScope&) = delete;
  LibraryScope& operator=(const LibraryScope&) = delete;

  /// As Leave(), its result dropped.
  ~LibraryScope() = default;

  [[nodiscard]] bool ok() const noexcept { return scope_.ok(); }
  [[nodiscard]] const absl::Status& status() const noexcept { return scope_.status(); }

  /// nullptr (of a plan: -1) unless ok(). Valid until the scope ends, on this thread; do not
  /// destroy it.
  [[nodiscard]] typename Library::Handle handle() const noexcept {
    return impl::LibraryHandle<Library>::Get(scope_.handle());
  }

  /// Whether the `bytes` from `pointer` on may be an operand: memory that the scope's device
  /// reaches without peer access. Another device's memory is refused, also where peer access is
  /// enabled; pinned host memory and managed memory may be of any, and virtual memory that begins
  /// on the scope's device may go on elsewhere, as DeviceView::Borrow says. The libraries do not
  /// check, and a wrong operand loses every context of the process. For tests and debugging.
  /// Errors: those of DeviceView::Borrow, and
  ///         kFailedPrecondition  the scope is not ok(); virtual memory that its device may not
  ///                              read
  ///         kInvalidArgument     null, plain host memory, freed, too short, or another device's
  /// Cost:   that of Describe(), with the driver's lock; twice for another device's context.
  [[nodiscard]] absl::Status CheckOperand(const void* pointer, std::size_t bytes) const {
    return scope_.CheckOperand(internal::AddressOf(pointer), bytes);
  }

  /// As ContextGuard::Reassert, after foreign code was called inside the scope. If it fails, also
  /// because that code destroyed or reset the context, the scope ends, and status() says why.
  /// Cost: two driver calls when nothing is wrong.
  absl::Status Reassert() { return scope_.Reassert(); }

  /// Ends the scope now. Does nothing the second time.
  /// Errors: kFailedPrecondition  the context was destroyed or reset in the scope; a forked child
  ///         kPermissionDenied    inside a stream callback
  ///         kCancelled           the process is ending
  ///         The handle is given up then. Also those of the library's ToStatus() where the handle
  ///         could not be put back as it was made, and of ContextGuard::Leave where the caller's
  ///         stack could not be restored.
  absl::Status Leave() { return scope_.Leave(); }

 protected:
  LibraryScope(LibraryHandles<Library>& handles, const internal::HandleRequest& request,
               Location where)
      : scope_(handles.pools_, request, where) {}

 private:
  internal::HandleScope scope_;
};

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_LIBRARIES_LIBRARY_H_

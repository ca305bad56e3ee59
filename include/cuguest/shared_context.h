// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 2
/// \file
/// `SharedContext` counts who uses a context. The count is one per process: libraries that know
/// nothing of each other, each with its own static and hidden copy of cuguest, attach to the same
/// context, and the last holder destroys it.
///
///   // one library makes it ...
///   absl::StatusOr<SharedContext> mine = SharedContext::Create(device);
///   ContextGuard guard(mine->context());
///
///   // ... another one, given the handle, keeps it alive for as long as it needs it
///   absl::StatusOr<SharedContext> also_mine = SharedContext::Attach(handle);
///
///   // ... and a third has one on 16 SMs, under MPS; kUnimplemented without it
///   SharedContext::Options options;
///   options.execution_affinity = SmCount{16};
///   absl::StatusOr<SharedContext> small = SharedContext::Create(device, options);
///
/// The driver's own cuCtxAttach and cuCtxDetach are not used: a detach fails unless the
/// context is current, cuCtxDestroy does not look at their count, and threads that attach
/// one context at the same time corrupt the driver's heap (docs/guarantees.md).

#ifndef CUGUEST_SHARED_CONTEXT_H_
#define CUGUEST_SHARED_CONTEXT_H_

#include <cuda.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/export.h"
#include "cuguest/internal/toolkit.h"
#include "cuguest/sm_count.h"

CUGUEST_BEGIN_NAMESPACE

namespace internal {
struct Slot;
struct Reference;
}  // namespace internal

/// Stack:   never touched by anything here, whatever is current: not by Create, and not when the
///          last holder destroys a context that is an entry of some stack. Such an entry stays,
///          dead, and can be popped.
/// Count:   one reference, from Create, Attach or a copy until Release or destruction; a move hands
///          it on.
/// Threads: distinct objects from any threads, also of the same context; one object needs
///          outside locking.
/// Cost:    copying and dropping a copy are one atomic operation each, on a cache line that few
///          threads share as long as the first one who attached still is; no driver call, no lock.
///          Attaching a context that is attached already: one driver call more (cuCtxGetId,
///          contention-free). The last holder of a context made here: three. docs/cost.md has
///          the times beside the driver's pair.
/// Needs:   CUDA 12.0 to tell a destroyed context from the next one at its handle. Below that,
///          a handle that the host's own new context took over joins what was attached before;
///          Create is exact.
/// Source:  CUDA Driver API, cuCtxDestroy, cuDevicePrimaryCtxRelease.
class CUGUEST_API SharedContext {
 public:
  /// What a context is made with: flags, and what only some systems offer, a number of SMs under
  /// MPS or the command queue of a graphics client.
  /// Source: CUDA Driver API, cuCtxCreate; docs/guarantees.md. CUDA in Graphics has not been
  ///         measured where it is supported.
  struct Options {
    CUGUEST_HIDE Options() = default;

    /// CU_CTX_SCHED_* and the others of cuCtxCreate. The coredump flags do not go with `cig`.
    unsigned flags = 0;

    /// The context's work gets this many SMs, rounded up to what the hardware can do: ask
    /// SmCountOf() what it became. Not together with `cig`.
    /// Needs: CUDA 11.4, and a process that is a client of an MPS server, on a device of compute
    ///        capability 7.0 or newer (cuDeviceGetExecAffinitySupport). A GreenContext needs no
    ///        MPS.
    std::optional<SmCount> execution_affinity = {};

    /// CUDA in Graphics: `sharedData` is a graphics client's, a D3D12 command queue or the data
    /// that vkGetExternalComputeQueueDataNV writes, as `sharedDataType` says; it is read by Create
    /// alone, as far as the CUDA documentation says. Not together with `execution_affinity`. Needs:
    /// CUDA 12.5, and a device with CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED or
    ///        CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED.
    std::optional<CUctxCigParam> cig = {};
  };

  /// Makes a context, as cuCtxCreate does, that is floating: current on no thread.
  /// `flags` are CU_CTX_SCHED_* and the others of cuCtxCreate.
  /// Errors: those of Driver::GetInitialized(), and
  ///         kInvalidArgument    unknown flags
  ///         kNotFound           no such device
  ///         kResourceExhausted  out of memory
  ///         kDataLoss           an earlier sticky error
  ///         Nothing is left behind then.
  /// Cost:   about 90 ms and 0.5 GiB of device memory on an H200; three driver calls.
  [[nodiscard]] static absl::StatusOr<SharedContext> Create(Device device, unsigned flags = 0);

  /// The same with an execution affinity or for CUDA in Graphics; with neither, exactly the same.
  /// Errors: those above, and
  ///         kInvalidArgument  an affinity of 0 SMs, CIG data that is null, or both at once
  ///         kUnimplemented    the driver is older than the option: the text names the one that has
  ///                           it; or, with CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY or
  ///                           CUDA_ERROR_NOT_SUPPORTED, there is no MPS, or the process has not so
  ///                           many SMs; or the device or its driver does not support CUDA in
  ///                           Graphics
  ///         Nothing is left behind then.
  /// Cost:   one driver call more (cuGetProcAddress) where there is an option beside the flags.
  /// Source: CUDA Driver API, cuCtxCreate; docs/guarantees.md.
  [[nodiscard]] static absl::StatusOr<SharedContext> Create(Device device, const Options& options);

  /// Adds one to the count of a context that is alive. Its owner does not matter: see
  /// Note [Who destroys a shared context].
  ///
  /// The handle must be alive: the driver reads its memory to answer. What can be checked
  /// without reading it is: null, a value that is no address of an object, memory that is
  /// not mapped (where a system call filter allows that question). A dead one is recognised
  /// as well as ContextRef::IsAlive can. Any other value that is no context crashes in the
  /// driver. The context is never entered: if it was made by Create, its last holder may be
  /// destroying it at this moment, and the call then fails and leaves it alone.
  /// Errors: those of Driver::Get(), and
  ///         kInvalidArgument     nullptr, or what cannot be a context
  ///         kFailedPrecondition  it is destroyed or was reset; or its last holder is
  ///                              destroying it at this moment
  ///         kResourceExhausted   no memory to count it
  ///         and the driver's code where it refuses to say whether the context is a primary
  ///         one (a sticky error of any device, a stream callback). Nothing is attached then.
  /// Cost:   one driver call if somebody is attached already. Else a page query, three driver
  ///         calls, and one, or four where the primary context is active, which take the driver's
  ///         lock, for the device that `context` is the primary one of, and for each whose primary
  ///         context this copy of cuguest never had a reference to. As
  ///         PrimaryContext::RetainIfActive, it creates such a primary context if the last holder
  ///         lets go exactly in between; the release that follows destroys it.
  [[nodiscard]] static absl::StatusOr<SharedContext> Attach(CUcontext context);

  /// The same, refused (kFailedPrecondition) if the incarnation that the ref names was destroyed or
  /// reset, also if its handle names another one.
  [[nodiscard]] static absl::StatusOr<SharedContext> Attach(const ContextRef& context);

  CUGUEST_HIDE SharedContext() noexcept = default;  // attached to nothing
  SharedContext(const SharedContext& other) noexcept;
  CUGUEST_HIDE SharedContext(SharedContext&& other) noexcept
      : incarnation_(std::exchange(other.incarnation_, ContextRef())),
        slot_(std::exchange(other.slot_, nullptr)),
        stripe_(other.stripe_) {}
  SharedContext& operator=(SharedContext other) noexcept;

  /// As Release(), but asks nothing: for a context that is not ours to end, and while others
  /// are attached, it calls no driver at all. Not from a static or thread_local destructor:
  /// see Note [No driver calls after main].
  ~SharedContext();

  /// nullptr if attached to nothing.
  [[nodiscard]] CUGUEST_HIDE CUcontext get() const noexcept { return incarnation_.get(); }

  /// The incarnation that was attached: give this to ContextGuard, and key caches by it.
  [[nodiscard]] CUGUEST_HIDE const ContextRef& context() const noexcept { return incarnation_; }

  /// What destroys the context, by Note [Who destroys a shared context].
  enum class Owner {
    kNobody,  ///< attached to nothing
    kShared,  ///< made by Create, here or in another library
    kOther,
    kPrimary,
  };
  [[nodiscard]] Owner owner() const noexcept;

  /// How many references there are in the whole process, for diagnosis: it may have changed when it
  /// returns. At least 1; 0 if attached to nothing.
  [[nodiscard]] std::uint64_t use_count() const noexcept;

  /// Releases the reference and reports what the destructor cannot.
  /// Errors: kFailedPrecondition  attached to nothing (a second Detach); or, with
  ///                              CUDA_ERROR_CONTEXT_IS_DESTROYED, the context was destroyed or
  ///                              reset while it was attached: by its owner, or by a reset of the
  ///                              device. The reference was released all the same. As exact as
  ///                              ContextRef::IsAlive.
  ///         the driver's code    destroying the context failed; it stays, uncounted
  /// Post:   attached to nothing, whatever is returned.
  /// Cost:   one driver call more than the destructor.
  absl::Status Release();

  /// Gives up ownership and keeps the reference: there will never be a last holder.
  CUGUEST_HIDE CUcontext Leak() noexcept {
    slot_ = nullptr;
    return std::exchange(incarnation_, ContextRef()).get();
  }

  /// Whether every copy of cuguest in the process shares one count, as far as they are
  /// loaded now. For an author who wants to know at start-up.
  /// Errors: kFailedPrecondition  names the objects whose copies count apart from this one,
  ///                              their layouts and the registries that they use. What is
  ///                              attached both here and there is then counted twice, and a
  ///                              context made by one may be destroyed while the other one is
  ///                              attached.
  /// Cost:   walks the list of loaded objects.
  [[nodiscard]] static absl::Status CheckSharing();

 private:
  SharedContext(const ContextRef& incarnation, const internal::Reference& reference) noexcept;

  CUresult Leave() noexcept;

  ContextRef incarnation_;
  // The reference, in the process's registry; a slot is never freed.
  internal::Slot* slot_ = nullptr;
  int stripe_ = 0;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_SHARED_CONTEXT_H_

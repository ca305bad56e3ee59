// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 2
/// \file
/// `SharedContext` counts who uses a context. The count is one per process: libraries that know
/// nothing of each other, each with its own static and hidden copy of cuguest, attach to the same
/// context, and the last holder destroys it.
///
///   // one library makes it ...
///   SharedContext mine = SharedContext::Create(device);
///   ContextGuard guard(mine);
///
///   // ... another one, given the handle, keeps it alive for as long as it needs it
///   SharedContext also_mine = SharedContext::Attach(handle);
///
///   // ... and a third has one on 16 SMs, under MPS; it is not ok() without that
///   SharedContext::Options options;
///   options.execution_affinity = SmCount{16};
///   SharedContext small = SharedContext::Create(device, options);
///
/// The driver's own cuCtxAttach and cuCtxDetach are not used: a detach fails unless the context is
/// current, cuCtxDestroy ignores their count, and threads that attach one context at the same time
/// corrupt the driver's heap (docs/guarantees.md).

#ifndef CUGUEST_SHARED_CONTEXT_H_
#define CUGUEST_SHARED_CONTEXT_H_

#include <cuda.h>

#include <cstdint>
#include <optional>

#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/error.h"
#include "cuguest/export.h"
#include "cuguest/internal/toolkit.h"

CUGUEST_BEGIN_NAMESPACE

namespace internal {
struct Slot;
struct Reference;
}  // namespace internal

/// Stack:   never touched, whatever is current: neither by Create, nor when the last holder
///          destroys a context on some stack, whose entry stays, dead, and can be popped.
/// Count:   one reference, from Create, Attach or copy until Release or destruction; moves keep it.
/// Threads: distinct; also objects of the same context, and also beside the end of what this copy
///          of cuguest has in it: see Note [After the context].
/// Errors:  where Create or Attach fails, it is not ok(), and nothing is attached or left behind.
/// Cost:    making and dropping a copy are one atomic operation each, on a cache line that few
///          threads share while the first holder is attached; no driver call, no lock. Attaching a
///          context that is attached already: one driver call more (cuCtxGetId, contention-free).
///          The last holder of a context made here: three, or four where it is current.
/// Needs:   CUDA 12.0 to tell a destroyed context from the next one at its handle. Below that, a
///          new context of the host's that took over the handle joins what was attached before;
///          Create is exact.
/// Source:  CUDA Driver API, cuCtxCreate, cuCtxDestroy, cuDevicePrimaryCtxRelease;
///          docs/guarantees.md.
class [[nodiscard]] CUGUEST_API SharedContext {
 public:
  /// What a context is made with: flags, and what only some systems offer, a number of SMs under
  /// MPS or the command queue of a graphics client.
  struct Options {
    CUGUEST_HIDE Options() = default;

    /// CU_CTX_SCHED_* and the others of cuCtxCreate. The coredump flags do not go with `cig`.
    unsigned flags = 0;

    /// The context's work gets this many SMs, rounded up to what the hardware can do: SmCountOf()
    /// says how many. Not together with `cig`.
    /// Needs: CUDA 11.4, a process that is a client of an MPS server, and compute capability 7.0 or
    ///        newer (cuDeviceGetExecAffinitySupport). A GreenContext needs no MPS.
    std::optional<SmCount> execution_affinity = {};

    /// CUDA in Graphics; nullptr: not. `sharedData` is a graphics client's, a D3D12 command queue
    /// or the data that vkGetExternalComputeQueueDataNV writes, as `sharedDataType` says; only
    /// Create reads it, as far as the CUDA documentation says. Not together with
    /// `execution_affinity`. Not measured where it is supported.
    /// Needs: CUDA 12.5, and a device with CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED or
    ///        CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED.
    const CUctxCigParam* cig = nullptr;
  };

  /// Makes a context as cuCtxCreate does, with its `flags`, but floating: current on no thread.
  /// Errors: kNoDriver, kNotInitialized    as Driver::GetInitialized()
  ///         CUDA_ERROR_INVALID_VALUE      unknown flags
  ///         CUDA_ERROR_INVALID_DEVICE     no such device
  ///         CUDA_ERROR_OUT_OF_MEMORY      out of memory; kNoMemory: of the host's
  ///         a sticky error (IsSticky)     an earlier one
  /// Cost:   about 90 ms and 0.5 GiB of device memory on an H200; three driver calls.
  [[nodiscard]] static SharedContext Create(Device device, unsigned flags = 0) noexcept;

  /// The same with an execution affinity or for CUDA in Graphics; with neither, exactly the same.
  /// Errors: those above, and
  ///         kNoSms, kNoData, kBothOptions
  ///                                an affinity of 0 SMs, CIG data that is null, or both at once:
  ///                                CUDA_ERROR_INVALID_VALUE
  ///         kTooOld                the driver is older than the option; a status names the one
  ///                                that has it
  ///         CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, CUDA_ERROR_NOT_SUPPORTED
  ///                                there is no MPS, the process has not so many SMs, or device or
  ///                                driver do not support CUDA in Graphics
  /// Cost:   one driver call more (cuGetProcAddress) where there is an option beside the flags.
  [[nodiscard]] static SharedContext Create(Device device, const Options& options) noexcept;

  /// Adds one to the count of a context, whatever its owner: see Note [Who destroys a shared
  /// context].
  ///
  /// Without reading the handle's memory, Attach refuses null, a value that is not the address of
  /// an object, and memory that is not mapped (where a system call filter allows the check); it
  /// recognises a dead handle as well as ContextRef::IsAlive does. The context is never entered: if
  /// Create made it, its last holder may be destroying it at this moment; the call then fails, and
  /// neither asks the driver about it nor touches it.
  /// Requires: the handle is alive: the driver reads its memory, and any value that is not a
  ///           context, but those that Attach refuses, crashes in it.
  /// Errors: kNoDriver, kNotInitialized       as Driver::GetInitialized(), but for a driver without
  ///                                          a device
  ///         kEmpty, kNoContext               nullptr, or what cannot be a context:
  ///                                          CUDA_ERROR_INVALID_VALUE
  ///         CUDA_ERROR_CONTEXT_IS_DESTROYED  destroyed or reset; kClosing: its last holder is
  ///                                          destroying it now
  ///         kNoMemory                        to count it: CUDA_ERROR_OUT_OF_MEMORY
  ///         and the driver's code where it refuses to say whether the context is a primary one (a
  ///         sticky error of any device, a stream callback).
  /// Cost:   one driver call if it is attached already. Else a page query, three driver calls, and
  ///         one more, or four where the primary context is active, which take the driver's lock,
  ///         for the device that `context` is the primary one of, and for each device to whose
  ///         primary context this copy of cuguest never had a reference. As
  ///         PrimaryContext::RetainIfActive, it creates such a primary context if the last holder
  ///         releases it exactly in between; the release that follows destroys it.
  [[nodiscard]] static SharedContext Attach(CUcontext context) noexcept;

  /// The same, refused if the incarnation that the ref names was destroyed or reset, even if its
  /// handle names another one now.
  [[nodiscard]] static SharedContext Attach(const ContextRef& context) noexcept;

  CUGUEST_HIDE SharedContext() noexcept = default;  // attached to nothing
  SharedContext(const SharedContext& other) noexcept;
  SharedContext(SharedContext&& other) noexcept;
  SharedContext& operator=(SharedContext other) noexcept;

  /// As Release(), without its check: calls no driver while others are attached, nor for another
  /// owner's context. What cannot be given back is as Incident::Kind::kOwed says. Not from a static
  /// or thread_local destructor: see Note [No driver calls after main].
  ~SharedContext();

  CUGUEST_INTERNAL_IS_NO_STATUS_OR(SharedContext);

  /// Whether it is attached to a context.
  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return slot_ != nullptr; }
  /// Why it is not: kEmpty, CUDA_ERROR_INVALID_CONTEXT, where neither Create nor Attach failed.
  [[nodiscard]] Error error() const noexcept;

  /// nullptr if attached to nothing.
  [[nodiscard]] CUGUEST_HIDE CUcontext get() const noexcept { return incarnation_.get(); }

  /// The incarnation that was attached: give this to ContextGuard, and key caches by it.
  [[nodiscard]] CUGUEST_HIDE const ContextRef& context() const noexcept { return incarnation_; }

  /// Which owner destroys the context: see Note [Who destroys a shared context].
  enum class Owner {
    kNobody,  ///< attached to nothing
    kShared,  ///< made by Create, here or in another library
    kOther,
    kPrimary,
  };
  [[nodiscard]] Owner owner() const noexcept;

  /// References in the whole process, for diagnosis: it may have changed when it returns. At least
  /// 1; 0 if attached to nothing.
  [[nodiscard]] std::uint64_t use_count() const noexcept;

  /// Releases the reference and reports what the destructor cannot.
  /// Errors: kEmpty             attached to nothing (a second Release): CUDA_ERROR_INVALID_CONTEXT
  ///         kDestroyed         it was destroyed or reset while attached, by its owner or by a
  ///                            reset of the device: CUDA_ERROR_CONTEXT_IS_DESTROYED; as exact as
  ///                            ContextRef::IsAlive. The reference was released all the same.
  ///         CUDA_ERROR_NOT_PERMITTED  for the last holder, in a stream callback
  ///         the driver's code  destroying the context failed; it stays, uncounted
  /// Post:   attached to nothing, unless not permitted: it is attached as before then.
  /// Cost:   one driver call more than the destructor.
  Error Release() noexcept;

  /// Gives up ownership and keeps the reference: there will never be a last holder.
  CUGUEST_HIDE CUcontext Leak() noexcept {
    const CUcontext context = get();
    slot_ = nullptr;
    incarnation_ = ContextRef();
    return context;
  }

 private:
  SharedContext(const Error& error, const ContextRef& incarnation,
                const internal::Reference& reference) noexcept;

  ContextRef incarnation_;
  // The reference, in the process's registry; a slot is never freed.
  internal::Slot* slot_ = nullptr;
  int stripe_ = 0;
  Error error_;  // of attaching
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_SHARED_CONTEXT_H_

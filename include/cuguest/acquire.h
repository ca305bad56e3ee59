// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
/// \file
/// Which context should I work in? The `Acquire...` functions find the context of a stream, a
/// pointer or a device, say where they found it, and hold what keeps it alive. They create a
/// context only if asked to, with IfInactive::kCreate.
///
///   Error Read(Pool* pool, void* target) {
///     const Acquired acquired = AcquireFromPointer(target);
///     if (!acquired.ok()) return acquired.error();
///     for (const Part& part : PartsOf(target)) {
///       pool->Run([acquired, part] {          // a copy holds a reference of its own
///         AcquiredGuard guard(acquired);
///         if (guard.ok()) ReadPart(part);
///       });
///     }
///     return {};
///   }
///
/// Who works with it in one place only enters it in the same line: AcquiredGuard(stream),
/// acquired_guard.h.
///
/// Note [Kept for the process]
/// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
/// With kCreate each call may create a primary context and destroy it (about 90 ms each on an
/// H200), and its host can see it active for a moment after the call, while a worker thread ends.
/// With kCreateAndKeep it is created once, and one reference to it is kept until
/// ReleaseKeptPrimary() (primary_keeper.h) names its device; a context that was active already is
/// not kept. A PrimaryKeeper keeps it for an object instead. A reset (cudaDeviceReset) ends the
/// context and takes no reference away: the next call creates it again, and it is kept as before,
/// by the same reference.
///
/// Note [While something captures]
/// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
/// Nothing here invalidates a stream capture, in any mode, on any thread. That includes
/// AcquireFromStream of the capturing stream or of stream 0, and IfInactive::kCreate; but better
/// not create a context in the middle of a capture. Other notes are in docs/notes.md.

#ifndef CUGUEST_ACQUIRE_H_
#define CUGUEST_ACQUIRE_H_

#include <cuda.h>

#include <cstddef>
#include <new>
#include <utility>

#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/error.h"
#include "cuguest/export.h"
#include "cuguest/internal/compiler.h"
#include "cuguest/internal/current_context.h"
#include "cuguest/internal/incarnation.h"
#include "cuguest/primary_context.h"

CUGUEST_BEGIN_NAMESPACE

/// What is to be done where a device's primary context is needed and is not active.
enum class IfInactive {
  kRefuse,
  kCreate,         ///< it ends with what was acquired, unless somebody else retains it meanwhile
  kCreateAndKeep,  ///< created and kept for the process: see Note [Kept for the process]
};

/// A context to work in, where it was found, and what keeps it alive.
/// Stack:   never touched, here or by the functions below.
/// Count:   one reference to the primary context if source() is kPrimary or kCreated, or after
///          Hold(), released on destruction. None otherwise: the caller, who passed the stream or
///          the pointer or made the context current, keeps the context alive for the call. A copy
///          holds what it is a copy of does, by a reference of its own.
/// Threads: distinct.
class [[nodiscard]] CUGUEST_API Acquired {
 public:
  /// Where it was found.
  enum class Source {
    kStream,
    kPointer,
    kCurrent,
    kPrimary,  ///< was active
    kCreated,  ///< the primary, which was not active before
  };

  CUGUEST_HIDE Acquired() noexcept : error_() {}  // empty
  /// Nothing, because of `error`.
  CUGUEST_HIDE explicit Acquired(const Error& error) noexcept : error_(error) {}
  /// What the caller has found itself, and keeps alive.
  CUGUEST_HIDE Acquired(const ContextRef& context, Source source, Device device) noexcept
      : incarnation_(context), source_(source), device_(device.get()) {
    if (CUGUEST_INTERNAL_UNLIKELY(!ok())) SetError({});
  }
  /// What has a reference, which is taken over; empty if `primary` is.
  Acquired(PrimaryContext primary, Source source) noexcept;
  /// For another task or thread. Where it cannot have a reference of its own, it is not ok(), and
  /// error() says why: as PrimaryContext::Retain, and CUDA_ERROR_CONTEXT_IS_DESTROYED where the
  /// primary context was reset, which is not created again.
  /// Cost: none where no reference is held; else four driver calls.
  Acquired(const Acquired& other) noexcept;
  CUGUEST_HIDE Acquired& operator=(const Acquired& other) noexcept {
    return *this = Acquired(other);
  }
  CUGUEST_HIDE Acquired(Acquired&& other) noexcept { Take(&other); }
  CUGUEST_HIDE Acquired& operator=(Acquired&& other) noexcept {
    if (this == &other) return *this;
    if (holds_primary_) End();
    Take(&other);
    return *this;
  }
  /// As Release(), whose result nobody gets. What cannot be given back is as
  /// Incident::Kind::kOwed says.
  CUGUEST_HIDE ~Acquired() {
    if (holds_primary_) End();
  }

  CUGUEST_INTERNAL_IS_NO_STATUS_OR(Acquired);

  /// Whether there is a context.
  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return incarnation_.ok(); }
  /// Why there is none: kEmpty, CUDA_ERROR_INVALID_CONTEXT, where acquiring did not fail.
  [[nodiscard]] Error error() const noexcept;

  /// Give this to ContextGuard; valid as long as this object is. Not of a temporary, which releases
  /// its reference at the semicolon: copy it, or give it to an AcquiredGuard, which keeps it.
  [[nodiscard]] CUGUEST_HIDE const ContextRef& context() const& noexcept { return incarnation_; }
  const ContextRef& context() const&& = delete;
  [[nodiscard]] CUGUEST_HIDE CUcontext get() const& noexcept { return incarnation_.get(); }
  CUcontext get() const&& = delete;
  [[nodiscard]] CUGUEST_HIDE Source source() const noexcept { return source_; }

  /// Writes the context's device to `device`, which is left as it was on failure.
  /// Stack:  as it was; where a driver below CUDA 13.0 is asked, the context is entered and left.
  /// Errors: those of a ContextGuard from a ContextRef, where the driver is asked; that of error()
  ///         if it is empty.
  /// Cost:   none from AcquireOn and AcquireCurrent, and wherever source() is kPrimary or kCreated;
  ///         otherwise two driver calls; below CUDA 13.0 four if the context is current, else six.
  [[nodiscard]] CUresult GetDevice(Device* device) const noexcept;

  /// Whether there is a reference that keeps the context alive.
  [[nodiscard]] CUGUEST_HIDE bool holds() const noexcept { return holds_primary_; }

  /// Takes a reference where there is none: for what works with the context after the call that
  /// found it, on another thread for example. Only a primary context is counted by the driver: a
  /// context that somebody has created lasts as long as they keep it, or as a SharedContext that
  /// everybody attaches.
  /// Errors: it is as it was then.
  ///         CUDA_ERROR_NOT_SUPPORTED         the context is not its device's primary one
  ///         CUDA_ERROR_CONTEXT_IS_DESTROYED  it was destroyed or reset
  ///         that of error(), if it is empty; those of GetDevice() and PrimaryContext::Retain
  /// Cost:   none where it holds one; else those of GetDevice(), and four driver calls.
  Error Hold() noexcept;

  /// Gives up the reference, if there is one, without a driver call: it lasts until somebody
  /// releases it, or the process ends. Empty then.
  CUGUEST_HIDE ContextRef Leak() noexcept {
    const ContextRef context = incarnation_;
    SetEmpty();
    return context;
  }

  /// Releases the reference now, if there is one, and reports what the destructor cannot.
  /// Errors: those of PrimaryContext::Release().
  /// Post:   empty, unless the reference is still held.
  Error Release() noexcept;

 private:
  void End() noexcept;
  CUGUEST_HIDE void SetError(const Error& error) noexcept { ::new (&error_) Error(error); }
  CUGUEST_HIDE void SetEmpty() noexcept {
    incarnation_ = ContextRef();
    holds_primary_ = false;
    SetError({});
  }
  void Take(Acquired* other) noexcept;

  ContextRef incarnation_;
  Source source_ = Source::kCurrent;
  CUdevice device_ = internal::kDeviceNotAsked;
  bool holds_primary_ = false;
  // Of acquiring. Set while it is not ok() alone, so that what is found current costs no more than
  // it has to.
  union {
    Error error_;
  };
};

/// "the stream", "the pointer", "the current context", ...
[[nodiscard]] CUGUEST_API const char* Name(Acquired::Source source) noexcept;

/// The functions below
/// Threads: any. Not from a stream callback: CUDA_ERROR_NOT_PERMITTED.
/// Errors:  kNoDriver, and kNotInitialized where a primary context is looked for; and what each
///          function adds. The result is not ok() then, and nothing is held or changed.
/// Cost:    what each function says; with IfInactive::kCreate see PrimaryContext::Retain.
/// Source:  CUDA Driver API, cuStreamGetCtx, cuPointerGetAttribute(s); docs/guarantees.md.

/// The context that `stream` belongs to.
/// Requires: the handle is alive: a created stream is destroyed with its context, also by a reset,
///           and the driver crashes on its handle more often than not.
/// Errors: CUDA_ERROR_INVALID_CONTEXT             a special stream, and no context is current
///         CUDA_ERROR_CONTEXT_IS_DESTROYED        its green context was destroyed, or of a special
///                                                stream the current context
///         CUDA_ERROR_STREAM_CAPTURE_INVALIDATED  its capture was invalidated and has not ended yet
///         kTooOld                                a driver below CUDA 9.2 (cuStreamGetCtx)
/// Cost:   two driver calls, contention-free; for a special stream those of AcquireCurrent, and
///         three after a sticky error.
[[nodiscard]] CUGUEST_API Acquired AcquireFromStream(CUstream stream) noexcept;

/// For a caller that is also given a device: AcquireOn(device, if_inactive) for a special stream,
/// and AcquireFromStream(stream) for any other, whose device is its context's and not compared with
/// `device`.
/// Requires, errors, cost: those of the function that is called.
[[nodiscard]] CUGUEST_API Acquired AcquireFromStream(
    CUstream stream, Device device, IfInactive if_inactive = IfInactive::kRefuse) noexcept;

/// The context that owns the memory at `pointer`: any address within an allocation, of device,
/// managed or pinned host memory. `if_inactive` is for pool and virtual memory, as in AcquireOn.
/// Errors: kUnknownMemory                   CUDA does not know it: plain host memory, null, freed
///         CUDA_ERROR_CONTEXT_IS_DESTROYED  the memory's context was destroyed
///         and for pool and virtual memory those of AcquireOn, and kNoDevice.
/// Cost:   two driver calls (the first takes the driver's lock: not for hot paths); four to nine
///         for pool and virtual memory.
[[nodiscard]] CUGUEST_API Acquired
AcquireFromPointer(CUdeviceptr pointer, IfInactive if_inactive = IfInactive::kRefuse) noexcept;
[[nodiscard]] CUGUEST_API Acquired
AcquireFromPointer(const void* pointer, IfInactive if_inactive = IfInactive::kRefuse) noexcept;

/// As AcquireFromPointer, for a caller that is given `bytes` of memory: they must lie in one
/// allocation, or in mappings of virtual memory that are side by side and on one device. The length
/// is not compared for memory that a pool has on the host, nor below CUDA 10.2 (of virtual memory
/// below 11.3), where the driver does not report an allocation's start and size.
/// Errors: those of AcquireFromPointer, and
///         kNoRange   no bytes, or more than there are addresses
///         kOutside   some lie outside: the text names the range, and what is there
/// Cost:   as AcquireFromPointer; three to eight for pool and virtual memory, and one more for each
///         further mapping.
[[nodiscard]] CUGUEST_API Acquired AcquireFromBuffer(
    CUdeviceptr pointer, std::size_t bytes, IfInactive if_inactive = IfInactive::kRefuse) noexcept;
[[nodiscard]] CUGUEST_API Acquired AcquireFromBuffer(
    const void* pointer, std::size_t bytes, IfInactive if_inactive = IfInactive::kRefuse) noexcept;

namespace internal {
// What the functions below leave to the library.
CUGUEST_API Acquired AcquireFromOwner(const ContextRef& context, Device device, bool is_empty,
                                      IfInactive if_inactive) noexcept;
CUGUEST_API Acquired AcquireCurrent(const CurrentContext& asked, Device device) noexcept;
CUGUEST_API Acquired AcquireOn(const CurrentContext& asked, Device device,
                               IfInactive if_inactive) noexcept;
// `asked` becomes what was found current, if that was asked.
CUGUEST_API Acquired AcquireFromStream(CUstream stream, CurrentContext* asked) noexcept;
CUGUEST_API Acquired AcquireFromPointer(CUdeviceptr pointer, IfInactive if_inactive,
                                        CurrentContext* asked) noexcept;
}  // namespace internal

/// The context of a DeviceView, a DeviceBuffer or a PinnedBuffer, which know it: only checks that
/// it was not destroyed or reset. `if_inactive` is for pool and virtual memory, as in AcquireOn.
/// Errors: kEmpty, CUDA_ERROR_INVALID_VALUE  an empty buffer
///         CUDA_ERROR_CONTEXT_IS_DESTROYED   its context was destroyed or reset
///         and for pool and virtual memory those of AcquireOn.
/// Cost:   one driver call, contention-free; for pool and virtual memory that of AcquireOn.
template <typename Buffer, typename = decltype(std::declval<const Buffer&>().context(),
                                               std::declval<const Buffer&>().device(),
                                               std::declval<const Buffer&>().empty())>
[[nodiscard]] CUGUEST_HIDE Acquired
AcquireFromBuffer(const Buffer& buffer, IfInactive if_inactive = IfInactive::kRefuse) {
  return internal::AcquireFromOwner(buffer.context(), buffer.device(), buffer.empty(), if_inactive);
}

/// The current context, which must be on `device`.
/// Errors: CUDA_ERROR_INVALID_CONTEXT       none is current; kOtherDevice: it is on another device,
///                                          and the text names both
///         CUDA_ERROR_CONTEXT_IS_DESTROYED  it is destroyed
/// Cost:   contention-free: two driver calls (query, cuCtxGetId) where the context is the one that
///         the thread's last Acquire call found current; otherwise, and below CUDA 12.0, three.
[[nodiscard]] CUGUEST_HIDE inline Acquired AcquireCurrent(Device device) {
  const internal::CurrentContext asked;
  if (asked.IsSeenOn(device.get())) {
    return Acquired(asked.Seen().Ref(), Acquired::Source::kCurrent, device);
  }
  return internal::AcquireCurrent(asked, device);
}

/// The current context; or, where nothing is current, the primary context that is active on the
/// first device that has one: for a caller to whom any context will do, to copy managed memory for
/// example. source() is kCurrent or kPrimary, and GetDevice() says which device's. Creates nothing,
/// but as AcquireOn.
/// Errors: CUDA_ERROR_INVALID_CONTEXT       nothing is current, and no primary context active
///         CUDA_ERROR_CONTEXT_IS_DESTROYED  what is current is destroyed
///         and those of PrimaryContext::Retain.
/// Cost:   two driver calls where one is current; else three, one for each device that is asked,
///         and those of PrimaryContext::Retain.
[[nodiscard]] CUGUEST_API Acquired AcquireAny() noexcept;

/// The current context if it is on `device`, else the primary context of `device`. With kRefuse it
/// never creates the primary, unless the last holder releases it exactly between the query and the
/// retain: see PrimaryContext::RetainIfActive.
/// Errors: kInactive, CUDA_ERROR_INVALID_CONTEXT  no context on `device` is current, its primary is
///         inactive, and creating it was not asked for; the text names the device that the current
///         one is on
///         and those of PrimaryContext::Retain.
/// Cost:   for the current context that of AcquireCurrent. For the primary, four driver calls, or
///         six where another device's context is current; they take the driver's lock.
[[nodiscard]] CUGUEST_HIDE inline Acquired AcquireOn(Device device,
                                                     IfInactive if_inactive = IfInactive::kRefuse) {
  const internal::CurrentContext asked;
  if (asked.IsSeenOn(device.get())) {
    return Acquired(asked.Seen().Ref(), Acquired::Source::kCurrent, device);
  }
  return internal::AcquireOn(asked, device, if_inactive);
}

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_ACQUIRE_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
/// \file
/// Which context should I work in? The `Acquire...` functions find the context of a stream, a
/// pointer or a device, say where they found it, and hold what keeps it alive. They create a
/// context only if asked to, with IfInactive::kCreate.
///
///   absl::Status Sort(float* values, size_t count, CUstream stream) {
///     const AcquireResult context = AcquireFromStream(stream);
///     if (!context.ok()) return context.status();
///     ContextGuard guard(context->context());
///     if (!guard.ok()) return ToStatus(guard);
///     ...
///
/// AcquiredGuard (acquired_guard.h) does these four lines in one.
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
#include <utility>

#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/context_source.h"
#include "cuguest/device.h"
#include "cuguest/export.h"
#include "cuguest/internal/current_context.h"
#include "cuguest/internal/incarnation.h"
#include "cuguest/primary_context.h"

CUGUEST_BEGIN_NAMESPACE

namespace internal {
struct Acquired;
}  // namespace internal

/// A context to work in, where it was found, and what keeps it alive.
/// Stack:   never touched, here or by the functions below.
/// Count:   one reference to the primary context if source() is kPrimary or kCreated, released on
///          destruction. None otherwise: the caller, who passed the stream or the pointer or made
///          the context current, keeps the context alive for the call.
/// Threads: a value; any thread.
class AcquiredContext {
 public:
  CUGUEST_HIDE AcquiredContext(AcquiredContext&&) = default;
  CUGUEST_HIDE AcquiredContext& operator=(AcquiredContext&&) = default;
  CUGUEST_HIDE ~AcquiredContext() = default;

  using Source = ContextSource;

  CUGUEST_HIDE AcquiredContext(const ContextRef& incarnation, Source source)
      : incarnation_(incarnation), source_(source) {}
  CUGUEST_HIDE AcquiredContext(const ContextRef& incarnation, Source source, Device device)
      : incarnation_(incarnation), source_(source), device_(device.get()) {}
  CUGUEST_HIDE AcquiredContext(PrimaryContext primary, Source source)
      : incarnation_(primary.context()),
        source_(source),
        device_(primary.device().get()),
        kept_(std::move(primary)) {}
  // Takes over what `acquired` holds.
  explicit AcquiredContext(const internal::Acquired& acquired) noexcept;

  /// Give this to ContextGuard; valid as long as this object is. Not of a temporary, which releases
  /// its reference at the semicolon.
  [[nodiscard]] CUGUEST_HIDE const ContextRef& context() const& noexcept { return incarnation_; }
  const ContextRef& context() const&& = delete;
  [[nodiscard]] CUGUEST_HIDE CUcontext get() const& noexcept { return incarnation_.get(); }
  CUcontext get() const&& = delete;
  [[nodiscard]] CUGUEST_HIDE Source source() const noexcept { return source_; }

  /// Errors: where the driver is asked, those of Driver::Get(), of a ContextGuard from a
  ///         ContextRef, and of Device::OfCurrentContext().
  /// Cost:   none from AcquireOn and AcquireCurrent, and wherever source() is kPrimary or kCreated;
  ///         otherwise at most four driver calls if the context is current, else six.
  [[nodiscard]] CUGUEST_API absl::StatusOr<Device> device() const;

 private:
  ContextRef incarnation_;
  Source source_;
  CUdevice device_ = internal::kDeviceNotAsked;
  PrimaryContext kept_;
};

/// What the functions below return: an absl::StatusOr<AcquiredContext>, and usable as one, whose
/// `->` does not compile on a temporary either.
class [[nodiscard]] AcquireResult : public absl::StatusOr<AcquiredContext> {
 public:
  CUGUEST_HIDE AcquireResult() = default;
  CUGUEST_HIDE AcquireResult(AcquireResult&&) = default;
  CUGUEST_HIDE AcquireResult& operator=(AcquireResult&&) = default;
  CUGUEST_HIDE ~AcquireResult() = default;

  using absl::StatusOr<AcquiredContext>::StatusOr;
  CUGUEST_HIDE AcquireResult(AcquiredContext&& acquired)
      : absl::StatusOr<AcquiredContext>(std::move(acquired)) {}

  CUGUEST_HIDE const AcquiredContext* operator->() const& { return &**this; }
  CUGUEST_HIDE AcquiredContext* operator->() & { return &**this; }
  const AcquiredContext* operator->() const&& = delete;
};

/// The functions below
/// Threads: any. Not from a stream callback: kPermissionDenied.
/// Errors:  those of Driver::Get() (of Driver::GetInitialized() where a primary context is looked
///          for), and what each function adds. Nothing is held or changed then.
/// Cost:    what each function says; with IfInactive::kCreate see PrimaryContext::Retain.
/// Source:  CUDA Driver API, cuStreamGetCtx, cuPointerGetAttribute(s); docs/guarantees.md.

/// The context that `stream` belongs to. The handle must be alive: a created stream is destroyed
/// with its context, also by a reset, and the driver crashes on its handle more often than not.
/// Errors: kFailedPrecondition  the stream is a special one and no living context is current; its
///                              capture was invalidated and has not ended yet; or its green context
///                              was destroyed
///         kUnimplemented       a driver below CUDA 9.2 (cuStreamGetCtx)
/// Cost:   two driver calls, contention-free; for a special stream those of AcquireCurrent, and
///         three after a sticky error.
[[nodiscard]] CUGUEST_API AcquireResult AcquireFromStream(CUstream stream);

/// For a caller that is also given a device: AcquireOn(device, if_inactive) for a special stream,
/// and AcquireFromStream(stream) for any other, whose device is its context's and not compared with
/// `device`.
/// Errors, cost: those of the function that is called.
[[nodiscard]] CUGUEST_API AcquireResult
AcquireFromStream(CUstream stream, Device device, IfInactive if_inactive = IfInactive::kRefuse);

/// The context that owns the memory at `pointer`: any address within an allocation, of device,
/// managed or pinned host memory. `if_inactive` is for pool and virtual memory, as in AcquireOn.
/// Errors: kInvalidArgument     memory that CUDA does not know: plain host memory, null, freed
///         kFailedPrecondition  the memory's context was destroyed
///         and for pool and virtual memory those of AcquireOn.
/// Cost:   two driver calls (the first takes the driver's lock: not for hot paths); four to nine
///         for pool and virtual memory.
[[nodiscard]] CUGUEST_API AcquireResult
AcquireFromPointer(CUdeviceptr pointer, IfInactive if_inactive = IfInactive::kRefuse);
[[nodiscard]] CUGUEST_API AcquireResult
AcquireFromPointer(const void* pointer, IfInactive if_inactive = IfInactive::kRefuse);

/// As AcquireFromPointer, for a caller that is given `bytes` of memory: they must lie in one
/// allocation, or in mappings of virtual memory that are side by side and on one device. The length
/// is not compared for memory that a pool has on the host, nor below CUDA 10.2, where the driver
/// does not report an allocation's start and size.
/// Errors: those of AcquireFromPointer, and
///         kInvalidArgument  no bytes, more than there are addresses, or some that lie outside: the
///                           text names the range, and what is there
/// Cost:   as AcquireFromPointer; three to eight for pool and virtual memory, and one more for each
///         further mapping.
[[nodiscard]] CUGUEST_API AcquireResult AcquireFromBuffer(
    CUdeviceptr pointer, std::size_t bytes, IfInactive if_inactive = IfInactive::kRefuse);
[[nodiscard]] CUGUEST_API AcquireResult AcquireFromBuffer(
    const void* pointer, std::size_t bytes, IfInactive if_inactive = IfInactive::kRefuse);

namespace internal {
// What the functions below leave to the library.
CUGUEST_API AcquireResult AcquireFromOwner(const ContextRef& context, Device device, bool is_empty,
                                           IfInactive if_inactive);
CUGUEST_API AcquireResult AcquireCurrent(const CurrentContext& asked, Device device);
CUGUEST_API AcquireResult AcquireOn(const CurrentContext& asked, Device device,
                                    IfInactive if_inactive);
}  // namespace internal

/// The context of a DeviceView, a DeviceBuffer or a PinnedBuffer, which know it: only checks that
/// it was not destroyed or reset. `if_inactive` is for pool and virtual memory, as in AcquireOn.
/// Errors: kInvalidArgument     an empty buffer
///         kFailedPrecondition  its context was destroyed or reset
///         and for pool and virtual memory those of AcquireOn.
/// Cost:   one driver call, contention-free; for pool and virtual memory that of AcquireOn.
template <typename Buffer, typename = decltype(std::declval<const Buffer&>().context(),
                                               std::declval<const Buffer&>().device(),
                                               std::declval<const Buffer&>().empty())>
[[nodiscard]] CUGUEST_HIDE AcquireResult
AcquireFromBuffer(const Buffer& buffer, IfInactive if_inactive = IfInactive::kRefuse) {
  return internal::AcquireFromOwner(buffer.context(), buffer.device(), buffer.empty(), if_inactive);
}

/// The current context, which must be on `device`.
/// Errors: kFailedPrecondition  none is current, or it is destroyed or on another device: the text
///                              names both
/// Cost:   contention-free: two driver calls (query, cuCtxGetId) where the context is the one that
///         the thread's last Acquire call found current; otherwise, and below CUDA 12.0, three.
[[nodiscard]] CUGUEST_HIDE inline AcquireResult AcquireCurrent(Device device) {
  const internal::CurrentContext asked;
  if (asked.IsSeenOn(device.get())) {
    return AcquiredContext(asked.Seen().Ref(), AcquiredContext::Source::kCurrent, device);
  }
  return internal::AcquireCurrent(asked, device);
}

/// The current context if it is on `device`, else the primary context of `device`. With kRefuse it
/// never creates the primary, unless the last holder releases it exactly between the query and the
/// retain: see PrimaryContext::RetainIfActive.
/// Errors: kFailedPrecondition  no context on `device` is current, its primary is inactive, and
///                              creating it was not asked for; the text names the device that the
///                              current one is on
///         and those of PrimaryContext::Retain.
/// Cost:   for the current context that of AcquireCurrent. For the primary, four driver calls, or
///         six where another device's context is current; they take the driver's lock.
[[nodiscard]] CUGUEST_HIDE inline AcquireResult AcquireOn(
    Device device, IfInactive if_inactive = IfInactive::kRefuse) {
  const internal::CurrentContext asked;
  if (asked.IsSeenOn(device.get())) {
    return AcquiredContext(asked.Seen().Ref(), AcquiredContext::Source::kCurrent, device);
  }
  return internal::AcquireOn(asked, device, if_inactive);
}

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_ACQUIRE_H_

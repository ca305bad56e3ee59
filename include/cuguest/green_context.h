// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 2
/// \file
/// `GreenContext` owns a green context: a context whose work runs on a part of a device's SMs. A
/// library that works in one leaves the other SMs to its host.
///
///   absl::StatusOr<GreenContext> mine = GreenContext::Create(device, SmCount{16});
///   if (!mine.ok()) return mine.status();
///   absl::StatusOr<Stream> stream = Stream::Create(mine->context());
///   if (!stream.ok()) return stream.status();
///   return Launch(kernel, shape, stream->ref(), ...);      // on 16 SMs

#ifndef CUGUEST_GREEN_CONTEXT_H_
#define CUGUEST_GREEN_CONTEXT_H_

#include <cuda.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/export.h"
#include "cuguest/internal/toolkit.h"
#include "cuguest/sm_count.h"
#include "cuguest/sm_split.h"

CUGUEST_BEGIN_NAMESPACE

/// Stack:   never touched, whatever is current: neither by Create, nor when a green context that is
///          an entry of some stack is destroyed. Such an entry stays, dead, and can be popped.
/// Count:   one reference to the device's primary context, which the driver takes and releases.
/// Threads: distinct. For being current, see Note [One thread at a time]. Not from a stream
///          callback (kPermissionDenied; a destructor there owes), and not from a static or
///          thread_local destructor: see Note [No driver calls after main].
/// Fork:    in a forked child it owns nothing: its destructor does nothing, Release() gives
///          kFailedPrecondition.
/// Needs:   CUDA 12.4 (driver 550.54); below that Create gives kUnimplemented.
/// Source:  CUDA Driver API, "Green Contexts"; docs/guarantees.md.
class CUGUEST_API GreenContext {
 public:
  /// Makes one with at least `least` SMs of `device`; sm_count() says how many: see Note [The
  /// driver rounds]. Two of these may share SMs; for disjoint ones, use parts of one SmSplit.
  /// Errors: those of SmSplit::Of() and of Create(partition).
  /// Cost:   three driver calls more than Create(partition).
  [[nodiscard]] static absl::StatusOr<GreenContext> Create(Device device, SmCount least);

  /// Makes one of a part of an SmSplit.
  /// Errors: those of Driver::GetInitialized(), and the following; nothing is held then:
  ///         kInvalidArgument    a partition of no SMs
  ///         kResourceExhausted  out of memory
  ///         kDataLoss           an earlier sticky error
  /// Cost:   four driver calls, and 6 MiB of device memory on an H100, of which the driver keeps 4
  ///         when it is destroyed. Where the primary context is inactive, creating it comes on top,
  ///         and destroying it afterwards: see PrimaryContext::Retain. A description of the
  ///         partition stays in the driver; CUDA has no call that frees it.
  [[nodiscard]] static absl::StatusOr<GreenContext> Create(const SmSplit::Part& partition);

  /// What the driver queues the work of a green context in.
  struct WorkQueues {
    CUGUEST_HIDE WorkQueues() = default;

    /// How many streams' work is not to wait for another stream's; 0: as many as the device has.
    /// More than CUDA_DEVICE_MAX_CONNECTIONS are not promised.
    unsigned concurrency = 0;
    /// Queues that no other balanced green context has, where that can be; else those of all
    /// contexts of the device.
    bool balanced = true;
  };

  /// The same, with work queues of its own: without them, work of two green contexts may wait for
  /// each other in a queue that they share, though their SMs are disjoint.
  /// Errors: those of Create(partition); kUnimplemented also below CUDA 13.1 (driver 590.44).
  /// Cost:   one driver call more.
  /// Source: CUDA Driver API, "Green Contexts", Workqueues; not measured.
  [[nodiscard]] static absl::StatusOr<GreenContext> Create(const SmSplit::Part& partition,
                                                           const WorkQueues& queues);

  CUGUEST_HIDE GreenContext() noexcept = default;  // empty
  CUGUEST_HIDE GreenContext(GreenContext&& other) noexcept
      : state_(std::exchange(other.state_, State())) {}
  CUGUEST_HIDE GreenContext& operator=(GreenContext other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }

  /// As Release(), ignoring its result.
  ~GreenContext();

  /// The handle to make current, with a guard; nullptr if empty. cuCtxDestroy refuses it.
  [[nodiscard]] CUGUEST_HIDE CUcontext get() const noexcept { return state_.incarnation.get(); }

  /// The handle for CUDA's functions for green contexts.
  [[nodiscard]] CUGUEST_HIDE CUgreenCtx green() const noexcept { return state_.green; }

  /// Give this to ContextGuard, Stream::Create and SharedContext::Attach, and key caches by it.
  [[nodiscard]] CUGUEST_HIDE const ContextRef& context() const noexcept {
    return state_.incarnation;
  }

  [[nodiscard]] CUGUEST_HIDE Device device() const noexcept { return state_.device; }
  /// SmCount{0} if empty.
  [[nodiscard]] CUGUEST_HIDE SmCount sm_count() const noexcept { return state_.count; }

  /// Destroys the green context now, and reports what the destructor cannot. Succeeds if empty, and
  /// at the end of the process. Destroy its streams before: those that are left "result in a memory
  /// leak" (CUDA Driver API, cuGreenCtxDestroy), and a Stream among them is given up without a
  /// driver call. A SharedContext that is attached to it only counts, as for any context of another
  /// owner, and does not keep it alive. Guards, PerContext and ContextRef then treat it as any
  /// destroyed context: asking about it is as exact as ContextRef::IsAlive. From CUDA 13.1 on the
  /// driver also invalidates the captures of its streams (CUDA documentation; not measured).
  /// Errors: kFailedPrecondition  with CUDA_ERROR_CONTEXT_IS_DESTROYED, somebody else destroyed it;
  ///                              then, as on success, this object is empty
  ///         the driver's code    it is still owned
  /// Cost:   two driver calls.
  absl::Status Release();

  /// Gives up ownership without a driver call; the green context, and with it the primary context,
  /// exists until somebody destroys it or the process ends.
  CUGUEST_HIDE CUgreenCtx Leak() noexcept { return std::exchange(state_, State()).green; }

 private:
  struct State {
    CUGUEST_HIDE State() noexcept = default;  // as the compiler declares it, but hidden
    CUgreenCtx green = nullptr;
    ContextRef incarnation;
    Device device = Device::Borrow(0);
    SmCount count{0};
  };

  CUGUEST_HIDE explicit GreenContext(const State& state) noexcept : state_(state) {}
  static absl::StatusOr<GreenContext> Make(const SmSplit::Part& partition,
                                           const WorkQueues* queues);
  CUresult End() noexcept;

  State state_;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_GREEN_CONTEXT_H_

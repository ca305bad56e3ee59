// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// `CaptureScope` captures what a library submits to a stream of its own, as a Graph (graph.h) that
/// can be run in any stream, as often as wanted, for the cost of one launch.
///
///   absl::StatusOr<CaptureScope> capture = CaptureScope::Begin(stream);
///   if (!capture.ok()) return capture.status();
///   absl::StatusOr<DeviceView<float>> scratch = capture->Allocate<float>(n);
///   if (!scratch.ok()) return scratch.status();      // the scope ends the capture
///   absl::Status status = Filter(input, *scratch, output, stream);  // Launch, CopyAsync, ...
///   if (!status.ok()) return status;
///   absl::StatusOr<Graph> graph = capture->End();

#ifndef CUGUEST_OBJECTS_CAPTURE_SCOPE_H_
#define CUGUEST_OBJECTS_CAPTURE_SCOPE_H_

#include <cuda.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/export.h"
#include "cuguest/internal/this_thread.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/objects/graph.h"
#include "cuguest/objects/internal/memory_range.h"
#include "cuguest/objects/internal/stream_use.h"
#include "cuguest/objects/stream.h"

CUGUEST_BEGIN_NAMESPACE

/// Requires: the owners of captured memory and code keep them until the graph runs no more.
/// Stack:   left as it is.
/// Count:   none: it keeps neither the stream nor its context alive. If the Stream that captures,
///          of the same copy of cuguest, is destroyed before the scope, the capture ends with it.
/// Threads: distinct; its Stream may end at the same time. It is bound to the thread that began it,
///          unless the mode is RELAXED. Not in a stream callback, nor in a static or thread_local
///          destructor: see Note [No driver calls after main].
/// Errors:  those of ObjectDriver::Get(), what each function adds, and these.
///          kFailedPrecondition  the scope is empty; the context was destroyed or reset; the
///                               capture was ended by other code, or invalidated by a call that it
///                               forbids
///          kPermissionDenied    from a stream callback
///          kDataLoss            an earlier sticky error
/// Source:  CUDA Driver API, cuStreamBeginCapture, cuStreamEndCapture; docs/guarantees.md.
class CUGUEST_API CaptureScope {
 public:
  /// Begins a capture in `stream`, which must be a created one. What was submitted to it before is
  /// not captured. The graph can be launched in any stream, also in one that is refused here.
  /// Errors: as follows; nothing has changed then.
  ///         kInvalidArgument     an empty ref or a special stream (see StreamRef); an unknown mode
  ///         kFailedPrecondition  the stream captures: that capture goes on
  ///         kUnimplemented       a driver below CUDA 10.1
  /// Cost:   four driver calls, contention-free.
  [[nodiscard]] static absl::StatusOr<CaptureScope> Begin(
      const StreamRef& stream, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);

  CUGUEST_HIDE CaptureScope() noexcept = default;  // empty
  CUGUEST_HIDE CaptureScope(CaptureScope&& other) noexcept
      : state_(std::exchange(other.state_, State())),
        use_(std::move(other.use_)),
        memory_(std::move(other.memory_)) {}
  CUGUEST_HIDE CaptureScope& operator=(CaptureScope other) noexcept {
    std::swap(state_, other.state_);
    std::swap(use_, other.use_);
    memory_.swap(other.memory_);
    return *this;
  }

  /// Ends the capture if End() has not, also on another thread, and destroys what was captured; the
  /// stream can be used again. Does not end a capture that other code began there since, unless
  /// that was invalidated: the driver reports no id of such a capture, which might be the scope's.
  ~CaptureScope();

  /// Empty if the scope is.
  [[nodiscard]] CUGUEST_HIDE const StreamRef& stream() const noexcept { return state_.stream; }

  /// `count` elements of device memory, not initialised: see Note [Memory of a capture]. An empty
  /// view for no elements. In a capture of somebody else's see ScratchBuffer (scratch_buffer.h).
  /// Errors: as follows; nothing was captured then.
  ///         kInvalidArgument    the size in bytes is more than a size_t holds
  ///         kResourceExhausted  more than the device can have, if the driver notices before the
  ///                             graph is instantiated or launched
  ///         kUnimplemented      a driver below CUDA 11.4, or a device without pools
  /// Cost:   eight driver calls; below CUDA 13.0 ten, or twelve if the stream's context is not
  ///         current.
  template <typename T>
  [[nodiscard]] CUGUEST_HIDE absl::StatusOr<DeviceView<T>> Allocate(std::size_t count) {
    const absl::StatusOr<internal::MemoryRange> range =
        AllocateRange({sizeof(T), alignof(T)}, count);
    if (!range.ok()) return range.status();
    return internal::RangeAccess::View<T>(*range);
  }

  /// Frees memory of Allocate() at this place in the stream's order, so that what comes later in
  /// the graph may be given the same memory. Does nothing for an empty view.
  /// Errors: kInvalidArgument   it is no memory of this scope, or was freed
  ///         the driver's code  it is freed by End()
  /// Cost:   three driver calls.
  template <typename T>
  CUGUEST_HIDE absl::Status Free(const DeviceView<T>& view) {
    return FreeAt(view.get());
  }

  /// Ends the capture, and returns what was submitted to the stream since Begin(), and to streams
  /// that waited for it and that it has waited for; of those of other contexts, name the contexts
  /// by Graph::AddContext(). The scope is empty then, whatever the outcome, but for the errors
  /// marked (*), which leave it as it is.
  /// Errors: as follows; but for (*), no graph is left then, and the stream can be used again.
  ///         kFailedPrecondition  (*) on another thread than Begin(), unless the mode is RELAXED
  ///         kFailedPrecondition  a stream that joined the capture was not joined again: the text
  ///                              says what to do
  ///         the driver's code    (*) of a call that failed otherwise
  /// Cost:   three driver calls, and one for each Allocate() without a Free().
  [[nodiscard]] absl::StatusOr<Graph> End();

 private:
  struct State {
    CUGUEST_HIDE State() noexcept = default;
    StreamRef stream;
    cuuint64_t id = 0;  // of the capture
    bool any_thread = false;
    internal::BoundThread thread;
  };

  CUGUEST_HIDE CaptureScope(const State& state, internal::StreamUse use) noexcept
      : state_(state), use_(std::move(use)) {}
  absl::StatusOr<internal::MemoryRange> AllocateRange(const internal::ElementType& type,
                                                      std::size_t count);
  absl::Status FreeAt(CUdeviceptr pointer);
  absl::Status CheckActive(const internal::StreamHold& hold, const char* doing);

  internal::StreamUse Empty() noexcept;
  CUresult TryEnd() noexcept;

  State state_;
  internal::StreamUse use_;                    // of its stream
  std::vector<internal::MemoryRange> memory_;  // allocated, and not freed
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_CAPTURE_SCOPE_H_

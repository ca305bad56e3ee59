// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// Streams and events that know their context. `StreamRef` names a stream that other code owns;
/// `Stream` and `Event` are created in a given context, whatever is current, and destroyed only
/// while it is alive. None of them invalidates a stream capture that can be seen.
///
///   absl::Status Encoder::Run(CUstream callers) {
///     absl::StatusOr<StreamRef> stream = StreamRef::Borrow(callers);
///     if (!stream.ok()) return stream.status();
///     absl::Status status = stream->WaitFor(uploaded_);  // an Event, of whichever context
///     if (!status.ok()) return status;
///     ...
///     return finished_.Record(*stream);
///   }

#ifndef CUGUEST_OBJECTS_STREAM_H_
#define CUGUEST_OBJECTS_STREAM_H_

#include <cuda.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/capture.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

class Event;
struct ObjectDriver;
namespace internal {
struct Capture;
class FftArea;

// What stream 0 means in a file. Passed as a default argument, which the caller's file evaluates:
// an inline function that decided would violate the one-definition rule.
enum class ZeroStream : unsigned char { kLegacy, kPerThread };
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM) || defined(__CUDA_API_PER_THREAD_DEFAULT_STREAM)
#define CUGUEST_INTERNAL_ZERO_STREAM internal::ZeroStream::kPerThread
#else
#define CUGUEST_INTERNAL_ZERO_STREAM internal::ZeroStream::kLegacy
#endif

CUGUEST_HIDE constexpr CUstream NamedBy(CUstream stream, ZeroStream zero) noexcept {
  return stream == nullptr && zero == ZeroStream::kPerThread ? CU_STREAM_PER_THREAD : stream;
}

// A stream that somebody handed in, as StreamRef::Borrow() takes it; `handle` names the per-thread
// stream where that is what 0 means in the calling file.
struct CallersStream {
  CUGUEST_HIDE CallersStream(CUstream stream,
                             ZeroStream zero = CUGUEST_INTERNAL_ZERO_STREAM) noexcept
      : handle(NamedBy(stream, zero)) {}
  CUstream handle;
};
}  // namespace internal

/// Stack:   left as it is by every function; see Note [Which calls need a context].
/// Count:   none: it keeps neither the stream nor the context alive.
/// Threads: value. Not from a stream callback: kPermissionDenied. A ref to CU_STREAM_PER_THREAD
///          means the calling thread's, in the context it remembers.
/// Errors:  those of ObjectDriver::Get(), what each function adds, and these; nothing has changed
/// then.
///          kInvalidArgument     an empty ref
///          kFailedPrecondition  the context was destroyed or reset; or a capture forbids it, see
///                               Note [What captures allow]
///          kDataLoss            a sticky error: an earlier one, or of the work that is waited for
/// Cost:    in driver calls, on a created stream. On a special one (0, CU_STREAM_LEGACY,
///          CU_STREAM_PER_THREAD) a guard adds two calls if the context is current, four if not.
class CUGUEST_API StreamRef {
 public:
  CUGUEST_HIDE constexpr StreamRef() noexcept = default;  // names no stream

  /// Names `stream`. For a special stream it remembers the current context and stays with it,
  /// whatever is current later. 0 means what it means to <cuda.h>'s calls in the same file:
  /// CU_STREAM_PER_THREAD where CUDA_API_PER_THREAD_DEFAULT_STREAM is defined, otherwise the legacy
  /// stream. `zero` says which; leave it to its default.
  /// Requires: `stream` is alive.
  /// Errors: those of AcquireFromStream. A green context has no per-thread stream: kInvalidArgument
  ///         when that is used.
  /// Cost:   that of AcquireFromStream: two driver calls, contention-free, for a created stream.
  [[nodiscard]] static absl::StatusOr<StreamRef> Borrow(
      CUstream stream, internal::ZeroStream zero = CUGUEST_INTERNAL_ZERO_STREAM);

  /// The same for a caller that knows the context: no driver call, no check. Also for a stream
  /// whose capture was invalidated, whose context the driver cannot report.
  [[nodiscard]] CUGUEST_HIDE static constexpr StreamRef Borrow(
      CUstream stream, const ContextRef& context,
      internal::ZeroStream zero = CUGUEST_INTERNAL_ZERO_STREAM) noexcept {
    return StreamRef(internal::NamedBy(stream, zero), context);
  }

  [[nodiscard]] CUGUEST_HIDE constexpr CUstream get() const noexcept { return stream_; }

  /// Empty if the ref is.
  [[nodiscard]] CUGUEST_HIDE constexpr const ContextRef& context() const noexcept {
    return context_;
  }

  /// The device of its context. (Not by cuStreamGetDevice, which invalidates a capture.)
  /// Cost: two driver calls, contention-free; below CUDA 13.0 four if the context is current, else
  ///       six.
  [[nodiscard]] absl::StatusOr<Device> device() const;

  /// As CaptureStatusOf(), in the ref's context; nothing also if that is over, or the ref is empty.
  /// Cost: two driver calls, contention-free.
  [[nodiscard]] std::optional<CUstreamCaptureStatus> capture_status() const noexcept;

  /// Blocks until all work submitted so far is done.
  /// Cost: five driver calls, four of them contention-free.
  absl::Status Synchronize() const;

  /// Whether all work submitted so far is done. Errors and cost as Synchronize().
  [[nodiscard]] absl::StatusOr<bool> IsDone() const;

  /// Lets work submitted from now on wait for the work that `event` was last recorded behind; for
  /// an event that was never recorded it does not wait. Does not block the caller. The event may be
  /// of another context or device, unless it is of CU_EVENT_INTERPROCESS: there the driver crashes
  /// (docs/guarantees.md), and this refuses. In a capture, waiting for an event of the same capture
  /// is a dependency; a stream that does not capture joins the capture in which the event was
  /// recorded, and must be joined to it again before it ends.
  /// Errors: kInvalidArgument: the event is empty; it is of CU_EVENT_INTERPROCESS and of another
  ///         context; or, while the stream does not capture, the capture in which it was recorded
  ///         is over.
  /// Cost:   three driver calls; four if the event is of another context.
  /// Source: CUDA Driver API, cuStreamWaitEvent; docs/guarantees.md.
  absl::Status WaitFor(const Event& event) const;

  /// The same stream, of the same incarnation. 0 and CU_STREAM_LEGACY, though one stream, differ.
  CUGUEST_HIDE friend bool operator==(const StreamRef& a, const StreamRef& b) noexcept {
    return a.stream_ == b.stream_ && a.context_ == b.context_;
  }
  CUGUEST_HIDE friend bool operator!=(const StreamRef& a, const StreamRef& b) noexcept {
    return !(a == b);
  }

 private:
  CUGUEST_HIDE constexpr StreamRef(CUstream stream, const ContextRef& context) noexcept
      : stream_(stream), context_(context) {}

  CUstream stream_ = nullptr;
  ContextRef context_;
};

/// Owns a stream.
/// Stack:   left as it is.
/// Count:   none; keeps no context alive: see Note [After the context].
/// Threads: distinct. Memory and a CaptureScope that use the stream may end at the same time on
///          other threads, and nobody waits: see Note [A stream that ends while it is used]. Not in
///          a stream callback, where creating gives kPermissionDenied and the destructor owes
///          (Incident::Kind::kOwed); nor in a static or thread_local destructor: see Note [No
///          driver calls after main].
/// Source:  CUDA Driver API, cuStreamCreateWithPriority, cuStreamDestroy; docs/guarantees.md.
class CUGUEST_API Stream {
 public:
  /// Creates a stream in `context`. `flags` are CU_STREAM_NON_BLOCKING, or CU_STREAM_DEFAULT for
  /// one that waits for stream 0 and makes it wait, which disturbs the host; in a green context
  /// every stream is non-blocking. A lower `priority` goes first; one outside of the device's range
  /// is clamped to it. Invalidates no capture.
  /// Errors: those of ContextGuard, and as follows; nothing is held then.
  ///         kInvalidArgument  other flags
  ///         kDataLoss         an earlier sticky error
  /// Cost:   four driver calls if the context is current, else six.
  [[nodiscard]] static absl::StatusOr<Stream> Create(const ContextRef& context,
                                                     unsigned flags = CU_STREAM_NON_BLOCKING,
                                                     int priority = 0);

  /// Takes ownership of `stream`. No driver call.
  /// Requires: `stream` was created in `context`.
  /// Errors: kInvalidArgument: a special stream or an empty ContextRef. The stream keeps its owner.
  [[nodiscard]] static absl::StatusOr<Stream> Adopt(CUstream stream, const ContextRef& context);

  CUGUEST_HIDE Stream() noexcept = default;  // empty
  CUGUEST_HIDE Stream(Stream&& other) noexcept : ref_(std::exchange(other.ref_, StreamRef())) {}
  CUGUEST_HIDE Stream& operator=(Stream other) noexcept {
    std::swap(ref_, other.ref_);
    return *this;
  }

  /// Destroys the stream if its context is alive. Does not wait for its work, which is done all the
  /// same. A capture in it ends, and nobody gets its graph.
  ~Stream();

  /// Valid as long as this object; empty if it is. What takes a StreamRef takes the Stream.
  [[nodiscard]] CUGUEST_HIDE const StreamRef& ref() const noexcept { return ref_; }
  CUGUEST_HIDE operator const StreamRef&() const& noexcept { return ref_; }
  [[nodiscard]] CUGUEST_HIDE CUstream get() const noexcept {
    return ref_.get();
  }  // nullptr if empty
  [[nodiscard]] CUGUEST_HIDE const ContextRef& context() const noexcept { return ref_.context(); }

  /// Destroys the stream now, and reports errors. Succeeds if empty, at the end of the process, and
  /// if another thread is in a driver call with the stream and destroys it when that returns.
  /// Errors: kFailedPrecondition  it captures, and is still owned: end the capture first
  ///         kFailedPrecondition  CUDA_ERROR_CONTEXT_IS_DESTROYED: gone with its context; now empty
  ///         the driver's code    it is still owned
  /// Cost:   three driver calls, where the destructor makes two; more if a CaptureScope or memory
  ///         that is freed in its order uses the stream.
  absl::Status Release();

  /// Gives up ownership without a driver call.
  CUGUEST_HIDE CUstream Leak() noexcept { return std::exchange(ref_, StreamRef()).get(); }

 private:
  CUGUEST_HIDE explicit Stream(const StreamRef& ref) noexcept : ref_(ref) {}
  void Destroy() noexcept;

  StreamRef ref_;
};

/// Owns an event. Record it only through this object, which remembers whether that was in a
/// capture, and in which: the driver says so only by invalidating the capture. Recordings by other
/// code, through get(), are not known here; the driver's own rules then apply. An event that other
/// processes may use stays out of captures: see Export().
/// Stack:   left as it is.
/// Count:   none; keeps no context alive: see Note [After the context]. An event of a green context
///          is let go when that is destroyed, though the driver keeps it until the primary context
///          ends.
/// Threads: distinct; const functions of one object also from several at once. Not in stream
///          callbacks and static destructors, as Stream.
/// Errors:  as StreamRef, and kInvalidArgument for an empty event.
/// Source:  CUDA Driver API, cuEventCreate, cuEventRecord, cuEventElapsedTime; docs/guarantees.md.
class CUGUEST_API Event {
 public:
  /// Creates an event in `context`. `flags` are CU_EVENT_DISABLE_TIMING, which makes it cheaper to
  /// record, or CU_EVENT_DEFAULT for one that ElapsedMilliseconds() can use;
  /// CU_EVENT_BLOCKING_SYNC, with which Synchronize() yields the processor; and
  /// CU_EVENT_INTERPROCESS, together with CU_EVENT_DISABLE_TIMING, for one that Export() lets other
  /// processes use. Invalidates no capture.
  /// Errors, cost: as Stream::Create().
  [[nodiscard]] static absl::StatusOr<Event> Create(const ContextRef& context,
                                                    unsigned flags = CU_EVENT_DISABLE_TIMING);

  /// Takes ownership of `event`, which was created with `flags`; CU_EVENT_INTERPROCESS is one of
  /// them also if cuIpcOpenEventHandle() returned it. Until it is recorded through this object, a
  /// stream that captures cannot wait for it, because what it was recorded behind is not known, and
  /// IsDone(), Synchronize() and a wait of stream 0 see by cuEventElapsedTime whether it was in a
  /// capture: a call that fails, and is a line in the host's CUDA_LOG_FILE, if it was made with
  /// CU_EVENT_DISABLE_TIMING or never recorded. No driver call here.
  /// Requires: `event` was created in `context`.
  /// Errors: kInvalidArgument: null or an empty ContextRef. The event keeps its owner.
  [[nodiscard]] static absl::StatusOr<Event> Adopt(CUevent event, const ContextRef& context,
                                                   unsigned flags);

  /// The handle by which Import() opens the event in another process of this machine: 64 bytes that
  /// may be sent as they are. Each process may then record it, and wait for what any of them
  /// recorded last. Only streams of its own context can wait for such an event, and a capture can
  /// neither record it nor wait for it: Record() and WaitFor() refuse both, without harm.
  /// Requires: the importers are done with the event when it is destroyed.
  /// Errors: as the class, and
  ///         kInvalidArgument  it was created without CU_EVENT_INTERPROCESS, or imported
  ///         kUnimplemented    an adopted driver (Driver::Adopt) without cuIpcGetEventHandle
  /// Cost:   six driver calls if the context is current, else eight.
  /// Source: CUDA Driver API, cuIpcGetEventHandle; docs/guarantees.md.
  [[nodiscard]] absl::StatusOr<CUipcEventHandle> Export() const;

  /// Opens in `context` the event of another process that `handle` is of. It is closed as other
  /// events are destroyed, and the exporter's stays. It may be imported several times. Invalidates
  /// no capture.
  /// Errors: those of ContextGuard, and as follows; nothing is held then.
  ///         kFailedPrecondition  CUDA_ERROR_INVALID_CONTEXT: this process exported it. Use that
  ///                              Event
  ///         kUnimplemented       an adopted driver (Driver::Adopt) without cuIpcOpenEventHandle
  ///         the driver's code    CUDA_ERROR_MAP_FAILED: the exporter has destroyed it, or has
  ///                              ended, or the bytes are no handle
  /// Cost:   as Export().
  /// Source: CUDA Driver API, cuIpcOpenEventHandle; docs/guarantees.md.
  [[nodiscard]] static absl::StatusOr<Event> Import(const ContextRef& context,
                                                    const CUipcEventHandle& handle);

  CUGUEST_HIDE Event() noexcept = default;  // empty
  CUGUEST_HIDE Event(Event&& other) noexcept : state_(std::exchange(other.state_, State())) {}
  CUGUEST_HIDE Event& operator=(Event other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }

  /// Destroys the event if its context is alive. Does not wait for it, invalidates no capture, and
  /// allocates no host memory.
  ~Event();

  [[nodiscard]] CUGUEST_HIDE CUevent get() const noexcept {
    return state_.event;
  }  // nullptr if empty
  [[nodiscard]] CUGUEST_HIDE const ContextRef& context() const noexcept { return state_.context; }

  /// Records the work submitted to `stream` so far; the event has happened when that is done. The
  /// stream must be of the event's context (a primary context and its green contexts count as one).
  /// In a capturing stream this marks a place in the capture instead, good for WaitFor() and
  /// nothing else until the event is recorded outside again.
  /// Errors: kInvalidArgument     the stream is of another context: the text names both
  ///         kFailedPrecondition  the stream's capture was invalidated and not ended; or it is
  ///                              active, and the event is of CU_EVENT_INTERPROCESS
  /// Cost:   three driver calls; four if the stream's context is another one.
  absl::Status Record(const StreamRef& stream);

  /// Whether it has happened; an event that was never recorded has.
  /// Cost: four driver calls, three of them contention-free.
  [[nodiscard]] absl::StatusOr<bool> IsDone() const;

  /// Blocks until it has happened. Cost as IsDone().
  absl::Status Synchronize() const;

  /// The time between two events that have happened, in milliseconds, with a resolution of about
  /// half a microsecond. Invalidates no capture.
  /// Errors: kInvalidArgument  one was never recorded or was made without timing, or they are of
  ///                           different contexts
  ///         kUnavailable      one has not happened yet
  /// Cost:   three driver calls; two if they are of one context.
  [[nodiscard]] static absl::StatusOr<float> ElapsedMilliseconds(const Event& start,
                                                                 const Event& end);

  /// Destroys the event now; success and errors as Stream::Release(), but for the one of a capture.
  /// Cost: two driver calls.
  absl::Status Release();

  /// Gives up ownership without a driver call.
  CUGUEST_HIDE CUevent Leak() noexcept { return std::exchange(state_, State()).event; }

 private:
  friend class StreamRef;
  friend class internal::FftArea;
  enum class Recorded : unsigned char { kNever, kOutside, kInCapture, kByOthers };
  struct State {
    CUGUEST_HIDE State() noexcept = default;
    CUevent event = nullptr;
    ContextRef context;
    Recorded recorded = Recorded::kNever;
    bool is_for_processes = false;
    cuuint64_t capture = 0;  // which, if kInCapture
  };

  // The result of a call, and the object for which it failed.
  struct Attempt {
    enum class Part : unsigned char { kEvent, kStream, kBoth };
    CUresult code;
    Part failed;
  };

  CUGUEST_HIDE explicit Event(const State& state) noexcept : state_(state) {}
  CUresult Destroy() noexcept;
  Attempt TryRecord(const StreamRef& stream) noexcept;
  CUresult Ask(const ObjectDriver& driver, CUresult(CUDAAPI* call)(CUevent)) const noexcept;
  CUresult RefusalToAsk(const ObjectDriver& driver) const noexcept;
  CUresult RefusalToWait(const ObjectDriver& driver, CUstream stream,
                         const internal::Capture& capture) const noexcept;

  State state_;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_STREAM_H_

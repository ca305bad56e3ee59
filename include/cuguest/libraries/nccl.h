// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 4
/// \file
/// NCCL beside its other users, from any thread. A communicator works in the primary context of its
/// device, and NCCL makes that current on the thread that calls it, or leaves the one of device 0
/// (issues 565, 1736 and 2231 of NVIDIA/nccl). `NcclCommunicator` makes and destroys one there;
/// `NcclScope` makes that context current for calls, and the caller's stack is as it was.
///
///   auto comm = runtime::NcclCommunicator::Make(nccl, std::move(primary), ranks, rank, id);
///   if (!comm.ok()) return comm.status();
///   const runtime::NcclScope scope(*comm, stream);       // a stream of the primary context
///   if (!scope.ok()) return scope.status();
///   return runtime::ToStatus(ncclAllReduce(in, out, count, ncclFloat, ncclSum, scope.comm(),
///                                          stream.get()), "add over the ranks");

#ifndef CUGUEST_LIBRARIES_NCCL_H_
#define CUGUEST_LIBRARIES_NCCL_H_

#include <cuda.h>
#include <nccl.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/incident.h"
#include "cuguest/internal/report.h"
#include "cuguest/libraries/internal/toolkit_library.h"
#include "cuguest/libraries/library.h"
#include "cuguest/location.h"
#include "cuguest/objects/stream.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"

#define CUGUEST_NCCL_ENTRIES(X)     \
  X(GetVersion, ncclGetVersion)     \
  X(GetLastError, ncclGetLastError) \
  X(CommInitRank, ncclCommInitRank) \
  X(CommDestroy, ncclCommDestroy)   \
  X(CommAbort, ncclCommAbort)       \
  X(CommGetAsyncError, ncclCommGetAsyncError)

CUGUEST_BEGIN_RUNTIME_NAMESPACE

/// As ToStatus(cublasStatus_t), with the words of ncclGetErrorString. ncclInProgress, of a
/// communicator that does not block, is kUnavailable.
[[nodiscard]] inline absl::Status ToStatus(ncclResult_t code, std::string_view doing,
                                           std::string_view object = {}) {
  return internal::ToLibraryStatus(internal::Library::kNccl, code, doing, object);
}

/// As CublasCodeOf().
[[nodiscard]] inline std::optional<ncclResult_t> NcclCodeOf(const absl::Status& status) {
  return internal::LibraryCodeOfType<ncclResult_t>(internal::Library::kNccl, status);
}

namespace impl {

struct Nccl {
  CUGUEST_NCCL_ENTRIES(CUGUEST_LIBRARY_POINTER)

  static constexpr internal::Library kLibrary = internal::Library::kNccl;
  static constexpr char kStem[] = "libnccl";
  static constexpr int kMajor = NCCL_MAJOR;

 protected:
  Nccl() = default;
  void Link() { CUGUEST_NCCL_ENTRIES(CUGUEST_LIBRARY_LINK); }
  std::vector<internal::LibraryEntry> Entries() {
    return {CUGUEST_NCCL_ENTRIES(CUGUEST_LIBRARY_FIND)};
  }
  // Source: NCCL_VERSION in <nccl.h>.
  ncclResult_t GetProperty(libraryPropertyType, int* major) {
    int version = 0;
    const ncclResult_t code = GetVersion(&version);
    *major = version / (version < 10000 ? 1000 : 10000);
    return code;
  }
};

}  // namespace impl

#undef CUGUEST_NCCL_ENTRIES

/// See ToolkitFunctions. Open() opens "libnccl.so.<major version of the header>" by default.
using NcclLibrary = ToolkitFunctions<impl::Nccl>;

/// A rank's communicator, which blocks, and the reference to the primary context that it works in.
/// Stack:   net 0. Count: the reference that it was given. NCCL takes one more for itself, and
///          keeps it to the end of the process.
/// Threads: distinct; NCCL wants the calls of one communicator in one order in all ranks. Abort()
///          may be called while another thread waits inside NCCL, but not in Release(), which ends
///          the communicator too.
/// Errors:  those of ContextGuard, CaptureModeGuard and ToStatus(ncclResult_t), with the text of
///          ncclGetLastError. A communicator whose context was reset is given up without a call: it
///          would work on memory that is gone. So is one of a parent, in a forked child.
/// Source:  NCCL, "Creating a Communicator", "Fault Tolerance"; docs/guarantees.md.
class [[nodiscard]] NcclCommunicator {
 public:
  /// Returns when all `ranks` have called it, with one `id` that ncclGetUniqueId made. If it fails
  /// the reference is released.
  /// Errors: kFailedPrecondition  `primary` holds none, or was reset
  ///         kInvalidArgument     `rank` is not below `ranks`; two ranks on one device
  /// Cost:   NCCL's.
  [[nodiscard]] static absl::StatusOr<NcclCommunicator> Make(const NcclLibrary& library,
                                                             PrimaryContext primary, int ranks,
                                                             int rank, const ncclUniqueId& id,
                                                             Location where = Location::Here()) {
    NcclCommunicator made(library, std::move(primary));
    absl::Status status = made.Call("make a communicator", where, [&] {
      return library.CommInitRank(&made.comm_, ranks, id, rank);
    });
    if (!status.ok()) return status;
    return made;
  }

  NcclCommunicator(NcclCommunicator&& other) noexcept
      : library_(std::move(other.library_)),
        primary_(std::move(other.primary_)),
        comm_(std::exchange(other.comm_, nullptr)) {}
  NcclCommunicator& operator=(NcclCommunicator other) noexcept {
    std::swap(library_, other.library_);
    std::swap(primary_, other.primary_);
    std::swap(comm_, other.comm_);
    return *this;
  }

  /// As Release(). Where that fails, as in a stream callback, the communicator stays to the end of
  /// the process, which is an incident (Incident::Kind::kOwed, CUDA_ERROR_NOT_SUPPORTED). Not from
  /// a static or thread_local destructor: see Note [No driver calls after main].
  ~NcclCommunicator() {
    if (comm_ == nullptr) return;
    const absl::Status status = Release();
    const std::optional<CUresult> code = CodeOf(status);
    if (status.ok() || code == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
        code == CUDA_ERROR_NOT_INITIALIZED || code == CUDA_ERROR_DEINITIALIZED) {
      return;
    }
    static_cast<void>(Leak());  // its context stays with it
    internal::ReportIncident(Incident::Kind::kOwed, Incident::Repair::kUnrepaired,
                             CUDA_ERROR_NOT_SUPPORTED, {"an NcclCommunicator", 0});
  }

  /// nullptr if it was released. For calls inside an NcclScope.
  [[nodiscard]] ncclComm_t get() const noexcept { return comm_; }
  /// The primary context; empty if it was released.
  [[nodiscard]] const ContextRef& context() const noexcept { return primary_.context(); }

  /// What went wrong since, of a collective whose call succeeded: another rank ended, or the
  /// network failed. Then only Abort() is left.
  /// Errors: kFailedPrecondition  it was released
  /// Cost:   seven driver calls.
  [[nodiscard]] absl::Status Check(Location where = Location::Here()) const {
    if (comm_ == nullptr) return Released();
    ncclResult_t since = ncclSuccess;
    absl::Status status = Call("ask for the communicator's error", where,
                               [&] { return library_.CommGetAsyncError(comm_, &since); });
    return status.ok() ? Say(since, "work on the communicator's ranks") : status;
  }

  /// Waits for its work and destroys it; then releases the reference. Succeeds if there is none.
  /// Errors: kPermissionDenied    in a stream callback: it is still owned
  ///         kFailedPrecondition  the context was reset, or this is a forked child: given up
  absl::Status Release(Location where = Location::Here()) {
    return End("destroy a communicator", library_.CommDestroy, where);
  }

  /// As Release(), but waits for nothing: its collectives fail on all threads, in other ranks when
  /// they notice.
  absl::Status Abort(Location where = Location::Here()) {
    return End("abort a communicator", library_.CommAbort, where);
  }

  /// Gives up ownership without a call; the reference lasts until the process ends.
  [[nodiscard]] ncclComm_t Leak() noexcept {
    static_cast<void>(primary_.Leak());
    return std::exchange(comm_, nullptr);
  }

 private:
  friend class NcclScope;

  NcclCommunicator(const NcclLibrary& library, PrimaryContext primary)
      : library_(library), primary_(std::move(primary)) {}

  static absl::Status Released() {
    return absl::FailedPreconditionError("use a communicator: it was released");
  }

  // With what NCCL says besides the code's own text.
  absl::Status Say(ncclResult_t code, std::string_view doing) const {
    if (code == ncclSuccess) return absl::OkStatus();
    const char* const text = library_.GetLastError(comm_);
    return ToStatus(code, doing, text == nullptr ? "" : std::string("NCCL: ") + text);
  }

  // In the primary context, which NCCL may set on our entry of the stack.
  template <typename Function>
  absl::Status Call(const char* doing, Location where, const Function& function) const {
    const ContextGuard guard(context(), GuardMode::kAlwaysPush, where);
    if (!guard.ok()) return cuguest::ToStatus(guard);
    const CaptureModeGuard relaxed(CU_STREAM_CAPTURE_MODE_RELAXED, where);
    if (!internal::IsRelaxed(relaxed)) return cuguest::ToStatus(relaxed);
    return Say(function(), doing);
  }

  absl::Status End(const char* doing, ncclResult_t (*end)(ncclComm_t), Location where) {
    const absl::Status status =
        comm_ == nullptr ? absl::OkStatus() : Call(doing, where, [&] { return end(comm_); });
    if (status.code() == absl::StatusCode::kPermissionDenied) return status;
    comm_ = nullptr;
    if (!primary_.ok()) return status;
    const absl::Status released = cuguest::ToStatus(primary_.Release());
    return status.ok() ? released : status;
  }

  NcclLibrary library_;
  PrimaryContext primary_;
  ncclComm_t comm_ = nullptr;
};

/// For calls of NCCL: the communicator's context is current, and captures are relaxed.
/// Stack:   +1, undone at the end, whatever NCCL left. Count: none.
/// Threads: bound.
/// Errors:  test ok(), or status(): those of ContextGuard and CaptureModeGuard, and
///          kFailedPrecondition  the communicator was released
///          kInvalidArgument     the stream is of another context: several ranks could not use it
/// Cost:    seven driver calls.
class [[nodiscard]] NcclScope {
 public:
  NcclScope(const NcclCommunicator& communicator, const StreamRef& stream,
            Location where = Location::Here())
      : comm_(communicator.get()),
        guard_(communicator.context(), GuardMode::kAlwaysPush, where),
        relaxed_(CU_STREAM_CAPTURE_MODE_RELAXED, where),
        status_(Enter(communicator, stream)) {}

  [[nodiscard]] bool ok() const noexcept { return status_.ok(); }
  [[nodiscard]] const absl::Status& status() const noexcept { return status_; }

  /// nullptr unless ok(), and after Leave().
  [[nodiscard]] ncclComm_t comm() const noexcept { return ok() ? comm_ : nullptr; }

  /// Ends the scope now. Does nothing the second time.
  /// Errors: as ContextGuard::Leave() and CaptureModeGuard::Leave()
  absl::Status Leave() {
    comm_ = nullptr;
    const CUresult mode = relaxed_.Leave();
    const CUresult stack = guard_.Leave();
    return cuguest::ToStatus(stack != CUDA_SUCCESS ? stack : mode, "end a scope of NCCL");
  }

 private:
  absl::Status Enter(const NcclCommunicator& communicator, const StreamRef& stream) const {
    if (!guard_.ok()) {
      return comm_ == nullptr ? NcclCommunicator::Released() : cuguest::ToStatus(guard_);
    }
    if (!internal::IsRelaxed(relaxed_)) return cuguest::ToStatus(relaxed_);
    if (stream.context() == communicator.context()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "use a communicator: the stream is of another context than the primary one that NCCL works "
        "in; make it there, and wait for events of others");
  }

  ncclComm_t comm_;
  ContextGuard guard_;
  CaptureModeGuard relaxed_;
  absl::Status status_;
};

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_LIBRARIES_NCCL_H_

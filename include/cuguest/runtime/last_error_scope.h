// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 4
/// \file
/// The runtime keeps a thread's last error until code takes it; a host may blame its own kernel.
/// `LastErrorScope` leaves the runtime's last error as it found it, and says which call set it.
///
///   runtime::LastErrorScope errors;
///   void* pointer = nullptr;
///   if (errors.Note(cudaMalloc(&pointer, bytes), "cudaMalloc") != cudaSuccess) ...
///   absl::Status clean = errors.Check();   // "... cudaMalloc left cudaErrorMemoryAllocation"
///
/// Each copy of the runtime in a process has its own last errors: this is about the copy that the
/// including file is linked with. Driver calls set none, so nothing else in cuguest needs it.

#ifndef CUGUEST_RUNTIME_LAST_ERROR_SCOPE_H_
#define CUGUEST_RUNTIME_LAST_ERROR_SCOPE_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "cuguest/incident.h"
#include "cuguest/internal/report.h"
#include "cuguest/internal/this_thread.h"
#include "cuguest/runtime/binding.h"
#include "cuguest/runtime/error.h"

CUGUEST_BEGIN_RUNTIME_NAMESPACE

/// Stack, count: not touched: the runtime's error functions create no context. In a process that
///               has not used CUDA they initialise the driver, and return the error if that fails.
/// Threads: bound; destroy it there.
/// Cost:    one cudaPeekAtLastError each for construction, Note() and Check(), two for Leave(); no
///          driver call, no allocation where nothing changed.
/// Source:  CUDA Runtime API, cudaGetLastError; docs/guarantees.md.
class [[nodiscard]] LastErrorScope {
 public:
  [[nodiscard]] explicit LastErrorScope(Location where = Location::Here()) noexcept
      : where_(where), before_(cudaPeekAtLastError()) {}
  LastErrorScope(const LastErrorScope&) = delete;
  LastErrorScope& operator=(const LastErrorScope&) = delete;
  ~LastErrorScope() { static_cast<void>(Leave()); }

  /// The last error when the scope began.
  [[nodiscard]] cudaError_t before() const noexcept { return before_; }

  /// Call it with each runtime call of the scope. Returns `code`. Check() names the first call
  /// after which the last error was another.
  /// Requires: `call` has static storage duration.
  cudaError_t Note(cudaError_t code, const char* call) noexcept {
    if (culprit_ == nullptr && cudaPeekAtLastError() != before_) culprit_ = call;
    return code;
  }

  /// OK while the last error is what it was. Otherwise a status of the new one, which names both
  /// and the call noted first after the change; kInternal if the old one was taken and none
  /// replaced it.
  [[nodiscard]] absl::Status Check() const {
    const cudaError_t now = cudaPeekAtLastError();
    if (now == before_) return absl::OkStatus();
    const std::string doing = std::string("keep the runtime's last error, which was ") +
                              ErrorName(before_) + ": " +
                              (culprit_ != nullptr ? culprit_ : "a call that was not noted");
    if (now != cudaSuccess) return ToStatus(now, doing + " left another");
    return absl::InternalError(doing + " took it (cudaGetLastError)");
  }

  /// Ends the scope now; does nothing the second time. An error that came up in the scope is taken
  /// back; one that was there before and was overwritten or taken cannot be set again, and sticky
  /// errors stay. A change that no call was noted for is an incident (kLastError) with the new
  /// error as its result. Returns whether the last error is what it was; on another thread only
  /// reports kElsewhere, once, and returns false.
  bool Leave() noexcept {
    if (!std::exchange(inside_, false)) return true;
    if (!thread_.IsThis()) {
      internal::ReportIncident(Incident::Kind::kElsewhere, Incident::Repair::kUnrepaired,
                               CUDA_ERROR_ILLEGAL_STATE, where_);
      return false;
    }
    const cudaError_t after = cudaPeekAtLastError();
    if (after == before_) return true;
    if (before_ == cudaSuccess) static_cast<void>(cudaGetLastError());
    const bool restored = cudaPeekAtLastError() == before_;
    if (culprit_ == nullptr) {
      internal::ReportIncident(
          Incident::Kind::kLastError,
          restored ? Incident::Repair::kRepaired : Incident::Repair::kUnrepaired, ToDriver(after),
          where_);
    }
    return restored;
  }

 private:
  const internal::BoundThread thread_;
  const Location where_;
  cudaError_t before_;
  const char* culprit_ = nullptr;
  bool inside_ = true;
};

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_RUNTIME_LAST_ERROR_SCOPE_H_

// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// error.h                                                               tier: 0
// -----------------------------------------------------------------------------
/// \file
/// Between the driver's `CUresult` and `absl::Status`. A status made here says
/// what was being done, to what, what the driver said, and what to do about it;
/// the driver's code can be taken out of it again.
///
///   absl::Status s = cuguest::ToStatus(code, "allocate 4096 bytes", "device 0");
///   // RESOURCE_EXHAUSTED: allocate 4096 bytes, device 0:
///   //   CUDA_ERROR_OUT_OF_MEMORY (2): ...
///   cuguest::CodeOf(s) == CUDA_ERROR_OUT_OF_MEMORY;
///
/// This header is not a replacement for the runtime's error slot: nothing here
/// reads or writes `cudaGetLastError`.
///
/// Note [Canonical codes]
/// ~~~~~~~~~~~~~~~~~~~~~~
/// Which absl code a CUresult becomes, by what the author can do about it:
///
///   INVALID_ARGUMENT     the call was wrong as written: a value, handle, image (1, 400, 200)
///   NOT_FOUND            no such device, symbol or file (100, 101, 301, 500)
///   ALREADY_EXISTS       the state asked for is there already (704, 712)
///   FAILED_PRECONDITION  something else must come first: no context is current, it is
///                        destroyed, a fork, a stub, a capture (201, 709, 3, 34, 900)
///   RESOURCE_EXHAUSTED   memory or another resource ran out (2, 701)
///   UNAVAILABLE          no driver, or a device busy or gone for now (303, 46, 802)
///   UNIMPLEMENTED        this driver or device cannot do it (36, 801, 215)
///   CANCELLED            the process is ending (4)
///   DEADLINE_EXCEEDED    a wait timed out (909)
///   PERMISSION_DENIED    not from here, as in a stream callback (800)
///   DATA_LOSS            a sticky error: every context of this process on the device is
///                        lost, end the process (700, 702, 710, 714 and others)
///   INTERNAL, UNKNOWN    the rest
///
/// The table itself is lib/core/error_text.cc; test/core/error_test.cc checks it
/// against <cuda.h> and, on a real driver, against cuGetErrorName.

#ifndef CUGUEST_ERROR_H_
#define CUGUEST_ERROR_H_

#include <cuda.h>

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "cuguest/error_text.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

namespace internal {
CUGUEST_API absl::Status MakeStatus(CUresult code, std::string_view doing, std::string_view object);
}  // namespace internal

/// ToStatus()
///
/// `doing` is a verb phrase ("push a context"), `object` what it was done to
/// ("device 1", "context 0x5581"); either may be empty.
///
/// Threads: any.
/// Cost:    one comparison on success, nothing allocated; text is built on failure only.
[[nodiscard]] CUGUEST_HIDE inline absl::Status ToStatus(CUresult code, std::string_view doing,
                                                        std::string_view object = {}) {
  if (code == CUDA_SUCCESS) return absl::OkStatus();
  return internal::MakeStatus(code, doing, object);
}

/// The same for anything of cuguest that carries a raw `result()` because it
/// sits on a hot path (`ContextGuard`, `NoContextGuard`, `ContextRef`):
///
///   cuguest::ContextGuard guard(ctx);
///   if (!guard.ok()) return cuguest::ToStatus(guard);
///
/// See Note [Guards carry CUresult, not Status] in context_guard.h.
template <typename T>
[[nodiscard]] CUGUEST_HIDE auto ToStatus(const T& carrier)
    -> decltype(internal::MakeStatus(carrier.result(), carrier.doing(), carrier.advice())) {
  if (carrier.result() == CUDA_SUCCESS) return absl::OkStatus();
  return internal::MakeStatus(carrier.result(), carrier.doing(), carrier.advice());
}

/// CodeOf()
///
/// The driver's code that `status` was made from, or the one for the runtime's code
/// (runtime/error.h) that it was made from; nothing for a status that was made from
/// neither. CUDA_SUCCESS for an OK status.
[[nodiscard]] CUGUEST_API std::optional<CUresult> CodeOf(const absl::Status& status);

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_ERROR_H_

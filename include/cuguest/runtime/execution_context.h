// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 4
/// \file
/// Execution contexts: the runtime's handles, from CUDA 13.1 on, for a device's primary context and
/// for green contexts. From one to the `ContextRef` that guards and streams take, and back.
///
///   absl::StatusOr<ContextRef> context = runtime::ContextOf(execution);
///   if (!context.ok()) return context.status();
///   const ContextGuard guard(*context);
///
///   absl::StatusOr<cudaExecutionContext_t> green = runtime::ExecutionContextOf(mine.context());
///
/// A stream of one is a stream: StreamRef::Borrow(runtime::ToDriver(stream)) of what
/// cudaExecutionCtxStreamCreate made knows its context.
///
/// With headers before 13.1, which do not declare them, this one has nothing in it, unless
/// CUGUEST_RUNTIME_DECLARES_EXECUTION_CONTEXTS is defined: the program declares, before it, the
/// type, cudaDeviceGetExecutionCtx and cudaExecutionCtxGetId itself.

#ifndef CUGUEST_RUNTIME_EXECUTION_CONTEXT_H_
#define CUGUEST_RUNTIME_EXECUTION_CONTEXT_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/acquire.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/internal/primary.h"
#include "cuguest/primary_context.h"
#include "cuguest/runtime/binding.h"
#include "cuguest/runtime/device.h"
#include "cuguest/runtime/error.h"
#include "cuguest/runtime/last_error_scope.h"
#include "cuguest/status.h"

#if CUDART_VERSION >= 13010 || defined(CUGUEST_RUNTIME_DECLARES_EXECUTION_CONTEXTS)

CUGUEST_BEGIN_RUNTIME_NAMESPACE

namespace impl {

// The context with the handle that `execution` is, if the runtime's id of the one is the driver's
// of the other. The runtime is asked first: it knows its handles.
inline absl::StatusOr<ContextRef> SameContext(cudaExecutionContext_t execution) {
  unsigned long long id = 0;
  LastErrorScope errors;
  const cudaError_t code =
      errors.Note(cudaExecutionCtxGetId(execution, &id), "cudaExecutionCtxGetId");
  if (code != cudaSuccess) return ToStatus(code, "ask for the id of an execution context");
  const ContextRef context = ContextRef::Borrow(reinterpret_cast<CUcontext>(execution));
  if (!context.ok()) return cuguest::ToStatus(context);
  if (id == context.id()) return context;
  return absl::UnimplementedError(
      "compare an execution context with a context: the runtime's handle is not the driver's. Make "
      "a stream in the one (cudaExecutionCtxStreamCreate), and ask StreamRef::Borrow() for its "
      "context");
}

inline absl::StatusOr<cudaExecutionContext_t> SameExecution(const ContextRef& context) {
  const auto execution = reinterpret_cast<cudaExecutionContext_t>(context.get());
  const absl::StatusOr<ContextRef> same = SameContext(execution);
  if (!same.ok()) return same.status();
  return execution;
}

}  // namespace impl

/// All of them
/// Stack:   net 0; nothing is made current for the caller.
/// Threads: any.
/// Errors:  what each says. The runtime's last error stays as it was, but a runtime call that fails
///          overwrites one that was set before: see LastErrorScope::Leave.
/// Needs:   the runtime of CUDA 13.1, on a driver of 13.0 (580) or newer.
/// Source:  docs/guarantees.md: on driver 580 with the runtime of 13.5, the handle and the id of an
///          execution context are the driver's, also for a green context that the driver made. The
///          documentation calls the handle opaque, so the ids are compared, and where they differ
///          the result is kUnimplemented, never a guess.

/// The context that `execution` names, a device's or a green one.
/// Count:   none; keeps nothing alive.
/// Errors:  kInvalidArgument     null
///          kFailedPrecondition  CUDA_ERROR_CONTEXT_IS_DESTROYED: its owner destroyed it, or the
///                               device was reset; best effort, as ContextRef::IsAlive
/// Cost:    one runtime call and one driver call.
[[nodiscard]] inline absl::StatusOr<ContextRef> ContextOf(cudaExecutionContext_t execution) {
  if (execution == nullptr) {
    return absl::InvalidArgumentError("find the context of a null execution context");
  }
  return impl::SameContext(execution);
}

/// The execution context that names `context`, a primary or a green one; valid as long as that.
/// Count:   none, but for the question of RuntimeContext::Query() which context is primary.
/// Errors:  kInvalidArgument     neither: a context of cuCtxCreate has no execution context
///          kFailedPrecondition  the context was destroyed or reset
///          and those of ContextGuard
/// Cost:    a ContextGuard, one runtime call and two driver calls; three more where this copy of
///          cuguest never had a reference to the primary context, and three for a green one.
[[nodiscard]] inline absl::StatusOr<cudaExecutionContext_t> ExecutionContextOf(
    const ContextRef& context) {
  constexpr char kDoing[] = "find the execution context of a context";
  const ContextGuard guard(context);
  if (!guard.ok()) return cuguest::ToStatus(guard);
  bool is_one = false;
  CUresult code = internal::AskIfPrimary(context, &is_one);
  if (code == CUDA_SUCCESS && !is_one) code = internal::AskIfGreen(&is_one);
  if (code != CUDA_SUCCESS) return cuguest::ToStatus(code, kDoing);
  if (!is_one) {
    return absl::InvalidArgumentError(
        "find the execution context of a context that is neither primary nor green: the runtime "
        "has none for it");
  }
  return impl::SameExecution(context);
}

/// The one of `device`, which is its primary context's; valid as long as that.
/// Count:   none. With kCreate the runtime takes a reference to the primary context, as for its own
///          work, and keeps it until cudaDeviceReset.
/// Errors:  kFailedPrecondition  the primary context is inactive: asking the runtime would create
///                               it, some 500 MB, which only IfInactive::kCreate does
///          kNotFound            no such device
///          and those of PrimaryContext::RetainIfActive and of creating a context
/// Cost:    one runtime call; with kRefuse also five driver calls, which take the driver's lock.
[[nodiscard]] inline absl::StatusOr<cudaExecutionContext_t> ExecutionContextOf(
    Device device, IfInactive if_inactive = IfInactive::kRefuse) {
  if (if_inactive == IfInactive::kRefuse) {
    const PrimaryContext primary = PrimaryContext::RetainIfActive(device);
    if (!primary.ok()) return cuguest::ToStatus(primary);
    return impl::SameExecution(primary.context());
  }
  cudaExecutionContext_t execution = nullptr;
  LastErrorScope errors;
  const cudaError_t code = errors.Note(cudaDeviceGetExecutionCtx(&execution, ToRuntime(device)),
                                       "cudaDeviceGetExecutionCtx");
  if (code != cudaSuccess) return ToStatus(code, "find the execution context of a device");
  return execution;
}

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUDART_VERSION >= 13010

#endif  // CUGUEST_RUNTIME_EXECUTION_CONTEXT_H_

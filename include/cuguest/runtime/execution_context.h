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
#include "cuguest/objects/driver.h"
#include "cuguest/primary_context.h"
#include "cuguest/runtime/binding.h"
#include "cuguest/runtime/device.h"
#include "cuguest/runtime/error.h"
#include "cuguest/runtime/internal/handle_cast.h"
#include "cuguest/runtime/last_error_scope.h"
#include "cuguest/status.h"

#if CUDART_VERSION >= 13010 || defined(CUGUEST_RUNTIME_DECLARES_EXECUTION_CONTEXTS)

CUGUEST_BEGIN_RUNTIME_NAMESPACE

namespace impl {

// The id of the context that `execution` names; the runtime knows its handles.
inline absl::StatusOr<unsigned long long> IdOf(cudaExecutionContext_t execution) {
  unsigned long long id = 0;
  LastErrorScope errors;
  const cudaError_t code =
      errors.Note(cudaExecutionCtxGetId(execution, &id), "cudaExecutionCtxGetId");
  if (code != cudaSuccess) return ToStatus(code, "ask for the id of an execution context");
  return id;
}

// The context of `stream`, which was made in the one with that id, and is destroyed here by the
// driver: the runtime would make a context current for that. If the context is over, so is the
// stream, and the driver may crash on it.
inline CUresult AskByStream(const ObjectDriver& driver, CUstream stream, unsigned long long id,
                            ContextRef* context) {
  CUcontext handle = nullptr;
  CUresult code = driver.StreamGetCtx(stream, &handle);
  if (code == CUDA_SUCCESS) {
    *context = ContextRef::Borrow(handle);
    code = context->result();
  }
  if (code == CUDA_SUCCESS && context->id() != id) code = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (code == CUDA_ERROR_CONTEXT_IS_DESTROYED) return code;
  const CUresult destroyed = driver.StreamDestroy(stream);
  return code != CUDA_SUCCESS ? code : destroyed;
}

inline absl::StatusOr<cudaExecutionContext_t> OfDevice(Device device) {
  cudaExecutionContext_t execution = nullptr;
  LastErrorScope errors;
  const cudaError_t code = errors.Note(cudaDeviceGetExecutionCtx(&execution, ToRuntime(device)),
                                       "cudaDeviceGetExecutionCtx");
  if (code != cudaSuccess) return ToStatus(code, "find the execution context of a device");
  return execution;
}

}  // namespace impl

/// All of them
/// Stack:   net 0; nothing is made current for the caller.
/// Threads: any.
/// Errors:  what each says. The runtime's last error stays as it was, but a runtime call that fails
///          overwrites one that was set before: see LastErrorScope::Leave.
/// Captures: none is invalidated.
/// Needs:   the runtime of CUDA 13.1, on a driver of 13.0 (580) or newer.
/// Source:  CUDA Runtime API, "Execution Context Management": the handle is opaque. So the driver
///          is never handed one, but asked for the context of a stream that the runtime makes in
///          it. docs/guarantees.md: ids are those of cuCtxGetId.

/// The context that `execution` names, a device's or a green one.
/// Count:   none; keeps nothing alive.
/// Errors:  kInvalidArgument     null
///          kFailedPrecondition  CUDA_ERROR_CONTEXT_IS_DESTROYED: its owner destroyed it, or the
///                               device was reset, before or meanwhile; best effort, as
///                               ContextRef::IsAlive
///          and those of creating a stream
/// Cost:    two runtime calls and three driver calls, with those of a stream that is created and
///          destroyed: keep the result.
[[nodiscard]] inline absl::StatusOr<ContextRef> ContextOf(cudaExecutionContext_t execution) {
  constexpr char kDoing[] = "find the context of an execution context";
  if (execution == nullptr) {
    return absl::InvalidArgumentError("find the context of a null execution context");
  }
  const absl::StatusOr<const ObjectDriver*> driver = ObjectDriver::Get();
  if (!driver.ok()) return driver.status();
  const absl::StatusOr<unsigned long long> id = impl::IdOf(execution);
  if (!id.ok()) return id.status();
  LastErrorScope errors;
  cudaStream_t stream = nullptr;
  const cudaError_t made =
      errors.Note(cudaExecutionCtxStreamCreate(&stream, execution, cudaStreamNonBlocking, 0),
                  "cudaExecutionCtxStreamCreate");
  if (made != cudaSuccess) return ToStatus(made, kDoing);
  ContextRef context;
  const CUresult code = impl::AskByStream(**driver, stream, *id, &context);
  if (code != CUDA_SUCCESS) return cuguest::ToStatus(code, kDoing);
  return context;
}

namespace impl {

// The runtime names a green context of the driver's by no call. Its handle is treated as that of
// the driver's where both are one value for the device's primary context, which each API names by
// itself, and the runtime then says the context's id of it.
inline absl::StatusOr<cudaExecutionContext_t> OfGreen(const ContextRef& context, Device device) {
  const absl::StatusOr<cudaExecutionContext_t> devices = OfDevice(device);
  if (!devices.ok()) return devices.status();
  const absl::StatusOr<ContextRef> primary = ContextOf(*devices);
  if (!primary.ok()) return primary.status();
  if (!IsSameValue(*devices, primary->get())) {
    return absl::UnimplementedError(
        "find the execution context of a green context: the runtime's handles are not the "
        "driver's. Make it by cudaGreenCtxCreate, and ask runtime::ContextOf() for its context");
  }
  return CastComparedToRuntime<cudaExecutionContext_t>(context.get());
}

}  // namespace impl

/// The execution context that names `context`, a primary or a green one; valid as long as that.
/// Count:   the runtime takes a reference to the device's primary context, as for its own work, and
///          keeps it until cudaDeviceReset.
/// Errors:  kInvalidArgument     neither: a context of cuCtxCreate has no execution context
///          kFailedPrecondition  the context was destroyed or reset
///          kUnimplemented       a green one that the driver made, where the runtime's handle of
///                               the primary context is another value than the driver's; in CUDA
///                               13.1 to 13.5 it is the same
///          and those of ContextGuard, and of ContextOf() for a green one
/// Cost:    a ContextGuard, two runtime calls and two driver calls; three more where this copy of
///          cuguest never had a reference to the primary context, and those of ContextOf() and
///          three for a green one.
[[nodiscard]] inline absl::StatusOr<cudaExecutionContext_t> ExecutionContextOf(
    const ContextRef& context) {
  constexpr char kDoing[] = "find the execution context of a context";
  const ContextGuard guard(context);
  if (!guard.ok()) return cuguest::ToStatus(guard);
  const absl::StatusOr<const ObjectDriver*> driver = ObjectDriver::Get();
  if (!driver.ok()) return driver.status();
  bool is_primary = false;
  bool is_green = false;
  CUdevice device = 0;
  CUresult code = internal::AskIfPrimary(context, &is_primary);
  if (code == CUDA_SUCCESS && !is_primary) code = internal::AskIfGreen(&is_green);
  if (code == CUDA_SUCCESS) code = (*driver)->CtxGetDevice(&device);
  if (code != CUDA_SUCCESS) return cuguest::ToStatus(code, kDoing);
  if (!is_primary && !is_green) {
    return absl::InvalidArgumentError(
        "find the execution context of a context that is neither primary nor green: the runtime "
        "has none for it");
  }
  const absl::StatusOr<cudaExecutionContext_t> execution =
      is_primary ? impl::OfDevice(Device::Borrow(device))
                 : impl::OfGreen(context, Device::Borrow(device));
  if (!execution.ok()) return execution;
  const absl::StatusOr<unsigned long long> id = impl::IdOf(*execution);
  if (!id.ok()) return id.status();
  if (*id != context.id()) return cuguest::ToStatus(CUDA_ERROR_CONTEXT_IS_DESTROYED, kDoing);
  return execution;
}

/// The one of `device`, which is its primary context's; valid as long as that.
/// Count:   as the other form.
/// Errors:  kFailedPrecondition  the primary context is inactive: asking the runtime would create
///                               it, some 500 MB, which only IfInactive::kCreate does
///          kNotFound            no such device
///          and those of PrimaryContext::RetainIfActive and of creating a context
/// Cost:    one runtime call; with kRefuse also four driver calls, which take the driver's lock.
[[nodiscard]] inline absl::StatusOr<cudaExecutionContext_t> ExecutionContextOf(
    Device device, IfInactive if_inactive = IfInactive::kRefuse) {
  if (if_inactive == IfInactive::kCreate) return impl::OfDevice(device);
  const PrimaryContext primary = PrimaryContext::RetainIfActive(device);
  if (!primary.ok()) return cuguest::ToStatus(primary);
  return impl::OfDevice(device);
}

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUDART_VERSION >= 13010

#endif  // CUGUEST_RUNTIME_EXECUTION_CONTEXT_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 4
/// \file
/// `DeviceBuffer` by the runtime's calls, where a tool counts cudaMalloc or a host replaces it. The
/// buffer is the same: either API may free its memory, and it frees itself by the driver's.
///
///   absl::StatusOr<DeviceBuffer<float>> buffer = runtime::AllocateBuffer<float>(context, n);
///   if (!buffer.ok()) return buffer.status();
///   ...
///   return runtime::FreeBuffer(*buffer);         // cudaFree; or let the buffer free itself

#ifndef CUGUEST_RUNTIME_DEVICE_BUFFER_H_
#define CUGUEST_RUNTIME_DEVICE_BUFFER_H_

#include <cstddef>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/runtime/binding.h"
#include "cuguest/runtime/error.h"
#include "cuguest/runtime/last_error_scope.h"
#include "cuguest/status.h"

CUGUEST_BEGIN_RUNTIME_NAMESPACE

namespace impl {

// Runs `call` (a runtime call that `name` names) in `context`, in relaxed capture mode.
template <typename Call>
absl::Status CallIn(const ContextRef& context, const char* name, const std::string& doing,
                    const Call& call) {
  const ContextGuard guard(context);
  if (!guard.ok()) return ToStatus(guard.result(), doing, guard.advice());
  const CaptureModeGuard relaxed;
  if (!internal::IsRelaxed(relaxed)) return ToStatus(relaxed.result(), doing, relaxed.advice());
  LastErrorScope errors;
  return ToStatus(errors.Note(call(), name), doing);
}

}  // namespace impl

/// The functions below
/// Stack:   as it was. Count: none.
/// Threads: distinct; as DeviceBuffer. The runtime's last error stays as it was, but a runtime call
///          that fails overwrites one that was set before: see LastErrorScope::Leave.
/// Errors:  as the functions of DeviceBuffer that they stand for.
/// Source:  CUDA Runtime API, cudaMalloc, cudaFree.

/// `DeviceBuffer<T>::Allocate` by cudaMalloc.
/// Cost: a ContextGuard, a CaptureModeGuard, a LastErrorScope with one Note(), one runtime call,
///       and DeviceBuffer::Adopt.
template <typename T>
[[nodiscard]] absl::StatusOr<DeviceBuffer<T>> AllocateBuffer(const ContextRef& context,
                                                             std::size_t count) {
  if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
    return absl::InvalidArgumentError("allocate " + std::to_string(count) + " elements of " +
                                      std::to_string(sizeof(T)) +
                                      " bytes: the size in bytes is more than a size_t holds");
  }
  const std::string doing = "allocate " + std::to_string(count * sizeof(T)) + " bytes";
  void* pointer = nullptr;
  const absl::Status status = impl::CallIn(context, "cudaMalloc", doing,
                                           [&] { return cudaMalloc(&pointer, count * sizeof(T)); });
  if (!status.ok()) return status;
  if (count == 0) return DeviceBuffer<T>();
  absl::StatusOr<DeviceBuffer<T>> buffer = DeviceBuffer<T>::Adopt(static_cast<T*>(pointer), count);
  if (!buffer.ok()) {
    static_cast<void>(
        impl::CallIn(context, "cudaFree", "free it again", [&] { return cudaFree(pointer); }));
  }
  return buffer;
}

/// DeviceBuffer::Release by cudaFree, called with the memory's context current: with none current
/// cudaFree would create a primary one. Succeeds if empty, and at the end of the process.
/// Errors: kInvalidArgument  memory of a pool, which has no context: free it by Release()
///         After any error but CUDA_ERROR_CONTEXT_IS_DESTROYED the buffer still owns it.
/// Cost:   as AllocateBuffer(), without the last.
template <typename T>
absl::Status FreeBuffer(DeviceBuffer<T>& buffer) {
  if (buffer.empty()) return absl::OkStatus();
  if (buffer.context().get() == nullptr) {
    return absl::InvalidArgumentError(
        "free a buffer by cudaFree: memory of a pool belongs to no context; call its Release()");
  }
  const absl::Status status = impl::CallIn(buffer.context(), "cudaFree", "free a buffer",
                                           [&] { return cudaFree(buffer.data()); });
  // The process is ending, and the driver takes everything back.
  if (CodeOf(status) == CUDA_ERROR_DEINITIALIZED) return absl::OkStatus();
  if (status.ok() || CodeOf(status) == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
    static_cast<void>(buffer.Leak());
  }
  return status;
}

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_RUNTIME_DEVICE_BUFFER_H_

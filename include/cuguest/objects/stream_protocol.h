// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// The numbers by which arrays are handed over with a stream: those of DLPack, of the CUDA array
/// interface and of `__cuda_stream__`. Who waits for whom is in docs/stream_protocols.md.
///
///   absl::Status Producer::OrderBefore(std::optional<std::int64_t> number) {
///     // __dlpack__(stream=number): the consumer's stream is to wait for what has been written.
///     CUGUEST_ASSIGN_OR_RETURN(const std::optional<StreamRef> consumer,
///                              StreamOfDlpack(number, array_.context()));
///     return consumer.has_value() ? consumer->WaitFor(written_) : absl::OkStatus();
///   }

#ifndef CUGUEST_OBJECTS_STREAM_PROTOCOL_H_
#define CUGUEST_OBJECTS_STREAM_PROTOCOL_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/objects/stream.h"

CUGUEST_BEGIN_NAMESPACE

/// All of them
/// Requires: the number is one that the protocol names, or a stream's: any other cannot be told
///           from that, and the driver may crash.
/// Stack:   left as it is.
/// Count:   none: a ref keeps neither its stream nor the context alive.
/// Threads: any; not from a stream callback: kPermissionDenied where the driver is asked.
/// Errors:  kInvalidArgument: the protocol forbids the number, or `context` is empty where it is
///          needed; those of StreamRef::Borrow().
/// Cost:    none for the default streams, which are those of `context`, the array's; for another
///          that of StreamRef::Borrow().

/// The stream that `__dlpack__(stream=number)` names; nothing for -1, by which the consumer says
/// that it synchronises by itself. No number, Python's None, is the legacy stream.
/// Source: Python array API standard 2022.12, `array.__dlpack__`.
[[nodiscard]] CUGUEST_API absl::StatusOr<std::optional<StreamRef>> StreamOfDlpack(
    std::optional<std::int64_t> number, const ContextRef& context);

/// The stream of a `__cuda_array_interface__`, behind whose work the array may be used; nothing if
/// it has no number, Python's None: then nobody needs to wait.
/// Source: CUDA Array Interface, version 3, "Synchronization".
[[nodiscard]] CUGUEST_API absl::StatusOr<std::optional<StreamRef>> StreamOfArrayInterface(
    std::optional<std::int64_t> number, const ContextRef& context);

/// The stream of the pair that a `__cuda_stream__` method returns. 0 is what it is for
/// StreamRef::Borrow() in the calling file; `zero` says which, leave it to its default.
/// Errors: also kInvalidArgument: another version than 0.
/// Source: cuda.core, "Interoperability".
[[nodiscard]] CUGUEST_API absl::StatusOr<StreamRef> StreamOfCudaStream(
    int version, std::int64_t handle, const ContextRef& context,
    internal::ZeroStream zero = CUGUEST_INTERNAL_ZERO_STREAM);

/// The number that says `stream` in all three: 1 for the legacy stream, 2 for the per-thread one,
/// never 0. No driver call.
/// Errors: kInvalidArgument: an empty ref.
[[nodiscard]] CUGUEST_API absl::StatusOr<std::int64_t> StreamNumber(const StreamRef& stream);

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_STREAM_PROTOCOL_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/stream_protocol.h"

#include "absl/strings/str_cat.h"
#include "cuguest/status.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

constexpr std::int64_t kNobodyWaits = -1;

absl::Status Forbidden(const char* doing, std::int64_t number, const char* why) {
  return absl::InvalidArgumentError(absl::StrCat(doing, " ", number, ": ", why));
}

// `number` is what CUDA itself calls the stream.
// Source: Python array API, `array.__dlpack__`; CUDA Array Interface, version 3, "Synchronization";
//         cuda.core, "Interoperability": the number is the handle's value.
absl::StatusOr<StreamRef> StreamOf(std::int64_t number, const ContextRef& context,
                                   const char* doing, internal::ZeroStream zero) {
  const auto stream = reinterpret_cast<CUstream>(static_cast<std::intptr_t>(number));
  if (number < 0) return Forbidden(doing, number, "a stream is no negative number");
  const bool is_special =
      stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  if (!is_special) return StreamRef::Borrow(stream, zero);
  if (context.get() == nullptr) {
    return Forbidden(doing, number,
                     "a default stream is one of a context, and none is given: pass the array's");
  }
  return StreamRef::Borrow(stream, context, zero);
}

absl::StatusOr<std::optional<StreamRef>> StreamOfArray(std::int64_t number,
                                                       const ContextRef& context,
                                                       const char* doing) {
  if (number == 0) {
    return Forbidden(doing, number,
                     "it is forbidden, as it could mean two streams: 1 is the legacy stream, 2 "
                     "the per-thread one");
  }
  return StreamOf(number, context, doing, internal::ZeroStream::kLegacy);
}

}  // namespace

absl::StatusOr<std::optional<StreamRef>> StreamOfDlpack(std::optional<std::int64_t> number,
                                                        const ContextRef& context) {
  if (number == kNobodyWaits) return std::nullopt;
  constexpr std::int64_t kLegacy = 1;
  return StreamOfArray(number.value_or(kLegacy), context, "find DLPack's stream, number");
}

absl::StatusOr<std::optional<StreamRef>> StreamOfArrayInterface(std::optional<std::int64_t> number,
                                                                const ContextRef& context) {
  if (!number.has_value()) return std::nullopt;
  return StreamOfArray(*number, context, "find the stream of a CUDA array interface, number");
}

absl::StatusOr<StreamRef> StreamOfCudaStream(int version, std::int64_t handle,
                                             const ContextRef& context, internal::ZeroStream zero) {
  if (version != 0) {
    return Forbidden("read a __cuda_stream__ of version", version, "only version 0 is known");
  }
  return StreamOf(handle, context, "find the stream of a __cuda_stream__, handle", zero);
}

absl::StatusOr<std::int64_t> StreamNumber(const StreamRef& stream) {
  if (stream.context().get() == nullptr) {
    return absl::InvalidArgumentError("say a stream as a number: the StreamRef is empty");
  }
  const CUstream named = stream.get() != nullptr ? stream.get() : CU_STREAM_LEGACY;
  return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(named));
}

CUGUEST_END_NAMESPACE

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ScratchBuffer is for every T.                                                   tier: 3

#include "cuguest/objects/internal/scratch_memory.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuguest/objects/driver.h"
#include "cuguest/status.h"
#include "lib/core/concurrency.h"
#include "lib/guard/relaxed_scope.h"
#include "lib/objects/memory/captured_memory.h"
#include "lib/objects/memory/in_context.h"
#include "lib/objects/object_driver.h"
#include "lib/objects/stream/stream_call.h"
#include "lib/objects/stream/stream_use.h"
#include "lib/share/context_hold.h"
#include "lib/share/owed.h"
#include "lib/status/error_status.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

constexpr char kStreamIsGone[] =
    "its stream was destroyed before it; if the stream had joined a capture, the graph allocates "
    "the memory at each launch and does not free it: release it before the stream ends";
constexpr char kCaptureIsOver[] =
    "the capture in which it was allocated is over: the graph allocates it at each launch and does "
    "not free it, and the second launch fails; release it before the capture ends, or free it by "
    "cuMemFreeAsync after each launch";
constexpr char kOtherThread[] =
    "it is in the order of the per-thread stream of another thread, which cannot be named here: "
    "release it on that thread, while it captures";
constexpr char kStillOwned[] = "it was not freed, and the buffer still owns it";

std::string ScratchText(std::size_t bytes) {
  return absl::StrCat("allocate ", bytes, " bytes of scratch memory in a capture");
}

}  // namespace

// Where nothing captures, that costs no call more than a DeviceBuffer.
absl::StatusOr<ScratchMemory> ScratchMemory::Allocate(const StreamRef& stream,
                                                      const ElementType& type, std::size_t count) {
  absl::StatusOr<OwnedMemory> of_pool = OwnedMemory::Allocate(stream, type, count);
  if (of_pool.ok()) return ScratchMemory(*std::move(of_pool));
  if (CodeOf(of_pool.status()) != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) return of_pool.status();
  return AllocateInCapture(stream, count * type.size);
}

absl::StatusOr<ScratchMemory> ScratchMemory::AllocateInCapture(const StreamRef& stream,
                                                               std::size_t bytes) {
  const std::string doing = ScratchText(bytes);
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  ScratchMemory memory;
  if (!memory.use_.Begin(stream)) {
    return RefusalStatus(CUDA_ERROR_OUT_OF_MEMORY, doing, "host memory");
  }
  const StreamHold hold(memory.use_);
  const ContextHold home(stream.context());
  const CUresult held = hold.ok() ? home.result() : CUDA_ERROR_INVALID_HANDLE;
  if (held != CUDA_SUCCESS) return StreamStatus(held, doing.c_str(), stream);
  const StreamCall in(*driver, stream);
  if (!in.capture().is_active()) {
    const CUresult code = in.refusal();
    return StreamStatus(code != CUDA_SUCCESS ? code : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                        doing.c_str(), stream);
  }
  OfGraph of_graph;
  CUGUEST_ASSIGN_OR_RETURN(of_graph.range,
                           internal::AllocateInCapture(*driver, stream, bytes, doing));
  of_graph.stream = stream;
  of_graph.capture = in.capture().id;
  of_graph.thread = ThreadNumber();
  memory.of_graph_ = of_graph;
  return memory;
}

absl::Status ScratchMemory::Release() {
  if (of_graph_.range.pointer == 0) return of_pool_.Release();
  const std::string doing = absl::StrCat("free ", of_graph_.range.bytes, " bytes at ",
                                         PointerText(of_graph_.range.pointer), " in a capture");
  const EndOutcome outcome = TryFree();
  if (of_graph_.range.pointer == 0) use_ = StreamUse();
  CUGUEST_RETURN_IF_CUDA_ERROR(outcome.code, doing, outcome.reason);
  return absl::OkStatus();
}

void ScratchMemory::End() noexcept { EndOrOwe(*this, "a ScratchBuffer", &FreeQuietly); }

// What cannot be freed for another reason than IsStillHeld() goes on with its graph.
CUresult ScratchMemory::FreeQuietly(ScratchMemory& memory) noexcept {
  const CUresult code = memory.TryFree().code;
  if (IsStillHeld(code)) return code;
  const bool went_with_its_capture =
      memory.of_graph_.range.pointer == 0 && code != CUDA_ERROR_ILLEGAL_STATE;
  memory.of_graph_ = OfGraph();
  return went_with_its_capture ? CUDA_SUCCESS : code;
}

EndOutcome ScratchMemory::TryFree() noexcept {
  CUresult code = CUDA_SUCCESS;
  const ObjectDriver* const driver = TryObjectDriver(&code);
  if (driver == nullptr) return {code, kStillOwned};
  const StreamRef stream = of_graph_.stream;
  if (stream.get() == CU_STREAM_PER_THREAD && of_graph_.thread != ThreadNumber()) {
    return {CUDA_ERROR_ILLEGAL_STATE, kOtherThread};
  }
  const StreamHold hold(use_);
  if (!hold.ok()) return LetGo(CUDA_ERROR_ILLEGAL_STATE, kStreamIsGone);
  const ContextHold home(stream.context());
  const StreamCall in(*driver, stream);
  code = home.result() != CUDA_SUCCESS ? home.result() : in.result();
  if (code == CUDA_ERROR_CONTEXT_IS_DESTROYED) return LetGo(code, "it went with its context");
  // The process is ending, and the driver takes everything back.
  if (code == CUDA_ERROR_DEINITIALIZED) return LetGo(CUDA_SUCCESS, "");
  if (code != CUDA_SUCCESS) return {code, kStillOwned};
  // The driver does not tell the id of one that was invalidated.
  if (in.refusal() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) {
    return LetGo(in.refusal(), "the memory went with the capture, which was invalidated");
  }
  if (!in.capture().is_active() || in.capture().id != of_graph_.capture) {
    return LetGo(CUDA_ERROR_ILLEGAL_STATE, kCaptureIsOver);
  }
  const CUdeviceptr pointer = of_graph_.range.pointer;
  code = CallRelaxed(*driver, [&] { return driver->MemFreeAsync(pointer, stream.get()); });
  return code == CUDA_SUCCESS ? LetGo(code, "") : EndOutcome{code, kStillOwned};
}

EndOutcome ScratchMemory::LetGo(CUresult code, const char* reason) noexcept {
  of_graph_ = OfGraph();
  return {code, reason};
}

CUGUEST_END_INTERNAL_NAMESPACE

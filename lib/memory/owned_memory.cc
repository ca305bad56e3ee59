// SPDX-License-Identifier: Apache-2.0
//
// What DeviceBuffer is for every T.                                     tier: 3

#include "cuguest/internal/owned_memory.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/error.h"
#include "cuguest/memory.h"
#include "cuguest/no_context_guard.h"
#include "lib/context/context_text.h"
#include "lib/memory/byte_count.h"
#include "lib/memory/memory_text.h"
#include "lib/memory/relaxed_scope.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

constexpr char kCaptures[] =
    "its stream captures, or is stream 0 of a context that does: do it before the capture, or in "
    "the order of another stream";

std::string AllocateText(std::size_t bytes) { return absl::StrCat("allocate ", bytes, " bytes"); }

std::string AdoptText(CUdeviceptr pointer) {
  return absl::StrCat("adopt ", PointerText(pointer), ": ");
}

bool IsEmpty(const StreamRef& stream) { return stream.context().get() == nullptr; }

absl::Status NoStream(std::string_view doing) {
  std::string text(doing);
  return absl::InvalidArgumentError(text + ": the StreamRef is empty");
}

// The range of what was just allocated, which is freed again if the driver does not tell.
absl::StatusOr<MemoryRange> Identify(const Driver& driver, CUdeviceptr pointer, std::size_t bytes) {
  const absl::StatusOr<MemoryDescription> memory = Describe(pointer);
  if (memory.ok()) return MemoryRange{pointer, bytes, memory->context, *memory->device};
  static_cast<void>(driver.MemFree(pointer));
  return memory.status();
}

// Whether it is where an allocation starts, of a kind that is freed by its pointer.
absl::Status CheckAdoptable(CUdeviceptr pointer) {
  const absl::StatusOr<MemoryDescription> memory = Describe(pointer);
  if (!memory.ok()) return memory.status();
  if (memory->kind == MemoryKind::kPinnedHost || memory->kind == MemoryKind::kVirtual) {
    return absl::InvalidArgumentError(absl::StrCat(
        "adopt ", memory->ToString(), ": it is not freed like device memory; borrow a view"));
  }
  if (memory->offset() == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "adopt ", memory->ToString(), ": the allocation starts at ", PointerText(memory->base)));
}

}  // namespace

absl::StatusOr<OwnedMemory> OwnedMemory::Allocate(const ContextRef& context,
                                                  const ElementType& type, std::size_t count) {
  const absl::StatusOr<std::size_t> bytes = ByteCount("allocate", type, count);
  if (!bytes.ok()) return bytes.status();
  const absl::StatusOr<const Driver*> driver = Driver::Get();
  if (!driver.ok()) return driver.status();
  const ContextGuard guard(context);
  if (!guard.ok()) return ToStatus(guard.result(), AllocateText(*bytes), guard.advice());
  if (*bytes == 0) return OwnedMemory();
  const RelaxedScope relaxed;
  CUdeviceptr pointer = 0;
  CUresult code = relaxed.result();
  if (code == CUDA_SUCCESS) code = (*driver)->MemAlloc(&pointer, *bytes);
  if (code != CUDA_SUCCESS) {
    return ToStatus(code, AllocateText(*bytes), ContextText(context.get()));
  }
  const absl::StatusOr<MemoryRange> range = Identify(**driver, pointer, *bytes);
  if (!range.ok()) return range.status();
  return OwnedMemory(*range, StreamRef());
}

absl::StatusOr<OwnedMemory> OwnedMemory::Allocate(const StreamRef& stream, const ElementType& type,
                                                  std::size_t count) {
  const absl::StatusOr<std::size_t> bytes = ByteCount("allocate", type, count);
  if (!bytes.ok()) return bytes.status();
  if (IsEmpty(stream)) return NoStream(AllocateText(*bytes));
  const absl::StatusOr<const Driver*> driver = Driver::Get();
  if (!driver.ok()) return driver.status();
  const auto allocate = (*driver)->Require(&Driver::MemAllocAsync);
  if (!allocate.ok()) return allocate.status();
  const ContextGuard guard(stream.context());
  if (!guard.ok()) return ToStatus(guard.result(), AllocateText(*bytes), guard.advice());
  if (*bytes == 0) return OwnedMemory();
  if (CaptureStateOf(stream.get()) != CaptureState::kNone) {
    return ToStatus(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, AllocateText(*bytes), kCaptures);
  }
  const RelaxedScope relaxed;
  CUdeviceptr pointer = 0;
  CUresult code = relaxed.result();
  if (code == CUDA_SUCCESS) code = (*allocate)(&pointer, *bytes, stream.get());
  if (code != CUDA_SUCCESS) return ToStatus(code, AllocateText(*bytes), "from a pool");
  const absl::StatusOr<MemoryRange> range = Identify(**driver, pointer, *bytes);
  if (!range.ok()) return range.status();
  return OwnedMemory(*range, stream);
}

absl::StatusOr<OwnedMemory> OwnedMemory::Adopt(CUdeviceptr pointer, const ElementType& type,
                                               std::size_t count) {
  if (count == 0) {
    return absl::InvalidArgumentError(AdoptText(pointer) + "no elements, it would not be freed");
  }
  const absl::StatusOr<MemoryRange> range = BorrowRange(pointer, type, count, false);
  if (!range.ok()) return range.status();
  const absl::Status adoptable = CheckAdoptable(pointer);
  if (!adoptable.ok()) return adoptable;
  return OwnedMemory(*range, StreamRef());
}

absl::StatusOr<OwnedMemory> OwnedMemory::Adopt(CUdeviceptr pointer, const ElementType& type,
                                               std::size_t count, const StreamRef& stream) {
  if (IsEmpty(stream)) return NoStream(AdoptText(pointer));
  const absl::StatusOr<MemoryDescription> memory = Describe(pointer);
  if (!memory.ok()) return memory.status();
  if (memory->kind == MemoryKind::kManaged) {
    return absl::InvalidArgumentError(
        absl::StrCat("adopt ", memory->ToString(), ": it cannot be freed in a stream's order"));
  }
  absl::StatusOr<OwnedMemory> owned = Adopt(pointer, type, count);
  if (owned.ok()) owned->stream_ = stream;
  return owned;
}

OwnedMemory& OwnedMemory::operator=(OwnedMemory&& other) noexcept {
  if (this == &other) return *this;
  static_cast<void>(Free());
  range_ = std::exchange(other.range_, MemoryRange());
  stream_ = std::exchange(other.stream_, StreamRef());
  return *this;
}

absl::Status OwnedMemory::Free() {
  if (range_.pointer == 0) return absl::OkStatus();
  // When the stream's context is over, nothing of the stream still uses pool memory.
  const bool is_ordered =
      !IsEmpty(stream_) && stream_.context().Check() != CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return is_ordered ? FreeIn(stream_) : FreeAtOnce();
}

absl::Status OwnedMemory::FreeIn(const StreamRef& stream) {
  if (range_.pointer == 0) return absl::OkStatus();
  if (IsEmpty(stream)) return NoStream(absl::StrCat("free ", range_.bytes, " bytes"));
  const absl::StatusOr<const Driver*> driver = Driver::Get();
  if (!driver.ok()) return driver.status();
  const auto free = (*driver)->Require(&Driver::MemFreeAsync);
  if (!free.ok()) return free.status();
  if (range_.context.get() != nullptr) {
    const CUresult life = range_.context.Check();
    if (life != CUDA_SUCCESS) return Settle(life);
  }
  const ContextGuard guard(stream.context());
  if (!guard.ok()) return Keep(guard.result(), guard.advice());
  if (CaptureStateOf(stream.get()) != CaptureState::kNone) {
    return Keep(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, kCaptures);
  }
  const RelaxedScope relaxed;
  CUresult code = relaxed.result();
  if (code == CUDA_SUCCESS) code = (*free)(range_.pointer, stream.get());
  return code == CUDA_SUCCESS ? LetGo() : Keep(code, "");
}

absl::Status OwnedMemory::FreeAtOnce() {
  const absl::StatusOr<const Driver*> driver = Driver::Get();
  if (!driver.ok()) return driver.status();
  const RelaxedScope relaxed;
  if (relaxed.result() != CUDA_SUCCESS) return Keep(relaxed.result(), "");
  if (range_.context.get() != nullptr) {
    const ContextGuard guard(range_.context);
    return Settle(guard.ok() ? (*driver)->MemFree(range_.pointer) : guard.result());
  }
  // Works with any living context current, or none, but not with a dead one.
  const NoContextGuard none;
  return Settle(none.ok() ? (*driver)->MemFree(range_.pointer) : none.result());
}

absl::Status OwnedMemory::LetGo() noexcept {
  range_ = MemoryRange();
  stream_ = StreamRef();
  return absl::OkStatus();
}

// After a call in which a dead context can only be the memory's own.
absl::Status OwnedMemory::Settle(CUresult code) {
  if (code == CUDA_SUCCESS) return LetGo();
  const absl::Status status = Keep(code, "the memory is gone with its context");
  if (code == CUDA_ERROR_CONTEXT_IS_DESTROYED) static_cast<void>(LetGo());
  return status;
}

absl::Status OwnedMemory::Keep(CUresult code, std::string_view reason) const {
  // The process is ending, and the driver takes everything back.
  if (code == CUDA_ERROR_DEINITIALIZED) return absl::OkStatus();
  return ToStatus(
      code, absl::StrCat("free ", range_.bytes, " bytes at ", PointerText(range_.pointer)), reason);
}

}  // namespace internal
CUGUEST_END_NAMESPACE

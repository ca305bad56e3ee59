// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What DeviceBuffer, PinnedBuffer and ImportedBuffer are for every T.                  tier: 3

#include "cuguest/objects/internal/owned_memory.h"

#include <pthread.h>
#include <signal.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/driver.h"
#include "cuguest/objects/imported_buffer.h"
#include "cuguest/objects/memory.h"
#include "cuguest/status.h"
#include "lib/acquire/pointer_attributes.h"
#include "lib/core/concurrency.h"
#include "lib/core/driver_access.h"
#include "lib/guard/nesting.h"
#include "lib/guard/relaxed_scope.h"
#include "lib/objects/memory/in_context.h"
#include "lib/objects/object_driver.h"
#include "lib/objects/stream/stream_use.h"
#include "lib/share/context_hold.h"
#include "lib/share/owed.h"
#include "lib/status/error_status.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

constexpr CUresult kWhileCaptured = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;

// Why no call is made for the order of a stream that captures, and of stream 0, which cannot, while
// a blocking stream of its context does.
constexpr char kZeroIsBarred[] =
    "it is stream 0, and a blocking stream of its context captures: use a stream made with "
    "CU_STREAM_NON_BLOCKING, or wait until the capture has ended";
constexpr char kNotFreed[] =
    "its stream captures: free it when the capture is over, or in the order of another stream that "
    "waits for its work; what the captured graph uses, when the graph is not launched any more";
constexpr char kNotAllocated[] =
    "its stream captures: for one call take a ScratchBuffer (scratch_buffer.h), which the graph "
    "allocates and frees; other memory that the graph uses must outlive it, so allocate that "
    "before the capture, and keep it with the graph";

// `code` is one of CheckNotCapturing().
const char* WhyNot(CUresult code, const StreamRef& stream) {
  if (code != kWhileCaptured) return "whether its stream captures";
  return IsLegacy(stream.get()) ? kZeroIsBarred : kNotFreed;
}

const char* WhyNotAllocated(CUresult code, const char* reason) {
  if (reason == kNotFreed) return kNotAllocated;
  if (*reason != '\0') return reason;
  return code == CUDA_ERROR_NOT_SUPPORTED
             ? "from a pool, which the device does not have: DeviceBuffer::Allocate() needs none"
             : "from a pool";
}

constexpr char kStreamIsOver[] =
    "the stream's context was destroyed or reset; the memory was not freed, and the buffer still "
    "owns it: free it in the order of another stream, or at once where its work is done";
constexpr char kStreamHasEnded[] =
    "its stream has ended before it, in a capture or without an event behind its work; it was not "
    "freed, and the buffer still owns it: free it in the order of a stream that waits for the work";
constexpr char kDestroyedMeanwhile[] = "its stream was destroyed meanwhile";
constexpr char kNoThread[] =
    "a dead context is current, and no thread can be had to free it without one; it was not freed, "
    "and the buffer still owns it";

constexpr char kUnknownToDriver[] =
    "the driver knows no such allocation: what another process exported is closed by "
    "cuIpcCloseMemHandle, a module's variable goes with the module, and what was freed is gone; "
    "the buffer still owns it: Leak() it";

std::string AllocateText(std::size_t bytes) { return absl::StrCat("allocate ", bytes, " bytes"); }

std::string AdoptText(CUdeviceptr pointer) {
  return absl::StrCat("adopt ", PointerText(pointer), ": ");
}

std::string BytesText(const MemoryRange& range) {
  return absl::StrCat(range.bytes, " bytes at ", PointerText(range.pointer));
}

std::string FreeText(const MemoryRange& range) { return "free " + BytesText(range); }

// Why the handle of another process's memory opens nothing in a context that is current and alive.
const char* ImportAdvice(CUresult code) {
  switch (code) {
    case CUDA_ERROR_INVALID_CONTEXT:
      return ": this process exported it, and uses the memory itself; or another context of the "
             "device has opened memory of that process already";
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_INVALID_VALUE:
      return ": the bytes are no handle of memory";
    case CUDA_ERROR_MAP_FAILED:
      return ": the exporter has freed it, or has ended";
    case CUDA_ERROR_TOO_MANY_PEERS:
    case CUDA_ERROR_PEER_ACCESS_UNSUPPORTED:
      return ": its device cannot be reached from here";
    default:
      return "";
  }
}

bool IsEmpty(const StreamRef& stream) noexcept { return stream.context().get() == nullptr; }

absl::Status NoStream(std::string_view doing) {
  std::string text(doing);
  return absl::InvalidArgumentError(text + ": the StreamRef is empty");
}

absl::Status NoHostMemory(std::string_view doing) {
  return internal::RefusalStatus(CUDA_ERROR_OUT_OF_MEMORY, doing, "host memory");
}

struct OrderedOutcome {
  CUresult code;
  const char* reason;
  bool is_stream_gone = false;  // with its context
  bool is_stream_over = false;  // its Stream has ended
  CUevent last = nullptr;       // then: StreamHold::last()
};

// Calls `call` for the order of `stream`, whose context is alive and which does not capture, and
// which nobody destroys meanwhile: `use` is of it, or the caller's caller has it.
//
// Only what means the current context needs it current; the driver finds that of a created stream
// by itself, also where nothing is current (cudasim/test/pool_facts_test.cc). Where a dead context
// is current it may refuse (it does refuse cuMemFree), and is asked again in the stream's.
template <typename Call>
OrderedOutcome CallInOrder(const ObjectDriver& driver, const StreamRef& stream,
                           const StreamUse& use, const Call& call) noexcept {
  const StreamHold hold(use);
  if (!hold.ok()) return {CUDA_ERROR_INVALID_HANDLE, kDestroyedMeanwhile, false, true, hold.last()};
  const ContextHold home(stream.context());
  std::optional<ContextGuard> guard;
  CUresult code = home.result();
  if (code == CUDA_SUCCESS) {
    code = MeansCurrent(stream.get())
               ? guard.emplace(stream.context(), GuardMode::kElide, Location::Here()).result()
               : stream.context().Check();
  }
  const auto refused = [&] {
    return OrderedOutcome{code, Advice(code), code == CUDA_ERROR_CONTEXT_IS_DESTROYED};
  };
  if (code != CUDA_SUCCESS) return refused();
  code = CheckNotCapturing(stream.get(), kWhileCaptured);
  if (code != CUDA_SUCCESS) return {code, WhyNot(code, stream)};
  code = CallRelaxed(driver, call);
  if (code == CUDA_ERROR_CONTEXT_IS_DESTROYED && !guard) {
    const ContextGuard inner(stream.context());
    code = inner.result();
    if (code != CUDA_SUCCESS) return refused();
    code = CallRelaxed(driver, call);
  }
  return {code, ""};
}

// The device of the context that the calling thread asked about last. The driver gives its id to
// no other context, and a context stays on its device. Below CUDA 12.0 there is no id.
struct KnownDevice {
  unsigned long long id = 0;
  CUdevice device = 0;
};
CUGUEST_THREAD_LOCAL(KnownDevice) t_known_device;

CUresult AskDeviceOnce(const ObjectDriver& driver, const ContextRef& context,
                       CUdevice* device) noexcept {
  KnownDevice& known = t_known_device;
  if (known.id == context.id() && known.id != 0) {
    *device = known.device;
    return CUDA_SUCCESS;
  }
  const ContextGuard guard(context);
  const CUresult code = guard.ok() ? driver.CtxGetDevice(device) : guard.result();
  if (code == CUDA_SUCCESS) known = {context.id(), *device};
  return code;
}

// Frees memory of no context, at once. That works with nothing current, or any living context, but
// not with a dead one (cudasim/test/pool_facts_test.cc). A dead one cannot be taken off and pushed
// again, so then it is done where nothing is current: on a thread of its own, which must not be
// given the process's signals.
EndOutcome FreeOfNoContext(const ObjectDriver& driver, CUdeviceptr pointer) noexcept {
  const RelaxedScope relaxed_here;
  if (!relaxed_here.ok()) return {relaxed_here.result(), ""};
  struct Call {
    const ObjectDriver& driver;
    CUdeviceptr pointer;
    CUresult code;
  } call{driver, pointer, driver.MemFree(pointer)};
  if (call.code != CUDA_ERROR_CONTEXT_IS_DESTROYED) return {call.code, ""};
  const auto run = [](void* data) -> void* {
    auto* const its = static_cast<Call*>(data);
    const RelaxedScope relaxed;
    its->code = relaxed.result();
    if (its->code == CUDA_SUCCESS) its->code = its->driver.MemFree(its->pointer);
    return nullptr;
  };
  sigset_t all;
  sigset_t callers;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &callers);
  pthread_t thread;
  const bool is_running = pthread_create(&thread, nullptr, run, &call) == 0;
  pthread_sigmask(SIG_SETMASK, &callers, nullptr);
  if (!is_running) return {CUDA_ERROR_OPERATING_SYSTEM, kNoThread};
  pthread_join(thread, nullptr);
  return {call.code, ""};
}

absl::Status CheckValues(const void* values, std::size_t count) {
  if (values != nullptr || count == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "copy ", count, " elements to new device memory: the pointer to the host's is null"));
}

// Refuses what the driver says that it does not export: cuMemFree does not free memory of another
// process, nor a variable. Where the device exports nothing at all (CUDA Driver API,
// cuIpcGetMemHandle), or the driver does not know one of the attributes (the device's: below CUDA
// 12.0), nothing is known.
absl::Status CheckOwn(const ObjectDriver& driver, const MemoryDescription& memory) {
  if (memory.kind != MemoryDescription::Kind::kDevice) return absl::OkStatus();
  unsigned is_exportable = 0;  // a driver writes one byte, or four
  CUresult code = driver.PointerGetAttribute(
      &is_exportable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, memory.pointer);
  int exports = 0;
  if (code == CUDA_SUCCESS && is_exportable == 0) {
    code = driver.DeviceGetAttribute(&exports, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED,
                                     memory.device->get());
  }
  if (code == CUDA_ERROR_INVALID_VALUE) return absl::OkStatus();
  CUGUEST_RETURN_IF_CUDA_ERROR(code, "adopt", memory.ToString());
  if (exports == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "adopt ", memory.ToString(),
      ": it was opened from another process, and is closed by cuIpcCloseMemHandle (see "
      "ImportedBuffer), or it is a module's variable; borrow a view"));
}

// Whether it is where an allocation starts, of a kind that is freed by its pointer.
absl::Status CheckAdoptable(CUdeviceptr pointer) {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  CUGUEST_ASSIGN_OR_RETURN(const MemoryDescription memory, Describe(pointer));
  CUGUEST_RETURN_IF_ERROR(CheckOwn(*driver, memory));
  if (memory.kind == MemoryDescription::Kind::kPinnedHost ||
      memory.kind == MemoryDescription::Kind::kVirtual) {
    return absl::InvalidArgumentError(absl::StrCat(
        "adopt ", memory.ToString(), ": it is not freed like device memory; borrow a view"));
  }
  const bool is_start_known = memory.size != 0;
  if (is_start_known && memory.offset() == 0) return absl::OkStatus();
  if (is_start_known) {
    return absl::InvalidArgumentError(absl::StrCat(
        "adopt ", memory.ToString(), ": the allocation starts at ", PointerText(memory.base)));
  }
  bool goes_back = false;
  CUGUEST_RETURN_IF_CUDA_ERROR(IsOneAllocation(*driver, pointer - 1, pointer, &goes_back), "adopt",
                               PointerText(pointer));
  if (!goes_back) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("adopt ", memory.ToString(), ": it is not where an allocation starts"));
}

}  // namespace

absl::StatusOr<OwnedMemory> OwnedMemory::Allocate(const ContextRef& context,
                                                  const ElementType& type, std::size_t count) {
  CUGUEST_ASSIGN_OR_RETURN(const std::size_t bytes, ByteCount("allocate", type, count));
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  const ContextGuard guard(context);
  CUGUEST_RETURN_IF_CUDA_ERROR(guard.result(), AllocateText(bytes), guard.advice());
  if (bytes == 0) return OwnedMemory();
  const RelaxedScope relaxed;
  CUdeviceptr pointer = 0;
  CUresult code = relaxed.result();
  if (code == CUDA_SUCCESS) code = driver->MemAlloc(&pointer, bytes);
  CUGUEST_RETURN_IF_CUDA_ERROR(code, AllocateText(bytes), ContextText(context.get()));
  const absl::StatusOr<MemoryDescription> memory = Describe(pointer);
  if (memory.ok()) {
    return OwnedMemory({pointer, bytes, memory->context, *memory->device}, StreamRef());
  }
  static_cast<void>(driver->MemFree(pointer));
  return memory.status();
}

// Pool memory belongs to no context, but to the device on which the pool is current.
absl::StatusOr<OwnedMemory> OwnedMemory::Allocate(const StreamRef& stream, const ElementType& type,
                                                  std::size_t count) {
  if (IsEmpty(stream)) return NoStream(absl::StrCat("allocate ", count, " elements"));
  CUGUEST_ASSIGN_OR_RETURN(const std::size_t bytes, ByteCount("allocate", type, count));
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  CUGUEST_RETURN_IF_ERROR(driver->Require(&ObjectDriver::MemAllocAsync).status());
  if (bytes == 0) {
    const CUresult code = stream.context().Check();
    CUGUEST_RETURN_IF_CUDA_ERROR(code, AllocateText(bytes), Advice(code));
    return OwnedMemory();
  }
  StreamUse use;
  if (!use.Begin(stream)) return NoHostMemory(AllocateText(bytes));
  CUdevice device = 0;
  const CUresult asked = AskDeviceOnce(*driver, stream.context(), &device);
  CUGUEST_RETURN_IF_CUDA_ERROR(asked, AllocateText(bytes), Advice(asked));
  CUdeviceptr pointer = 0;
  const OrderedOutcome outcome = CallInOrder(
      *driver, stream, use, [&] { return driver->MemAllocAsync(&pointer, bytes, stream.get()); });
  CUGUEST_RETURN_IF_CUDA_ERROR(outcome.code, AllocateText(bytes),
                               WhyNotAllocated(outcome.code, outcome.reason));
  OwnedMemory owned({pointer, bytes, ContextRef(), Device::Borrow(device)}, stream);
  owned.use_ = std::move(use);
  return owned;
}

absl::StatusOr<OwnedMemory> OwnedMemory::AllocateHost(const ContextRef& context,
                                                      const ElementType& type, std::size_t count,
                                                      unsigned flags) {
  CUGUEST_ASSIGN_OR_RETURN(const std::size_t bytes, ByteCount("allocate", type, count));
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  CUGUEST_RETURN_IF_ERROR(driver->Require(&ObjectDriver::MemHostAlloc).status());
  CUGUEST_RETURN_IF_ERROR(driver->Require(&ObjectDriver::MemFreeHost).status());
  const ContextGuard guard(context);
  CUGUEST_RETURN_IF_CUDA_ERROR(guard.result(), AllocateText(bytes), guard.advice());
  if (bytes == 0) return OwnedMemory();
  const RelaxedScope relaxed;
  void* pointer = nullptr;
  CUresult code = relaxed.result();
  if (code == CUDA_SUCCESS) code = driver->MemHostAlloc(&pointer, bytes, flags);
  CUGUEST_RETURN_IF_CUDA_ERROR(
      code, AllocateText(bytes),
      absl::StrCat("page-locked host memory, flags ", flags, ", ", ContextText(context.get())));
  const absl::StatusOr<MemoryDescription> memory = Describe(pointer);
  if (!memory.ok()) {
    static_cast<void>(driver->MemFreeHost(pointer));
    return memory.status();
  }
  OwnedMemory owned({AddressOf(pointer), bytes, memory->context, *memory->device}, StreamRef());
  owned.kind_ = Kind::kPinnedHost;
  return owned;
}

// What was opened is closed again where it is not what `exported` says.
absl::StatusOr<OwnedMemory> OwnedMemory::Import(const ContextRef& context, const ElementType& type,
                                                const ExportedMemory& exported) {
  const std::string doing =
      absl::StrCat("import ", exported.bytes, " bytes from byte ", exported.offset, " on");
  const auto refused = [&](const MemoryDescription& memory, auto... why) {
    return absl::InvalidArgumentError(absl::StrCat(doing, ", ", memory.ToString(), ": ", why...));
  };
  if (exported.bytes == 0 || exported.bytes % type.size != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(doing, ": they are not elements of ", type.size, " bytes"));
  }
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  CUGUEST_RETURN_IF_ERROR(driver->Require(&ObjectDriver::IpcOpenMemHandle).status());
  CUGUEST_RETURN_IF_ERROR(driver->Require(&ObjectDriver::IpcCloseMemHandle).status());
  const ContextGuard guard(context);
  CUGUEST_RETURN_IF_CUDA_ERROR(guard.result(), doing, guard.advice());
  const RelaxedScope relaxed;
  CUdeviceptr opened = 0;
  CUresult code = relaxed.result();
  if (code == CUDA_SUCCESS) {
    code = driver->IpcOpenMemHandle(&opened, exported.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  }
  CUGUEST_RETURN_IF_CUDA_ERROR(code, doing,
                               absl::StrCat(ContextText(context.get()), ImportAdvice(code)));
  OwnedMemory owned({opened, exported.bytes, context, Device::Borrow(0)}, StreamRef());
  owned.kind_ = Kind::kImported;
  owned.opened_ = opened;
  CUGUEST_ASSIGN_OR_RETURN(const MemoryDescription memory, Describe(opened));
  if (memory.context != context) return refused(memory, "import it in that context");
  if (exported.offset > memory.size || exported.bytes > memory.size - exported.offset) {
    return refused(memory, "that is not all there");
  }
  if ((opened + exported.offset) % type.alignment != 0) {
    return refused(memory, "it is not aligned to ", type.alignment, " bytes");
  }
  owned.range_.pointer = opened + exported.offset;
  owned.range_.device = *memory.device;
  return owned;
}

absl::StatusOr<OwnedMemory> OwnedMemory::CopyOf(const ContextRef& context, const ElementType& type,
                                                const void* values, std::size_t count) {
  CUGUEST_RETURN_IF_ERROR(CheckValues(values, count));
  CUGUEST_ASSIGN_OR_RETURN(OwnedMemory memory, Allocate(context, type, count));
  CUGUEST_RETURN_IF_ERROR(CopyElements({memory.range().pointer, count, type.size, &memory.range()},
                                       {AddressOf(values), count, type.size, nullptr}));
  return memory;
}

absl::StatusOr<OwnedMemory> OwnedMemory::CopyOf(const StreamRef& stream, const ElementType& type,
                                                const void* values, std::size_t count) {
  CUGUEST_RETURN_IF_ERROR(CheckValues(values, count));
  CUGUEST_ASSIGN_OR_RETURN(OwnedMemory memory, Allocate(stream, type, count));
  CUGUEST_RETURN_IF_ERROR(CopyElements({memory.range().pointer, count, type.size, &memory.range()},
                                       {AddressOf(values), count, type.size, nullptr}, &stream));
  return memory;
}

absl::StatusOr<OwnedMemory> OwnedMemory::Adopt(CUdeviceptr pointer, const ElementType& type,
                                               std::size_t count) {
  if (count == 0) {
    return absl::InvalidArgumentError(AdoptText(pointer) + "no elements, it would not be freed");
  }
  CUGUEST_ASSIGN_OR_RETURN(const MemoryRange range, BorrowRange(pointer, type, count, false));
  CUGUEST_RETURN_IF_ERROR(CheckAdoptable(pointer));
  return OwnedMemory(range, StreamRef());
}

absl::StatusOr<OwnedMemory> OwnedMemory::Adopt(CUdeviceptr pointer, const ElementType& type,
                                               std::size_t count, const StreamRef& stream) {
  if (IsEmpty(stream)) return NoStream(AdoptText(pointer));
  CUGUEST_ASSIGN_OR_RETURN(const MemoryDescription memory, Describe(pointer));
  if (memory.kind == MemoryDescription::Kind::kManaged) {
    return absl::InvalidArgumentError(
        absl::StrCat("adopt ", memory.ToString(), ": it cannot be freed in a stream's order"));
  }
  StreamUse use;
  if (!use.Begin(stream)) return NoHostMemory(AdoptText(pointer));
  absl::StatusOr<OwnedMemory> owned = Adopt(pointer, type, count);
  if (owned.ok()) {
    owned->stream_ = stream;
    owned->use_ = std::move(use);
  }
  return owned;
}

OwnedMemory::OwnedMemory(const MemoryRange& range, const StreamRef& stream) noexcept
    : range_(range), stream_(stream), thread_(ThreadNumber()) {}

absl::Status OwnedMemory::Release() {
  if (range_.pointer == 0) return absl::OkStatus();
  if (IsOfAnotherThread() && stream_.context().Check() != CUDA_ERROR_CONTEXT_IS_DESTROYED) {
    return absl::FailedPreconditionError(absl::StrCat(
        FreeText(range_),
        ": it is in the order of the per-thread stream of another thread, which cannot be named "
        "here: free it on that thread, or with FreeAsync() in a stream that waits for its work"));
  }
  const MemoryRange range = range_;
  const EndOutcome outcome = TryFree(stream_);
  CUGUEST_RETURN_IF_CUDA_ERROR(
      outcome.code,
      kind_ == Kind::kImported ? "close the import of " + BytesText(range) : FreeText(range),
      outcome.reason);
  return absl::OkStatus();
}

const char* OwnedMemory::owner() const noexcept {
  switch (kind_) {
    case Kind::kDevice:
      return "a DeviceBuffer";
    case Kind::kPinnedHost:
      return "a PinnedBuffer";
    case Kind::kImported:
      return "an ImportedBuffer";
  }
  return "";
}

CUresult OwnedMemory::GiveBack(const ObjectDriver& driver) const noexcept {
  switch (kind_) {
    case Kind::kDevice:
      return driver.MemFree(range_.pointer);
    case Kind::kPinnedHost:
      return driver.MemFreeHost(reinterpret_cast<void*>(range_.pointer));
    case Kind::kImported:
      return driver.IpcCloseMemHandle(opened_);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

absl::Status OwnedMemory::FreeIn(const StreamRef& stream) {
  if (range_.pointer == 0) return absl::OkStatus();
  const MemoryRange range = range_;
  if (IsEmpty(stream)) return NoStream(FreeText(range));
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  CUGUEST_RETURN_IF_ERROR(driver->Require(&ObjectDriver::MemFreeAsync).status());
  const EndOutcome outcome = TryFreeIn(stream, StreamUse());
  CUGUEST_RETURN_IF_CUDA_ERROR(outcome.code, FreeText(range), outcome.reason);
  return absl::OkStatus();
}

// As Release(), where nobody can be told what went wrong.
void OwnedMemory::End() noexcept { EndOrOwe(*this, owner(), &FreeQuietly, &OwnedMemory::Leak); }

// Stream 0 waits for the per-thread streams of all threads. What was to be freed in the order of a
// capturing stream is not tried again: the host may have destroyed the stream by then.
CUresult OwnedMemory::FreeQuietly(OwnedMemory& memory) noexcept {
  if (memory.range_.pointer == 0) return CUDA_SUCCESS;
  return memory
      .TryFree(memory.IsOfAnotherThread()
                   ? StreamRef::Borrow(CU_STREAM_LEGACY, memory.stream_.context())
                   : memory.stream_)
      .code;
}

bool OwnedMemory::IsOfAnotherThread() const noexcept {
  return stream_.get() == CU_STREAM_PER_THREAD && thread_ != ThreadNumber();
}

// When the stream's context is gone, nothing of the stream still uses the memory.
EndOutcome OwnedMemory::TryFree(const StreamRef& stream) noexcept {
  if (IsEmpty(stream)) return TryFreeAtOnce();
  const EndOutcome outcome = TryFreeIn(stream, use_);
  return outcome.reason == kStreamIsOver ? TryFreeAtOnce() : outcome;
}

// Behind the work of its own stream, which has ended: `last`, or nullptr if there is no such event.
EndOutcome OwnedMemory::TryFreeBehind(CUevent last) noexcept {
  CUresult code = CUDA_SUCCESS;
  const ObjectDriver* const driver = TryObjectDriver(&code);
  if (driver == nullptr) return Settle(code);
  const ContextHold hold(stream_.context());
  if (hold.result() != CUDA_SUCCESS) return {CUDA_ERROR_INVALID_CONTEXT, kStreamIsOver};
  const ContextGuard guard(stream_.context());
  if (guard.result() == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
    return {CUDA_ERROR_INVALID_CONTEXT, kStreamIsOver};
  }
  if (!guard.ok()) return Settle(guard.result(), guard.advice());
  if (last == nullptr) return Settle(CUDA_ERROR_INVALID_HANDLE, kStreamHasEnded);
  const RelaxedScope relaxed;
  if (!relaxed.ok()) return Settle(relaxed.result());
  // What a context owns would not be given back: see Note [Memory freed in a stream that ends].
  if (range_.context.get() != nullptr) {
    code = driver->EventSynchronize(last);
    return code == CUDA_SUCCESS ? TryFreeAtOnce() : Settle(code);
  }
  // A stream of its own waits for the work, and nobody else does.
  CUstream stream = nullptr;
  code = driver->StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (code != CUDA_SUCCESS) return Settle(code);
  code = driver->StreamWaitEvent(stream, last, 0);
  if (code == CUDA_SUCCESS) code = driver->MemFreeAsync(range_.pointer, stream);
  static_cast<void>(driver->StreamDestroy(stream));
  return Settle(code);
}

EndOutcome OwnedMemory::TryFreeIn(const StreamRef& stream, const StreamUse& use) noexcept {
  CUresult code = CUDA_SUCCESS;
  const ObjectDriver* driver = TryObjectDriver(&code);
  if (driver == nullptr) return Settle(code);
  const bool is_gone_with_stream = range_.context == stream.context();
  const ContextHold home(range_.context);
  if (range_.context.get() != nullptr && !is_gone_with_stream) {
    code = home.result() != CUDA_SUCCESS ? home.result() : range_.context.Check();
    if (code == CUDA_ERROR_CONTEXT_IS_DESTROYED) return SettleGone();
    if (code != CUDA_SUCCESS) return Settle(code);
  }
  const OrderedOutcome outcome = CallInOrder(*driver, stream, use, [&] {
    if (driver->MemFreeAsync == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return driver->MemFreeAsync(range_.pointer, stream.get());
  });
  if (outcome.is_stream_over) return TryFreeBehind(outcome.last);
  if (!outcome.is_stream_gone) return Settle(outcome.code, outcome.reason);
  if (is_gone_with_stream) return SettleGone();
  // The end of another context than the memory's is not told as the end of the memory.
  return {CUDA_ERROR_INVALID_CONTEXT, kStreamIsOver};
}

EndOutcome OwnedMemory::TryFreeAtOnce() noexcept {
  CUresult code = CUDA_SUCCESS;
  const ObjectDriver* driver = TryObjectDriver(&code);
  if (driver == nullptr) return Settle(code);
  if (range_.context.get() == nullptr) {
    const EndOutcome freed = FreeOfNoContext(*driver, range_.pointer);
    return Settle(freed.code, freed.reason);
  }
  const EndOutcome ended = EndIn(range_.context, [&] { return GiveBack(*driver); });
  if (ended.code == CUDA_ERROR_CONTEXT_IS_DESTROYED) return SettleGone();
  const bool is_others = ended.code == CUDA_ERROR_INVALID_VALUE && kind_ == Kind::kDevice;
  return Settle(ended.code, is_others ? kUnknownToDriver : ended.reason);
}

EndOutcome OwnedMemory::SettleGone() noexcept {
  static_cast<void>(Leak());
  return {CUDA_ERROR_CONTEXT_IS_DESTROYED, "the memory is gone with its context"};
}

EndOutcome OwnedMemory::Settle(CUresult code, const char* reason) noexcept {
  if (code == CUDA_SUCCESS) static_cast<void>(Leak());
  // The process is ending, and the driver takes everything back.
  if (code == CUDA_ERROR_DEINITIALIZED) code = CUDA_SUCCESS;
  return {code, *reason != '\0' ? reason : "it was not given back, and the buffer still owns it"};
}

CUGUEST_END_INTERNAL_NAMESPACE

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies and fills. An asynchronous form differs from the other in whose context it works in, and
// in what it waits for.

#include "driver/memory/copy.h"

#include <cstring>
#include <memory>
#include <vector>

#include "driver/api.h"
#include "driver/context/device.h"
#include "driver/context/gpu.h"
#include "driver/context/stack.h"
#include "driver/graph/graph_memory.h"
#include "driver/memory/memory.h"
#include "driver/memory/reach.h"
#include "driver/panic.h"
#include "driver/stream/capture.h"
#include "driver/stream/stream.h"

namespace cudasim::driver {

bool IsReachedPlain(CUdeviceptr address, size_t bytes) {
  return DeviceFeatures::HasPageableAccess() && IsHostMemory(address, bytes);
}

bool IsRange(CUdeviceptr address, size_t bytes, End end, unsigned access) {
  Allocation allocation;
  if (address == 0) return false;
  if (Memory::Find(address, &allocation)) {
    // Measured on an H100, driver 580.159.04.
    const bool is_hosts = allocation.kind == MemoryKind::kPool && allocation.lies_on_host;
    if (is_hosts && end == End::kDevice) return false;
    return Memory::Reaches(address, bytes, access);
  }
  return end != End::kDevice || IsReachedPlain(address, bytes);
}

void PanicUnless(bool valid) {
  if (valid) return;
  Panic(
      "a graph or a stream copies or fills memory that was freed before that was done; a real "
      "driver corrupts whatever is there now");
}

Location LocationOf(CUdeviceptr address) {
  Allocation allocation;
  if (!Memory::Find(address, &allocation)) return Location::kPageable;
  return allocation.IsOnHost() || allocation.lies_on_host ? Location::kPinned : Location::kDevice;
}

bool Waits(Form form, Location to, Location from) {
  const bool on_device = to == Location::kDevice && from == Location::kDevice;
  const bool on_host = to != Location::kDevice && from != Location::kDevice;
  if (form == Form::kBlocking) return !on_device;
  return on_host || to == Location::kPageable || from == Location::kPageable;
}

CUresult WaitFor(const TaskPointer& task) {
  Schedule::Wait(task);
  return StickyError();
}

bool AreaBytes(size_t width, size_t rows, size_t pitch, size_t* bytes) {
  return !__builtin_mul_overflow(rows - 1, pitch, bytes) &&
         !__builtin_add_overflow(*bytes, width, bytes);
}

namespace {

bool CanCopy(CUdeviceptr to, End to_end, CUdeviceptr from, End from_end, size_t bytes) {
  return IsRange(to, bytes, to_end, Memory::kWrite) &&
         IsRange(from, bytes, from_end, Memory::kRead);
}

// A copy refuses a dead current context, though the stream has its own: unlike fills,
// launches, and everything else on a stream (measured on an H200, driver 580.159.04).
CUresult FindStreamToCopyIn(CUstream handle, Stream* stream) {
  Context* current = Stack::Top();
  const bool dead = current != nullptr && !current->IsAlive();
  return dead ? CUDA_ERROR_CONTEXT_IS_DESTROYED : FindReadyStream(handle, stream);
}

// Whether what lay in the driver's memory when it was submitted still does.
bool IsStill(Location location, CUdeviceptr address) {
  return location == Location::kPageable || LocationOf(address) == location;
}

// The most that a copy from pageable memory takes along instead of waiting for its turn (CUDA
// programming guide).
constexpr size_t kStaged = size_t{64} << 10;

CUmemorytype TypeOf(End end) {
  if (end == End::kEither) return CU_MEMORYTYPE_UNIFIED;
  return end == End::kDevice ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
}

// A copy of bytes in a row.
struct Copy {
  CUdeviceptr to;
  End to_end;
  CUdeviceptr from;
  End from_end;
  size_t bytes;
  // If it may be queued: where its ends lie, and what it takes along.
  Location to_location = Location::kPageable;
  Location from_location = Location::kPageable;
  std::shared_ptr<const std::vector<unsigned char>> staged = nullptr;

  bool IsValid() const { return CanCopy(to, to_end, from, from_end, bytes); }
  bool IsWithinReachOf(const Incarnation& place) const {
    return IsWithinReach(Touch::kCopy, to, bytes, Memory::kWrite, place) &&
           IsWithinReach(Touch::kCopy, from, bytes, Memory::kRead, place);
  }
  void Locate(Form form) {
    to_location = LocationOf(to);
    from_location = LocationOf(from);
    if (form == Form::kBlocking || to_location != Location::kDevice ||
        from_location != Location::kPageable || bytes > kStaged) {
      return;
    }
    const auto* first = static_cast<const unsigned char*>(ToPointer(from));
    staged = std::make_shared<std::vector<unsigned char>>(first, first + bytes);
  }
  // As a copy of one row.
  CUDA_MEMCPY3D Describe() const {
    CUDA_MEMCPY3D copy = {};
    copy.dstMemoryType = TypeOf(to_end);
    copy.dstDevice = to;
    copy.dstHost = ToPointer(to);
    copy.srcMemoryType = TypeOf(from_end);
    copy.srcDevice = from;
    copy.srcHost = ToPointer(from);
    copy.WidthInBytes = bytes;
    copy.Height = copy.Depth = 1;
    return copy;
  }
  bool Waits(Form form) const {
    return staged == nullptr && driver::Waits(form, to_location, from_location);
  }
  void Run() const {
    PanicUnless(IsStill(to_location, to) && IsStill(from_location, from) && IsValid());
    PanicUnlessMapped(to);
    PanicUnlessMapped(from);
    std::memmove(ToPointer(to), staged != nullptr ? staged->data() : ToPointer(from), bytes);
  }
};

CUresult CopyInStream(Copy copy, CUstream handle, Form form) {
  Stream stream;
  const CUresult code = FindStreamToCopyIn(handle, &stream);
  if (code != CUDA_SUCCESS || copy.bytes == 0) return code;
  if (!copy.IsValid()) return CUDA_ERROR_INVALID_VALUE;
  const bool is_captured = Captures::StatusOf(stream) != CU_STREAM_CAPTURE_STATUS_NONE;
  if (!Schedule::IsIdle() && !is_captured) copy.Locate(form);
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  work.incarnation = stream.incarnation;
  if (is_captured) work.access = {DevicesWithAccess(copy.from), DevicesWithAccess(copy.to)};
  work.is_valid = [=] { return copy.IsValid(); };
  work.run = [=](CUstream) { copy.Run(); };
  work.describe = [=](CUgraphNodeParams* params) {
    params->memcpy.copyCtx = stream.incarnation.context->handle();
    params->memcpy.copyParams = copy.Describe();
  };
  TaskPointer task;
  const CUresult submitted = Submit(handle, stream, work, &task);
  return task != nullptr && copy.Waits(form) ? WaitFor(task) : submitted;
}

// A peer copy is done wherever the memory is.
CUresult CopyWithinReach(const Copy& copy, CUstream handle, Form form) {
  Stream stream;
  if (copy.bytes != 0 && FindStreamToCopyIn(handle, &stream) == CUDA_SUCCESS) {
    if (!copy.IsWithinReachOf(stream.incarnation)) return CUDA_ERROR_INVALID_VALUE;
  }
  return CopyInStream(copy, handle, form);
}

CUresult CopyInStream(CUdeviceptr to, End to_end, CUdeviceptr from, End from_end, size_t bytes,
                      CUstream handle) {
  return CopyWithinReach({to, to_end, from, from_end, bytes}, handle, Form::kAsync);
}

// In stream 0, which no capture may be in the way of.
CUresult CopyInCurrent(CUdeviceptr to, End to_end, CUdeviceptr from, End from_end, size_t bytes) {
  return CopyWithinReach({to, to_end, from, from_end, bytes}, nullptr, Form::kBlocking);
}

CUdeviceptr Address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// A peer copy names the contexts; they need not be current. Without one of the source it is done,
// too (fresh sequences on two H200s, driver 580.159.04).
CUresult CheckPeers(CUcontext to, CUcontext from) {
  if (to == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  for (const CUcontext handle : {to, from}) {
    if (handle != nullptr && !Context::FindOrPanic(handle)->IsAlive()) {
      return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
  }
  return CUDA_SUCCESS;
}

bool CanFill(CUdeviceptr address, size_t bytes, const Incarnation& place) {
  Allocation allocation;
  if (!Memory::Find(address, &allocation)) return IsReachedPlain(address, bytes);
  return Memory::Reaches(address, bytes, Memory::kWrite) &&
         IsWithinReach(Touch::kFill, address, bytes, Memory::kWrite, place);
}

// Rows of elements; the pitch of one row says nothing.
struct Area {
  CUdeviceptr to = 0;
  size_t pitch = 0;
  size_t width = 0;
  size_t height = 0;
};

template <typename Element>
bool CanFillWith(const Area& area, const Incarnation& place) {
  size_t bytes = 0;
  return area.to % sizeof(Element) == 0 && area.width <= ThisGpu().memory / sizeof(Element) &&
         AreaBytes(area.width * sizeof(Element), area.height, area.pitch, &bytes) &&
         CanFill(area.to, bytes, place);
}

template <typename Element>
void Fill(const Area& area, Element value) {
  for (size_t y = 0; y < area.height; ++y) {
    auto* row = static_cast<Element*>(ToPointer(area.to + y * area.pitch));
    for (size_t x = 0; x < area.width; ++x) row[x] = value;
  }
}

// A fill of pinned or managed memory is waited for, in the blocking form (CUDA's "API
// synchronization behavior").
bool WaitsForFill(Form form, CUdeviceptr address) {
  Allocation allocation;
  return form == Form::kBlocking && Memory::Find(address, &allocation) &&
         (allocation.IsOnHost() || allocation.lies_on_host || allocation.IsManaged());
}

template <typename Element>
Work FillWork(const Area& area, Element value, const Incarnation& incarnation) {
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_MEMSET;
  work.incarnation = incarnation;
  work.describe = [=](CUgraphNodeParams* params) {
    params->memset = {area.to,    area.pitch,  static_cast<unsigned>(value), sizeof(Element),
                      area.width, area.height, incarnation.context->handle()};
  };
  work.is_valid = [=] { return CanFillWith<Element>(area, incarnation); };
  work.run = [=](CUstream) {
    PanicUnless(CanFillWith<Element>(area, incarnation));
    PanicUnlessMapped(area.to);
    Fill(area, value);
  };
  return work;
}

template <typename Element>
CUresult FillInStream(const Area& area, Element value, CUstream handle, Form form = Form::kAsync) {
  Stream stream;
  const CUresult code = FindReadyStream(handle, &stream);
  if (code != CUDA_SUCCESS || area.width == 0 || area.height == 0) return code;
  TaskPointer task;
  const CUresult submitted =
      Submit(handle, stream, FillWork(area, value, stream.incarnation), &task);
  return task != nullptr && WaitsForFill(form, area.to) ? WaitFor(task) : submitted;
}

template <typename Element>
CUresult FillInStream(CUdeviceptr to, Element value, size_t count, CUstream stream) {
  return FillInStream(Area{to, 0, count, 1}, value, stream);
}

template <typename Element>
CUresult FillInCurrent(CUdeviceptr to, Element value, size_t count) {
  return FillInStream(Area{to, 0, count, 1}, value, nullptr, Form::kBlocking);
}

// The pitch is an argument, refused at once; the range is not.
template <typename Element>
CUresult FillRows(CUdeviceptr to, size_t pitch, Element value, size_t width, size_t height,
                  CUstream handle, Form form = Form::kAsync) {
  const bool pitched = height > 1 && width > 0;
  if (!pitched) return FillInStream(Area{to, 0, width, height}, value, handle, form);
  Stream stream;
  const CUresult code = FindReadyStream(handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  if (pitch % sizeof(Element) != 0 || pitch / sizeof(Element) < width) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return FillInStream(Area{to, pitch, width, height}, value, handle, form);
}

}  // namespace

CUresult MakeFillWork(const CUDA_MEMSET_NODE_PARAMS& fill, const Incarnation& named, Work* work) {
  Allocation allocation;
  const bool is_owned =
      Memory::Find(fill.dst, &allocation) && allocation.incarnation.context != nullptr;
  const Incarnation wanted = NamedOrGreen(named);
  // In the memory's context; or in a green one, which must be of it.
  const bool is_there =
      wanted.context != nullptr && (!is_owned || (wanted.context->is_green() &&
                                                  OwnerOf(wanted).id == allocation.incarnation.id));
  const Incarnation& incarnation = is_there ? wanted : allocation.incarnation;
  if (incarnation.context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool pitched = fill.height > 1;
  if (fill.width == 0 || fill.height == 0 ||
      (pitched && fill.pitch / fill.width < fill.elementSize)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Area area = {fill.dst, fill.pitch, fill.width, fill.height};
  switch (fill.elementSize) {
    case 1:
      *work = FillWork(area, static_cast<unsigned char>(fill.value), incarnation);
      break;
    case 2:
      *work = FillWork(area, static_cast<unsigned short>(fill.value), incarnation);
      break;
    case 4:
      *work = FillWork(area, fill.value, incarnation);
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  const CUcontext context = incarnation.context->handle();
  work->describe = [=](CUgraphNodeParams* params) {  // with the whole value
    params->memset = {fill.dst,   fill.pitch,  fill.value, fill.elementSize,
                      fill.width, fill.height, context};
  };
  return work->is_valid() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult Memcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return CopyInCurrent(to, End::kEither, from, End::kEither, bytes);
}

CUresult MemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return CopyInStream(to, End::kEither, from, End::kEither, bytes, stream);
}

CUresult MemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  return CopyInCurrent(to, End::kDevice, Address(from), End::kHost, bytes);
}

CUresult MemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return CopyInStream(to, End::kDevice, Address(from), End::kHost, bytes, stream);
}

CUresult MemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  return CopyInCurrent(Address(to), End::kHost, from, End::kDevice, bytes);
}

CUresult MemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return CopyInStream(Address(to), End::kHost, from, End::kDevice, bytes, stream);
}

CUresult MemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return CopyInCurrent(to, End::kDevice, from, End::kDevice, bytes);
}

CUresult MemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return CopyInStream(to, End::kDevice, from, End::kDevice, bytes, stream);
}

CUresult MemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                    size_t bytes) {
  const CUresult code = CheckPeers(to_context, from_context);
  if (code != CUDA_SUCCESS) return code;
  return CopyInStream(Copy{to, End::kDevice, from, End::kDevice, bytes}, nullptr, Form::kBlocking);
}

CUresult MemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                         CUcontext from_context, size_t bytes, CUstream stream) {
  const CUresult code = CheckPeers(to_context, from_context);
  if (code != CUDA_SUCCESS) return code;
  return CopyInStream(Copy{to, End::kDevice, from, End::kDevice, bytes}, stream, Form::kAsync);
}

CUresult MemsetD8(CUdeviceptr to, unsigned char value, size_t count) {
  return FillInCurrent(to, value, count);
}

CUresult MemsetD16(CUdeviceptr to, unsigned short value, size_t count) {
  return FillInCurrent(to, value, count);
}

CUresult MemsetD32(CUdeviceptr to, unsigned value, size_t count) {
  return FillInCurrent(to, value, count);
}

CUresult MemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return FillInStream(to, value, count, stream);
}

CUresult MemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return FillInStream(to, value, count, stream);
}

CUresult MemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  return FillInStream(to, value, count, stream);
}

CUresult MemsetD2D8(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                    size_t height) {
  return FillRows(to, pitch, value, width, height, nullptr, Form::kBlocking);
}

CUresult MemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                         size_t height, CUstream stream) {
  return FillRows(to, pitch, value, width, height, stream);
}

CUresult MemsetD2D16(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                     size_t height) {
  return FillRows(to, pitch, value, width, height, nullptr, Form::kBlocking);
}

CUresult MemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                          size_t height, CUstream stream) {
  return FillRows(to, pitch, value, width, height, stream);
}

CUresult MemsetD2D32(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height) {
  return FillRows(to, pitch, value, width, height, nullptr, Form::kBlocking);
}

CUresult MemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,
                          CUstream stream) {
  return FillRows(to, pitch, value, width, height, stream);
}

}  // namespace cudasim::driver

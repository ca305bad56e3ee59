// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of rows and slices, between arrays and memory of every kind. All of them are
// a three-dimensional copy.

#include <cstring>
#include <type_traits>

#include "driver/api.h"
#include "driver/memory/array.h"
#include "driver/memory/copy.h"
#include "driver/memory/memory.h"
#include "driver/memory/reach.h"
#include "driver/stream/capture.h"
#include "driver/stream/stream.h"

namespace cudasim::driver {
namespace {

struct Extent {
  size_t width = 0;  // bytes
  size_t height = 0;
  size_t depth = 0;

  bool IsEmpty() const { return width == 0 || height == 0 || depth == 0; }
};

// One side of a copy, as it was given.
struct Side {
  CUmemorytype type;
  CUdeviceptr address;  // unless it is an array
  CUarray array;
  size_t x, y, z;  // x in bytes
  size_t level;    // of an array; there is only 0
  size_t pitch;    // 0: as narrow as the rows allow
  size_t height;   // 0: as low as the slices allow
};

// Where it lies.
struct Place {
  unsigned char* first = nullptr;
  size_t pitch = 0;
  size_t slice = 0;
  std::shared_ptr<unsigned char> array;  // kept while it is copied
};

bool Fits(size_t at, size_t count, size_t size) { return at <= size && count <= size - at; }

bool FindInArray(const Side& side, const Extent& extent, Place* place) {
  if (side.array == nullptr || side.level != 0) return false;
  const Array array = UseArray(side.array);
  place->pitch = array.RowBytes();
  place->slice = place->pitch * array.Rows();
  if (!Fits(side.x, extent.width, place->pitch) || !Fits(side.y, extent.height, array.Rows()) ||
      !Fits(side.z, extent.depth, array.Slices())) {
    return false;
  }
  place->first = array.bytes.get() + side.z * place->slice + side.y * place->pitch + side.x;
  place->array = array.bytes;
  return true;
}

// `end` = `at` + `count`, or what was given for it if that is no less.
bool Reach(size_t at, size_t count, size_t given, size_t* end) {
  if (__builtin_add_overflow(at, count, end)) return false;
  if (given == 0) return true;
  const bool enough = given >= *end;
  *end = given;
  return enough;
}

// From the first byte to the last; also the offset of the first.
bool FindRange(const Side& side, const Extent& extent, Place* place, size_t* offset,
               size_t* bytes) {
  size_t rows = 0;
  size_t last = 0;
  return Reach(side.x, extent.width, side.pitch, &place->pitch) &&
         Reach(side.y, extent.height, side.height, &rows) &&
         !__builtin_mul_overflow(rows, place->pitch, &place->slice) &&
         AreaBytes(side.x, side.y + 1, place->pitch, offset) &&
         AreaBytes(*offset, side.z + 1, place->slice, offset) &&
         AreaBytes(extent.width, extent.height, place->pitch, &last) &&
         AreaBytes(last, extent.depth, place->slice, bytes);
}

bool FindInMemory(const Side& side, const Extent& extent, End end, unsigned access, Place* place) {
  size_t offset = 0;
  size_t bytes = 0;
  if (side.address == 0 || !FindRange(side, extent, place, &offset, &bytes)) return false;
  place->first = static_cast<unsigned char*>(ToPointer(side.address + offset));
  return IsRange(side.address + offset, bytes, end, access);
}

bool FindPlace(const Side& side, const Extent& extent, unsigned access, Place* place) {
  switch (side.type) {
    case CU_MEMORYTYPE_ARRAY:
      return FindInArray(side, extent, place);
    case CU_MEMORYTYPE_HOST:
      return FindInMemory(side, extent, End::kHost, access, place);
    case CU_MEMORYTYPE_DEVICE:
      return FindInMemory(side, extent, End::kDevice, access, place);
    case CU_MEMORYTYPE_UNIFIED:
      return FindInMemory(side, extent, End::kEither, access, place);
  }
  return false;
}

bool IsSideWithinReach(const Side& side, const Extent& extent, unsigned access,
                       const Incarnation& from) {
  Place place;
  size_t offset = 0;
  size_t bytes = 0;
  return side.type == CU_MEMORYTYPE_ARRAY || !FindRange(side, extent, &place, &offset, &bytes) ||
         IsWithinReach(Touch::kCopy, side.address + offset, bytes, access, from);
}

struct AreaCopy {
  Side to;
  Side from;
  Extent extent;

  bool FindPlaces(Place* to_place, Place* from_place) const {
    return FindPlace(to, extent, Memory::kWrite, to_place) &&
           FindPlace(from, extent, Memory::kRead, from_place);
  }
  bool IsValid() const {
    Place to_place;
    Place from_place;
    return FindPlaces(&to_place, &from_place);
  }
  bool IsWithinReachOf(const Incarnation& place) const {
    return IsSideWithinReach(to, extent, Memory::kWrite, place) &&
           IsSideWithinReach(from, extent, Memory::kRead, place);
  }
  void Run() const {
    Place to_place;
    Place from_place;
    PanicUnless(FindPlaces(&to_place, &from_place));
    for (size_t z = 0; z < extent.depth; ++z) {
      for (size_t y = 0; y < extent.height; ++y) {
        std::memmove(to_place.first + z * to_place.slice + y * to_place.pitch,
                     from_place.first + z * from_place.slice + y * from_place.pitch, extent.width);
      }
    }
  }
};

CUdeviceptr Address(CUmemorytype type, const void* host, CUdeviceptr device) {
  return type == CU_MEMORYTYPE_HOST ? reinterpret_cast<CUdeviceptr>(host) : device;
}

// CUDA_MEMCPY3D, or CUDA_MEMCPY3D_PEER, whose contexts say no more than the addresses do.
template <typename Copy3D>
AreaCopy ToCopy(const Copy3D& copy) {
  return {
      {copy.dstMemoryType, Address(copy.dstMemoryType, copy.dstHost, copy.dstDevice), copy.dstArray,
       copy.dstXInBytes, copy.dstY, copy.dstZ, copy.dstLOD, copy.dstPitch, copy.dstHeight},
      {copy.srcMemoryType, Address(copy.srcMemoryType, copy.srcHost, copy.srcDevice), copy.srcArray,
       copy.srcXInBytes, copy.srcY, copy.srcZ, copy.srcLOD, copy.srcPitch, copy.srcHeight},
      {copy.WidthInBytes, copy.Height, copy.Depth}};
}

AreaCopy ToCopy(const CUDA_MEMCPY2D& copy) {
  return {{copy.dstMemoryType, Address(copy.dstMemoryType, copy.dstHost, copy.dstDevice),
           copy.dstArray, copy.dstXInBytes, copy.dstY, 0, 0, copy.dstPitch, 0},
          {copy.srcMemoryType, Address(copy.srcMemoryType, copy.srcHost, copy.srcDevice),
           copy.srcArray, copy.srcXInBytes, copy.srcY, 0, 0, copy.srcPitch, 0},
          {copy.WidthInBytes, copy.Height, 1}};
}

Side InArray(CUarray array, size_t offset) {
  return {CU_MEMORYTYPE_ARRAY, 0, array, offset, 0, 0, 0, 0, 0};
}
Side OnDevice(CUdeviceptr address) {
  return {CU_MEMORYTYPE_DEVICE, address, nullptr, 0, 0, 0, 0, 0, 0};
}
Side OnHost(const void* pointer) {
  return {CU_MEMORYTYPE_HOST, reinterpret_cast<CUdeviceptr>(pointer), nullptr, 0, 0, 0, 0, 0, 0};
}

Location LocationOfSide(const Side& side) {
  return side.type == CU_MEMORYTYPE_ARRAY ? Location::kDevice : LocationOf(side.address);
}

// As it was given, but for the form of the addresses.
CUDA_MEMCPY3D Describe(const AreaCopy& copy) {
  const auto& [to, from, extent] = copy;
  CUDA_MEMCPY3D params = {};
  params.srcXInBytes = from.x;
  params.srcY = from.y;
  params.srcZ = from.z;
  params.srcLOD = from.level;
  params.srcMemoryType = from.type;
  params.srcHost = ToPointer(from.address);
  params.srcDevice = from.address;
  params.srcArray = from.array;
  params.srcPitch = from.pitch;
  params.srcHeight = from.height;
  params.dstXInBytes = to.x;
  params.dstY = to.y;
  params.dstZ = to.z;
  params.dstLOD = to.level;
  params.dstMemoryType = to.type;
  params.dstHost = ToPointer(to.address);
  params.dstDevice = to.address;
  params.dstArray = to.array;
  params.dstPitch = to.pitch;
  params.dstHeight = to.height;
  params.WidthInBytes = extent.width;
  params.Height = extent.height;
  params.Depth = extent.depth;
  return params;
}

Work ToWork(const AreaCopy& copy, const Incarnation& incarnation) {
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  work.incarnation = incarnation;
  work.access = {DevicesWithAccess(copy.from.address), DevicesWithAccess(copy.to.address)};
  work.is_valid = [=] { return copy.IsValid(); };
  work.run = [=](CUstream) { copy.Run(); };
  work.describe = [=](CUgraphNodeParams* params) {
    params->memcpy.copyCtx =
        incarnation.context != nullptr ? incarnation.context->handle() : nullptr;
    params->memcpy.copyParams = Describe(copy);
  };
  return work;
}

CUresult Submit(const AreaCopy& copy, CUstream handle, const Stream& stream, Form form,
                bool by_peers = false) {
  if (copy.extent.IsEmpty()) return CUDA_SUCCESS;
  const bool reaches = by_peers || copy.IsWithinReachOf(stream.incarnation);
  if (!reaches || !copy.IsValid()) return CUDA_ERROR_INVALID_VALUE;
  TaskPointer task;
  const CUresult submitted = Submit(handle, stream, ToWork(copy, stream.incarnation), &task);
  const bool waits =
      task != nullptr && Waits(form, LocationOfSide(copy.to), LocationOfSide(copy.from));
  return waits ? WaitFor(task) : submitted;
}

template <typename Description>
CUresult CopyDescribed(const Description* description, CUstream handle, Form form = Form::kAsync) {
  Stream stream;
  const CUresult code = FindReadyStream(handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  if (description == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool by_peers = std::is_same_v<Description, CUDA_MEMCPY3D_PEER>;
  return Submit(ToCopy(*description), handle, stream, form, by_peers);
}

// Within the first row of an array, whatever rows it has (measured on an H200, driver
// 580.159.04).
CUresult CopyRow(const Side& to, const Side& from, size_t bytes, CUstream handle,
                 Form form = Form::kAsync) {
  Stream stream;
  const CUresult code = FindReadyStream(handle, &stream);
  return code != CUDA_SUCCESS ? code
                              : Submit(AreaCopy{to, from, {bytes, 1, 1}}, handle, stream, form);
}

}  // namespace

CUresult Memcpy2D(const CUDA_MEMCPY2D* copy) {
  return CopyDescribed(copy, nullptr, Form::kBlocking);
}

CUresult Memcpy2DAsync(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return CopyDescribed(copy, stream);
}

CUresult Memcpy3D(const CUDA_MEMCPY3D* copy) {
  return CopyDescribed(copy, nullptr, Form::kBlocking);
}

CUresult Memcpy3DAsync(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return CopyDescribed(copy, stream);
}

CUresult Memcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) {
  return CopyDescribed(copy, nullptr, Form::kBlocking);
}

CUresult Memcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return CopyDescribed(copy, stream);
}

CUresult MakeCopyWork(const CUDA_MEMCPY3D& params, const Incarnation& named, Work* work) {
  const AreaCopy copy = ToCopy(params);
  if (copy.extent.IsEmpty()) return CUDA_ERROR_INVALID_VALUE;
  *work = ToWork(copy, named);
  work->is_valid = [=] {
    const bool reaches = named.context == nullptr || copy.IsWithinReachOf(named);
    return reaches && copy.IsValid();
  };
  return work->is_valid() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult MemcpyHtoA(CUarray to, size_t offset, const void* from, size_t bytes) {
  return CopyRow(InArray(to, offset), OnHost(from), bytes, nullptr, Form::kBlocking);
}

CUresult MemcpyHtoAAsync(CUarray to, size_t offset, const void* from, size_t bytes,
                         CUstream stream) {
  return CopyRow(InArray(to, offset), OnHost(from), bytes, stream);
}

CUresult MemcpyAtoH(void* to, CUarray from, size_t offset, size_t bytes) {
  return CopyRow(OnHost(to), InArray(from, offset), bytes, nullptr, Form::kBlocking);
}

CUresult MemcpyAtoHAsync(void* to, CUarray from, size_t offset, size_t bytes, CUstream stream) {
  return CopyRow(OnHost(to), InArray(from, offset), bytes, stream);
}

CUresult MemcpyDtoA(CUarray to, size_t offset, CUdeviceptr from, size_t bytes) {
  return CopyRow(InArray(to, offset), OnDevice(from), bytes, nullptr, Form::kBlocking);
}

CUresult MemcpyAtoD(CUdeviceptr to, CUarray from, size_t offset, size_t bytes) {
  return CopyRow(OnDevice(to), InArray(from, offset), bytes, nullptr, Form::kBlocking);
}

CUresult MemcpyAtoA(CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes) {
  return CopyRow(InArray(to, to_offset), InArray(from, from_offset), bytes, nullptr,
                 Form::kBlocking);
}

}  // namespace cudasim::driver

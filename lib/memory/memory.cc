// SPDX-License-Identifier: Apache-2.0

#include "cuguest/memory.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/error.h"
#include "cuguest/internal/memory_range.h"
#include "lib/context/object_text.h"
#include "lib/core/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::ContextText;
using internal::PointerText;

constexpr char kDoing[] = "describe memory";

// What is asked of the driver in one call.
struct Attributes {
  CUcontext context = nullptr;
  unsigned type = 0;  // CUmemorytype; 0 for what the driver does not know
  CUdeviceptr device_pointer = 0;
  void* host_pointer = nullptr;
  int ordinal = -1;
  unsigned char is_managed = 0;
  CUdeviceptr range_base = 0;
  std::size_t range_size = 0;
  CUmemoryPool pool = nullptr;
  CUdeviceptr mapping_base = 0;
  std::size_t mapping_size = 0;
};

// One call fails as a whole for an attribute that the driver does not know, and for nothing
// else that is wrong with the pointer. So the newest are asked for last, and left out where
// that helps: `kAges` counts those of CUDA 11.3 and newer, of 10.2 and of 7.0.
CUresult Read(const Driver& driver, CUdeviceptr pointer, Attributes* read) {
  CUpointer_attribute attributes[] = {
      CU_POINTER_ATTRIBUTE_CONTEXT,          CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
      CU_POINTER_ATTRIBUTE_DEVICE_POINTER,   CU_POINTER_ATTRIBUTE_HOST_POINTER,
      CU_POINTER_ATTRIBUTE_IS_MANAGED,       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
      CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
      CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,   CU_POINTER_ATTRIBUTE_MAPPING_SIZE,
      CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR};
  void* values[] = {&read->context,      &read->type,        &read->device_pointer,
                    &read->host_pointer, &read->is_managed,  &read->ordinal,
                    &read->range_base,   &read->range_size,  &read->pool,
                    &read->mapping_size, &read->mapping_base};
  static_assert(std::size(attributes) == std::size(values));
  constexpr unsigned kAges[] = {std::size(attributes), 8, 5};
  CUresult code = CUDA_SUCCESS;
  for (const unsigned count : kAges) {
    *read = Attributes();
    code = driver.PointerGetAttributes(count, attributes, values, pointer);
    if (code != CUDA_ERROR_INVALID_VALUE) break;
  }
  return code;
}

// What no context owns may lie on the host, too, and pools may have managed memory.
MemoryKind KindOf(const Attributes& read) {
  if (read.type == 0) return MemoryKind::kUnregistered;
  if (read.context == nullptr && read.pool != nullptr) return MemoryKind::kPool;
  if (read.is_managed != 0) return MemoryKind::kManaged;
  if (read.context == nullptr) return MemoryKind::kVirtual;
  return read.type == CU_MEMORYTYPE_HOST ? MemoryKind::kPinnedHost : MemoryKind::kDevice;
}

// The range of virtual memory is the reservation around its mapping. Of memory that a pool has on
// the host the driver tells the size and no start (cudasim/test/host_location_facts_test.cc).
void SetExtent(const Attributes& read, MemoryDescription* memory) {
  if (memory->kind == MemoryKind::kPool && read.range_base == 0) return;
  const bool is_mapping = memory->kind == MemoryKind::kVirtual && read.mapping_size != 0;
  memory->base = is_mapping ? read.mapping_base : read.range_base;
  memory->size = is_mapping ? read.mapping_size : read.range_size;
}

CUresult ReadAccess(const Driver& driver, MemoryDescription* memory) {
  memory->access = MemoryAccess::kReadWrite;
  if (memory->kind != MemoryKind::kVirtual || driver.MemGetAccess == nullptr) return CUDA_SUCCESS;
  CUmemLocation location = {};
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = memory->device->get();
  unsigned long long flags = 0;
  const CUresult code = driver.MemGetAccess(&flags, &location, memory->pointer);
  if (flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) memory->access = MemoryAccess::kNone;
  if (flags == CU_MEM_ACCESS_FLAGS_PROT_READ) memory->access = MemoryAccess::kRead;
  return code;
}

// Memory on a device is at one address in all contexts; pages of the host need not be.
CUresult ReadDeviceAddress(const Driver& driver, const Attributes& read,
                           MemoryDescription* memory) {
  if (memory->kind != MemoryKind::kPinnedHost) {
    if (memory->access != MemoryAccess::kNone) memory->device_address = memory->pointer;
    return CUDA_SUCCESS;
  }
  memory->device_address = read.device_pointer;
  if (read.device_pointer != 0) return CUDA_SUCCESS;
  ContextGuard guard(memory->context);
  if (!guard.ok()) return guard.result();
  const CUresult code = driver.PointerGetAttribute(
      &memory->device_address, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, memory->pointer);
  return code == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : code;  // it has none
}

// A driver that does not know the ordinal knows only memory that a context owns.
CUresult ReadDevice(const Driver& driver, int ordinal, MemoryDescription* memory) {
  if (ordinal >= 0) {
    memory->device = Device::Borrow(ordinal);
    return CUDA_SUCCESS;
  }
  ContextGuard guard(memory->context);
  if (!guard.ok()) return guard.result();
  CUdevice device = 0;
  const CUresult code = driver.CtxGetDevice(&device);
  if (code == CUDA_SUCCESS) memory->device = Device::Borrow(device);
  return code;
}

CUresult Complete(const Driver& driver, const Attributes& read, MemoryDescription* memory) {
  if (read.context != nullptr) memory->context = ContextRef::Borrow(read.context);
  CUresult code = read.context != nullptr ? memory->context.result() : CUDA_SUCCESS;
  if (code == CUDA_SUCCESS) code = ReadDevice(driver, read.ordinal, memory);
  if (code == CUDA_SUCCESS) code = ReadAccess(driver, memory);
  if (code == CUDA_SUCCESS) code = ReadDeviceAddress(driver, read, memory);
  return code;
}

struct Format {
  CUarray_format format;
  std::size_t bytes;  // per channel
  const char* name;
};
constexpr Format kFormats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, 1, "uint8"},
    {CU_AD_FORMAT_UNSIGNED_INT16, 2, "uint16"},
    {CU_AD_FORMAT_UNSIGNED_INT32, 4, "uint32"},
    {CU_AD_FORMAT_SIGNED_INT8, 1, "int8"},
    {CU_AD_FORMAT_SIGNED_INT16, 2, "int16"},
    {CU_AD_FORMAT_SIGNED_INT32, 4, "int32"},
    {CU_AD_FORMAT_HALF, 2, "half"},
    {CU_AD_FORMAT_FLOAT, 4, "float"},
};

// nullptr for one that packs its channels, or has planes of several sizes.
const Format* FindFormat(CUarray_format format) {
  for (const Format& known : kFormats) {
    if (known.format == format) return &known;
  }
  return nullptr;
}

std::string ArrayText(CUarray array) {
  return absl::StrCat("array 0x", absl::Hex(reinterpret_cast<std::uintptr_t>(array)));
}

}  // namespace

const char* Name(MemoryKind kind) noexcept {
  constexpr const char* kNames[] = {"memory that CUDA does not know",
                                    "device memory",
                                    "managed memory",
                                    "pinned host memory",
                                    "pool memory",
                                    "virtual memory"};
  const auto index = static_cast<std::size_t>(kind);
  return index < std::size(kNames) ? kNames[index] : "memory of an unknown kind";
}

std::string MemoryDescription::ToString() const {
  std::string text = absl::StrCat(PointerText(pointer), ": ", Name(kind));
  if (kind == MemoryKind::kUnregistered) return text;
  const bool is_hosts = is_on_host && context.get() == nullptr;
  if (is_hosts) absl::StrAppend(&text, " of the host");
  if (device.has_value() && !is_hosts) absl::StrAppend(&text, " of device ", device->get());
  if (size != 0) absl::StrAppend(&text, ", byte ", offset(), " of ", size);
  if (context.get() != nullptr) absl::StrAppend(&text, ", ", ContextText(context.get()));
  if (pool != nullptr) {
    absl::StrAppend(&text, ", pool 0x", absl::Hex(reinterpret_cast<std::uintptr_t>(pool)));
  }
  if (access == MemoryAccess::kNone) text += ", no access";
  if (access == MemoryAccess::kRead) text += ", read-only";
  const bool elsewhere = device_address != 0 && device_address != pointer;
  if (elsewhere) absl::StrAppend(&text, ", for the device at ", PointerText(device_address));
  return text;
}

absl::StatusOr<MemoryDescription> Describe(CUdeviceptr pointer) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  Attributes read;
  CUGUEST_RETURN_IF_CUDA_ERROR(Read(*driver, pointer, &read), kDoing, PointerText(pointer));
  MemoryDescription memory;
  memory.pointer = pointer;
  memory.kind = KindOf(read);
  if (memory.kind == MemoryKind::kUnregistered) return memory;
  memory.is_on_host = read.type == CU_MEMORYTYPE_HOST;
  memory.host_address = read.host_pointer;
  memory.pool = read.pool;
  SetExtent(read, &memory);
  CUGUEST_RETURN_IF_CUDA_ERROR(Complete(*driver, read, &memory), kDoing, PointerText(pointer));
  return memory;
}

absl::StatusOr<MemoryDescription> Describe(const void* pointer) {
  return Describe(internal::AddressOf(pointer));
}

std::string ArrayDescription::ToString() const {
  std::string text = absl::StrCat(ArrayText(array), ": ", width);
  if (height != 0) absl::StrAppend(&text, " x ", height);
  if (depth != 0) absl::StrAppend(&text, " x ", depth);
  const Format* const known = FindFormat(format);
  absl::StrAppend(&text, " elements of ", channels, " ",
                  known != nullptr
                      ? known->name
                      : absl::StrCat("format 0x", absl::Hex(static_cast<int>(format))));
  if (bytes != 0) absl::StrAppend(&text, ", ", bytes, " bytes");
  if (flags != 0) absl::StrAppend(&text, ", flags 0x", absl::Hex(flags));
  return text;
}

absl::StatusOr<ArrayDescription> Describe(CUarray array) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  CUDA_ARRAY3D_DESCRIPTOR shape = {};
  CUGUEST_RETURN_IF_CUDA_ERROR(driver->Array3DGetDescriptor(&shape, array), "describe an array",
                               ArrayText(array));
  const Format* format = FindFormat(shape.Format);
  const std::size_t element = format != nullptr ? format->bytes * shape.NumChannels : 0;
  const std::size_t elements =
      shape.Width * std::max<std::size_t>(shape.Height, 1) * std::max<std::size_t>(shape.Depth, 1);
  ArrayDescription description;
  description.array = array;
  description.width = shape.Width;
  description.height = shape.Height;
  description.depth = shape.Depth;
  description.format = shape.Format;
  description.channels = shape.NumChannels;
  description.flags = shape.Flags;
  description.bytes = elements * element;
  return description;
}

CUGUEST_END_NAMESPACE

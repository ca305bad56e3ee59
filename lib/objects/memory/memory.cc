// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/memory.h"

#include <atomic>
#include <cstdint>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "cuguest/context_guard.h"
#include "cuguest/objects/driver.h"
#include "cuguest/objects/internal/memory_range.h"
#include "cuguest/status.h"
#include "lib/acquire/pointer_attributes.h"
#include "lib/objects/memory/host_pages.h"
#include "lib/objects/memory/mapping_access.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::ContextText;
using internal::PointerAttributes;
using internal::PointerText;

constexpr char kDescribe[] = "describe memory";

// What no context owns may lie on the host, too, and pools may have managed memory.
MemoryDescription::Kind KindOf(const PointerAttributes& read) {
  if (!read.IsKnown()) return MemoryDescription::Kind::kUnregistered;
  if (read.IsPool()) return MemoryDescription::Kind::kPool;
  if (read.is_managed != 0) return MemoryDescription::Kind::kManaged;
  if (read.IsVirtual()) return MemoryDescription::Kind::kVirtual;
  return read.type == CU_MEMORYTYPE_HOST ? MemoryDescription::Kind::kPinnedHost
                                         : MemoryDescription::Kind::kDevice;
}

CUresult ReadAccess(const ObjectDriver& driver, MemoryDescription* memory) {
  if (memory->kind == MemoryDescription::Kind::kVirtual) {
    return internal::AskAccess(driver, memory->pointer, *memory->device, &memory->access);
  }
  memory->access = MemoryDescription::Access::kReadWrite;
  return CUDA_SUCCESS;
}

// Memory on a device is at one address in all contexts; pages of the host need not be.
CUresult ReadDeviceAddress(const ObjectDriver& driver, const PointerAttributes& read,
                           MemoryDescription* memory) {
  if (memory->kind != MemoryDescription::Kind::kPinnedHost) {
    if (memory->access != MemoryDescription::Access::kNone)
      memory->device_address = memory->pointer;
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
CUresult ReadDevice(const ObjectDriver& driver, int ordinal, MemoryDescription* memory) {
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

CUresult Complete(const ObjectDriver& driver, const PointerAttributes& read,
                  MemoryDescription* memory) {
  if (read.context != nullptr) memory->context = ContextRef::Borrow(read.context);
  CUresult code = read.context != nullptr ? memory->context.result() : CUDA_SUCCESS;
  if (code == CUDA_SUCCESS) code = ReadDevice(driver, read.ordinal, memory);
  if (code == CUDA_SUCCESS) code = ReadAccess(driver, memory);
  if (code == CUDA_SUCCESS) code = ReadDeviceAddress(driver, read, memory);
  return code;
}

// Which does not change while the process lives. A driver before CUDA 8.0 does not know the
// attribute.
CUresult AskForPageable(const ObjectDriver& driver, bool* reach) {
  enum : int { kNotAsked, kNo, kYes };
  static std::atomic<int> s_answer{kNotAsked};
  int answer = s_answer.load(std::memory_order_relaxed);
  if (answer == kNotAsked) {
    int count = 0;
    CUresult code = driver.DeviceGetCount(&count);
    int reaches = 1;
    for (int device = 0; device < count && reaches != 0 && code == CUDA_SUCCESS; ++device) {
      code =
          driver.DeviceGetAttribute(&reaches, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, device);
    }
    if (code != CUDA_SUCCESS && code != CUDA_ERROR_INVALID_VALUE) return code;
    answer = code == CUDA_SUCCESS && reaches != 0 ? kYes : kNo;
    s_answer.store(answer, std::memory_order_relaxed);
  }
  *reach = answer == kYes;
  return CUDA_SUCCESS;
}

Device CurrentOrFirstDevice(const ObjectDriver& driver) {
  CUcontext context = nullptr;
  CUdevice device = 0;
  const bool is_current = driver.CtxGetCurrent(&context) == CUDA_SUCCESS && context != nullptr &&
                          ContextRef::Borrow(context).ok();
  return Device::Borrow(is_current && driver.CtxGetDevice(&device) == CUDA_SUCCESS ? device : 0);
}

// What the driver does not know.
CUresult DescribePlain(const ObjectDriver& driver, MemoryDescription* memory) {
  bool reach = false;
  const CUresult code = memory->pointer != 0 ? AskForPageable(driver, &reach) : CUDA_SUCCESS;
  if (!reach || !internal::IsMapped(memory->pointer, 1)) return code;
  memory->kind = MemoryDescription::Kind::kPageable;
  memory->device = CurrentOrFirstDevice(driver);
  memory->is_on_host = true;
  memory->device_address = memory->pointer;
  memory->host_address = reinterpret_cast<void*>(memory->pointer);
  memory->access = MemoryDescription::Access::kReadWrite;
  return code;
}

}  // namespace

const char* Name(MemoryDescription::Kind kind) noexcept {
  constexpr const char* kNames[] = {"memory that CUDA does not know",
                                    "device memory",
                                    "managed memory",
                                    "pinned host memory",
                                    "pool memory",
                                    "virtual memory",
                                    "pageable memory"};
  const auto index = static_cast<std::size_t>(kind);
  return index < std::size(kNames) ? kNames[index] : "memory of an unknown kind";
}

std::string MemoryDescription::ToString() const {
  std::string text = absl::StrCat(PointerText(pointer), ": ", Name(kind));
  if (kind == MemoryDescription::Kind::kUnregistered) return text;
  const bool is_hosts = is_on_host && context.get() == nullptr;
  if (is_hosts) absl::StrAppend(&text, " of the host");
  if (device.has_value() && !is_hosts) absl::StrAppend(&text, " of device ", device->get());
  if (size != 0) absl::StrAppend(&text, ", byte ", offset(), " of ", size);
  if (context.get() != nullptr) absl::StrAppend(&text, ", ", ContextText(context.get()));
  if (pool != nullptr) {
    absl::StrAppend(&text, ", pool 0x", absl::Hex(reinterpret_cast<std::uintptr_t>(pool)));
  }
  if (access == MemoryDescription::Access::kNone) text += ", no access";
  if (access == MemoryDescription::Access::kRead) text += ", read-only";
  const bool elsewhere = device_address != 0 && device_address != pointer;
  if (elsewhere) absl::StrAppend(&text, ", for the device at ", PointerText(device_address));
  return text;
}

absl::StatusOr<MemoryDescription> Describe(CUdeviceptr pointer) {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  PointerAttributes read;
  CUGUEST_RETURN_IF_CUDA_ERROR(internal::ReadAttributes(*driver, pointer, &read), kDescribe,
                               PointerText(pointer));
  MemoryDescription memory;
  memory.pointer = pointer;
  memory.kind = KindOf(read);
  if (memory.kind == MemoryDescription::Kind::kUnregistered) {
    CUGUEST_RETURN_IF_CUDA_ERROR(DescribePlain(*driver, &memory), kDescribe, PointerText(pointer));
    return memory;
  }
  memory.is_on_host = read.type == CU_MEMORYTYPE_HOST;
  memory.host_address = read.host_pointer;
  memory.pool = read.pool;
  const internal::MemoryExtent extent = read.Extent();
  memory.base = extent.base;
  memory.size = extent.size;
  CUGUEST_RETURN_IF_CUDA_ERROR(Complete(*driver, read, &memory), kDescribe, PointerText(pointer));
  return memory;
}

absl::StatusOr<MemoryDescription> Describe(const void* pointer) {
  return Describe(internal::AddressOf(pointer));
}

CUGUEST_END_NAMESPACE

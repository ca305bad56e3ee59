// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/device_view.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cuguest/objects/driver.h"
#include "cuguest/objects/memory.h"
#include "cuguest/status.h"
#include "lib/acquire/pointer_attributes.h"
#include "lib/objects/memory/host_pages.h"
#include "lib/objects/memory/mapping_access.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

std::string BorrowText(std::size_t bytes) { return absl::StrCat("borrow ", bytes, " bytes of "); }

// Its access and its device's address are those of `device`.
absl::Status CheckReachable(const MemoryDescription& memory, Device device, std::size_t bytes,
                            bool read_only) {
  if (memory.kind == MemoryDescription::Kind::kUnregistered) {
    return absl::InvalidArgumentError(
        absl::StrCat(BorrowText(bytes), memory.ToString(),
                     ": it is null, plain host memory, freed, or gone with its context"));
  }
  const bool writable = memory.access == MemoryDescription::Access::kReadWrite;
  if (memory.device_address != 0 && (writable || read_only)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(BorrowText(bytes), memory.ToString(), ": device ", device.get(),
                   " may not use it so. Give it access with cuMemSetAccess, or a view of const"));
}

// As Describe(), with what `device` may do with it.
absl::StatusOr<MemoryDescription> DescribeMapping(CUdeviceptr pointer, Device device) {
  CUGUEST_ASSIGN_OR_RETURN(MemoryDescription memory, Describe(pointer));
  const bool is_virtual = memory.kind == MemoryDescription::Kind::kVirtual;
  if (!is_virtual || memory.device == device) return memory;
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  CUGUEST_RETURN_IF_CUDA_ERROR(AskAccess(*driver, pointer, device, &memory.access),
                               "describe memory", PointerText(pointer));
  const bool has_access = memory.access != MemoryDescription::Access::kNone;
  memory.device_address = has_access ? pointer : 0;
  return memory;
}

// How many bytes there are from the pointer on, but `wanted` at most. Mappings that lie side by
// side are one piece of memory to the driver, whatever devices they are of, where the device that
// works has access to each (cudasim/test/virtual_memory_facts_test.cc).
absl::StatusOr<std::size_t> CountReachable(const MemoryDescription& first, std::size_t wanted,
                                           bool read_only) {
  std::size_t found = first.bytes_left();
  while (first.kind == MemoryDescription::Kind::kVirtual && found < wanted) {
    CUGUEST_ASSIGN_OR_RETURN(const MemoryDescription next,
                             DescribeMapping(first.pointer + found, *first.device));
    if (next.kind != MemoryDescription::Kind::kVirtual || next.size == 0) break;
    CUGUEST_RETURN_IF_ERROR(CheckReachable(next, *first.device, wanted, read_only));
    found += next.bytes_left();
  }
  return std::min(found, wanted);
}

absl::Status RefuseLength(const MemoryDescription& memory, std::size_t wanted,
                          const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(BorrowText(wanted), memory.ToString(), ": ", why));
}

// Of memory whose start the driver does not tell, that is, which a pool has on the host. Its bytes
// are in one allocation if there are not more than that has, and the last is in the one of the
// first.
absl::Status CheckInHostPool(const MemoryDescription& memory, std::size_t wanted) {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  PointerAttributes read;
  CUresult code = ReadAttributes(*driver, memory.pointer, &read);
  const bool is_too_long = code == CUDA_SUCCESS && wanted > read.range_size;
  bool is_one = !is_too_long;
  if (code == CUDA_SUCCESS && is_one) {
    code = IsOneAllocation(*driver, memory.pointer, memory.pointer + wanted - 1, &is_one);
  }
  CUGUEST_RETURN_IF_CUDA_ERROR(code, "describe memory", PointerText(memory.pointer));
  if (is_one) return absl::OkStatus();
  return RefuseLength(memory, wanted,
                      absl::StrCat("the allocation has ", read.range_size, " in all",
                                   is_too_long ? "" : ", and ends before that"));
}

absl::Status CheckLength(const MemoryDescription& memory, std::size_t wanted, bool read_only) {
  if (memory.kind == MemoryDescription::Kind::kPageable && !IsMapped(memory.pointer, wanted)) {
    return RefuseLength(memory, wanted, "not all of its pages are there");
  }
  if (memory.kind == MemoryDescription::Kind::kPool && memory.size == 0) {
    return CheckInHostPool(memory, wanted);
  }
  if (memory.size == 0) return absl::OkStatus();  // a driver that does not know it
  CUGUEST_ASSIGN_OR_RETURN(const std::size_t found, CountReachable(memory, wanted, read_only));
  if (found == wanted) return absl::OkStatus();
  return RefuseLength(memory, wanted, absl::StrCat("only ", found, " are there"));
}

}  // namespace

absl::StatusOr<std::size_t> ByteCount(const char* doing, const ElementType& type,
                                      std::size_t count) {
  if (count <= std::numeric_limits<std::size_t>::max() / type.size) return count * type.size;
  return absl::InvalidArgumentError(absl::StrCat(doing, " ", count, " elements of ", type.size,
                                                 " bytes: that is more than there are addresses"));
}

absl::StatusOr<MemoryRange> BorrowRange(CUdeviceptr pointer, const ElementType& type,
                                        std::size_t count, bool read_only) {
  CUGUEST_ASSIGN_OR_RETURN(const std::size_t bytes, ByteCount("borrow", type, count));
  if (bytes == 0) return MemoryRange();
  CUGUEST_ASSIGN_OR_RETURN(const MemoryDescription memory, Describe(pointer));
  CUGUEST_RETURN_IF_ERROR(
      CheckReachable(memory, memory.device.value_or(Device::Borrow(0)), bytes, read_only));
  CUGUEST_RETURN_IF_ERROR(CheckLength(memory, bytes, read_only));
  if (memory.device_address % type.alignment != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        BorrowText(bytes), memory.ToString(), ": it is not aligned to ", type.alignment, " bytes"));
  }
  return MemoryRange{memory.device_address, bytes, memory.context, *memory.device};
}

absl::StatusOr<MemoryRange> Subrange(const MemoryRange& range, const ElementType& type,
                                     std::size_t offset, std::size_t count) {
  const std::size_t size = range.bytes / type.size;
  if (offset > size || count > size - offset) {
    return absl::OutOfRangeError(absl::StrCat("take ", count, " elements from element ", offset,
                                              " on, of a view of ", size));
  }
  if (count == 0) return MemoryRange();
  return MemoryRange{range.pointer + offset * type.size, count * type.size, range.context,
                     range.device};
}

CUGUEST_END_INTERNAL_NAMESPACE

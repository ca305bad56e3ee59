// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/device_view.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cuguest/objects/memory.h"
#include "lib/objects/memory/host_pages.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

std::string BorrowText(std::size_t bytes) { return absl::StrCat("borrow ", bytes, " bytes of "); }

absl::Status CheckReachable(const MemoryDescription& memory, std::size_t bytes, bool read_only) {
  if (memory.kind == MemoryDescription::Kind::kUnregistered) {
    return absl::InvalidArgumentError(
        absl::StrCat(BorrowText(bytes), memory.ToString(),
                     ": it is null, plain host memory, freed, or gone with its context"));
  }
  const bool writable = memory.access == MemoryDescription::Access::kReadWrite;
  if (memory.device_address != 0 && (writable || read_only)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      BorrowText(bytes), memory.ToString(),
      ": the device may not use it so. Give it access with cuMemSetAccess, or a view of const"));
}

// How many bytes there are from the pointer on, but `wanted` at most. Mappings that lie side
// by side are one piece of memory to the driver (cudasim/test/virtual_memory_facts_test.cc).
absl::StatusOr<std::size_t> CountReachable(MemoryDescription memory, std::size_t wanted,
                                           bool read_only) {
  const CUdeviceptr first = memory.pointer;
  std::size_t found = memory.bytes_left();
  while (memory.kind == MemoryDescription::Kind::kVirtual && found < wanted) {
    CUGUEST_ASSIGN_OR_RETURN(MemoryDescription next, Describe(first + found));
    if (next.kind != MemoryDescription::Kind::kVirtual) break;
    CUGUEST_RETURN_IF_ERROR(CheckReachable(next, wanted, read_only));
    memory = next;
    found += memory.bytes_left();
  }
  return std::min(found, wanted);
}

absl::Status CheckLength(const MemoryDescription& memory, std::size_t wanted, bool read_only) {
  if (memory.kind == MemoryDescription::Kind::kPageable && !IsMapped(memory.pointer, wanted)) {
    return absl::InvalidArgumentError(
        absl::StrCat(BorrowText(wanted), memory.ToString(), ": not all of its pages are there"));
  }
  if (memory.size == 0) return absl::OkStatus();  // a driver that does not know it
  CUGUEST_ASSIGN_OR_RETURN(const std::size_t found, CountReachable(memory, wanted, read_only));
  if (found == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(BorrowText(wanted), memory.ToString(), ": only ", found, " are there"));
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
  CUGUEST_RETURN_IF_ERROR(CheckReachable(memory, bytes, read_only));
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

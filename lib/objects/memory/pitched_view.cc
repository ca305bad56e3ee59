// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/pitched_view.h"

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "cuguest/objects/driver.h"
#include "lib/objects/memory/run_copy.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

std::string RowsText(const Rows& rows) {
  return absl::StrCat(rows.height, " rows of ", rows.width, " elements");
}

bool IsNothing(const Rows& rows) { return rows.width == 0 || rows.height == 0; }

absl::Status RefuseRows(const Rows& rows, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("lay out ", RowsText(rows), ": ", why));
}

// From the first row to the end of the last one; a pitch of 0 becomes that of packed rows.
absl::StatusOr<std::size_t> BytesOfRows(std::size_t size, Rows* rows) {
  if (IsNothing(*rows)) return 0;
  std::size_t row = 0;
  std::size_t bytes = 0;
  bool overflows = __builtin_mul_overflow(rows->width, size, &row);
  if (!overflows && rows->pitch == 0) rows->pitch = row;
  if (!overflows && rows->pitch < row) {
    return RefuseRows(*rows, absl::StrCat("each has ", row,
                                          " bytes, and overlaps the next at a "
                                          "pitch of ",
                                          rows->pitch));
  }
  overflows = overflows || __builtin_mul_overflow(rows->height - 1, rows->pitch, &bytes) ||
              __builtin_add_overflow(bytes, row, &bytes);
  if (overflows) return RefuseRows(*rows, "that is more than there are addresses");
  return bytes;
}

absl::StatusOr<std::size_t> BytesOfView(const ElementType& type, Rows* rows) {
  CUGUEST_ASSIGN_OR_RETURN(const std::size_t bytes, BytesOfRows(type.size, rows));
  if (rows->pitch % type.alignment == 0) return bytes;
  return RefuseRows(
      *rows, absl::StrCat("a pitch of ", rows->pitch, " bytes is not aligned to ", type.alignment));
}

// Of bytes: the elements are in the rows.
constexpr std::size_t kByte = 1;

class RowsTask {
 public:
  RowsTask(const RowsEnd& to, const RowsEnd& from) : to_(to), from_(from) {}

  // Finds the hosts' pitches.
  absl::Status Check() {
    const bool alike = to_.rows.width == from_.rows.width && to_.rows.height == from_.rows.height;
    if (!alike) return Refused("the pictures are of different sizes: take a Subview of the larger");
    for (RowsEnd* end : {&to_, &from_}) {
      if (end->memory.range == nullptr) CUGUEST_RETURN_IF_ERROR(CheckHost(end));
    }
    return absl::OkStatus();
  }
  bool IsNothing() const { return internal::IsNothing(to_.rows); }

  std::string Text() const {
    const auto text = [](const RowsEnd& end) {
      return absl::StrCat(RowsText(end.rows), ", pitch ", end.rows.pitch, ", at ",
                          EndText(end.memory));
    };
    return absl::StrCat("copy ", text(from_), " to ", text(to_));
  }
  const MemoryRange& home() const { return HomeOf(to_.memory, from_.memory); }
  static bool is_fill() { return false; }
  std::array<const MemoryRange*, 2> ranges() const {
    return {to_.memory.range, from_.memory.range};
  }

  CUresult Do(const ObjectDriver& driver, const StreamRef* stream) const {
    CUDA_MEMCPY3D copy = {};
    copy.srcMemoryType = TypeOf(from_);
    copy.srcHost = reinterpret_cast<const void*>(from_.memory.address);
    copy.srcDevice = from_.memory.address;
    copy.srcPitch = from_.rows.pitch;
    copy.dstMemoryType = TypeOf(to_);
    copy.dstHost = reinterpret_cast<void*>(to_.memory.address);
    copy.dstDevice = to_.memory.address;
    copy.dstPitch = to_.rows.pitch;
    copy.WidthInBytes = to_.rows.width * to_.memory.size;
    copy.Height = to_.rows.height;
    copy.Depth = 1;
    return stream != nullptr ? driver.Memcpy3DAsync(&copy, stream->get()) : driver.Memcpy3D(&copy);
  }
  static CUresult Wait(const ObjectDriver& driver) { return WaitForStream0(driver); }

 private:
  static CUmemorytype TypeOf(const RowsEnd& end) {
    return end.memory.range == nullptr ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  }
  absl::Status Refused(const std::string& why) const {
    return absl::InvalidArgumentError(absl::StrCat(Text(), ": ", why));
  }
  absl::Status CheckHost(RowsEnd* end) const {
    const bool is_packed = end->rows.pitch == 0;
    CUGUEST_ASSIGN_OR_RETURN(const std::size_t needed, BytesOfRows(end->memory.size, &end->rows));
    const std::size_t there = end->memory.count * end->memory.size;
    if (is_packed ? there != needed : there < needed) {
      return Refused(absl::StrCat("the host has ", there, " bytes, and ",
                                  is_packed ? "packed rows have " : "needs at least ", needed));
    }
    if (needed != 0 && end->memory.address == 0) return Refused("the host's end is null");
    return absl::OkStatus();
  }

  RowsEnd to_;
  RowsEnd from_;
};

}  // namespace

absl::StatusOr<MemoryRange> BorrowRows(CUdeviceptr pointer, const ElementType& type, Rows* rows,
                                       bool read_only) {
  CUGUEST_ASSIGN_OR_RETURN(const std::size_t bytes, BytesOfView(type, rows));
  return BorrowRange(pointer, {kByte, type.alignment}, bytes, read_only);
}

absl::StatusOr<MemoryRange> RowsOf(const MemoryRange& range, const ElementType& type, Rows* rows) {
  CUGUEST_ASSIGN_OR_RETURN(const std::size_t bytes, BytesOfView(type, rows));
  if (bytes <= range.bytes) return Subrange(range, {kByte, kByte}, 0, bytes);
  return RefuseRows(*rows, absl::StrCat("at a pitch of ", rows->pitch, " they need ", bytes,
                                        " bytes of a view of ", range.bytes));
}

absl::StatusOr<MemoryRange> PartOfRows(const MemoryRange& range, const ElementType& type,
                                       const Rows& rows, std::size_t x, std::size_t y, Rows* part) {
  const bool is_there = x <= rows.width && part->width <= rows.width - x && y <= rows.height &&
                        part->height <= rows.height - y;
  if (!is_there) {
    return absl::OutOfRangeError(absl::StrCat("take ", RowsText(*part), " from element ", x,
                                              " of row ", y, " on, of a view of ", RowsText(rows)));
  }
  part->pitch = rows.pitch;
  CUGUEST_ASSIGN_OR_RETURN(const std::size_t bytes, BytesOfRows(type.size, part));
  if (bytes == 0) return MemoryRange();
  return Subrange(range, {kByte, kByte}, y * rows.pitch + x * type.size, bytes);
}

absl::Status CopyRows(const RowsEnd& to, const RowsEnd& from, const StreamRef* stream) {
  RowsTask task(to, from);
  CUGUEST_RETURN_IF_ERROR(task.Check());
  if (task.IsNothing()) return absl::OkStatus();
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  CUGUEST_RETURN_IF_ERROR(stream != nullptr ? driver->Require(&ObjectDriver::Memcpy3DAsync).status()
                                            : driver->Require(&ObjectDriver::Memcpy3D).status());
  return RunCopy(task, stream);
}

CUGUEST_END_INTERNAL_NAMESPACE

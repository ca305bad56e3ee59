// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/array.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "cuguest/objects/driver.h"
#include "lib/objects/memory/array_shape.h"
#include "lib/objects/memory/in_context.h"
#include "lib/objects/memory/run_copy.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::ContextText;
using internal::CopyEnd;
using internal::MemoryRange;
using internal::OwnedObject;

// Of an array: a height or depth that it has not is one row, or one slice.
struct Size {
  std::size_t width;
  std::size_t height;
  std::size_t depth;
};

Size SizeOf(const Array::Description& shape) {
  return {shape.width, std::max<std::size_t>(shape.height, 1),
          std::max<std::size_t>(shape.depth, 1)};
}

// What the driver looks at of a size: 32 bits (cudasim/test/array_facts_test.cc). Of a larger one
// it makes a smaller array, or takes the wrong rows, and reports success.
constexpr std::size_t kMostSeen = std::numeric_limits<std::uint32_t>::max();

bool IsSeen(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  return shape.Width <= kMostSeen && shape.Height <= kMostSeen && shape.Depth <= kMostSeen;
}

std::string SizeText(const Size& size) {
  return absl::StrCat(size.width, " x ", size.height, " x ", size.depth);
}

// One side of CUDA_MEMCPY3D, whose members have other names for the source and the destination.
struct Side {
  std::size_t x = 0;  // bytes
  std::size_t y = 0;
  std::size_t z = 0;
  CUmemorytype type = CU_MEMORYTYPE_ARRAY;
  CUarray array = nullptr;
  CUdeviceptr address = 0;
  std::size_t pitch = 0;
  std::size_t rows = 0;
};

void SetSource(const Side& side, CUDA_MEMCPY3D* copy) {
  copy->srcXInBytes = side.x;
  copy->srcY = side.y;
  copy->srcZ = side.z;
  copy->srcMemoryType = side.type;
  copy->srcArray = side.array;
  copy->srcHost = reinterpret_cast<const void*>(side.address);
  copy->srcDevice = side.address;
  copy->srcPitch = side.pitch;
  copy->srcHeight = side.rows;
}

void SetDestination(const Side& side, CUDA_MEMCPY3D* copy) {
  copy->dstXInBytes = side.x;
  copy->dstY = side.y;
  copy->dstZ = side.z;
  copy->dstMemoryType = side.type;
  copy->dstArray = side.array;
  copy->dstHost = reinterpret_cast<void*>(side.address);
  copy->dstDevice = side.address;
  copy->dstPitch = side.pitch;
  copy->dstHeight = side.rows;
}

// A copy between an array and memory, for internal::RunCopy().
class ArrayTask {
 public:
  ArrayTask(const Array& array, const CopyEnd& memory, const Array::Part& copy, bool is_to_array)
      : array_(array),
        memory_(memory),
        copy_(copy),
        is_to_array_(is_to_array),
        home_(0, 0, array.context(), Device::Borrow(0)) {}

  // Resolves what `copy` leaves open.
  absl::Status Check() {
    if (array_.empty()) return Refused("the array is empty");
    const Array::Description& shape = array_.description();
    const std::size_t element = internal::ElementBytes(shape.format, shape.channels);
    if (element == 0) {
      return absl::UnimplementedError(
          absl::StrCat(Text(), ": elements of this format have no size here; use cuMemcpy3D"));
    }
    CUGUEST_RETURN_IF_ERROR(FindPart(SizeOf(shape)));
    if (element % memory_.size != 0) {
      return Refused(absl::StrCat("the memory's elements have ", memory_.size,
                                  " bytes, which do not make up the array's ", element));
    }
    CUGUEST_RETURN_IF_ERROR(FindLayout(element));
    return memory_.address != 0 ? absl::OkStatus() : Refused("the host's end is null");
  }

  std::string Text() const {
    const std::string array =
        absl::StrCat("array 0x", absl::Hex(reinterpret_cast<std::uintptr_t>(array_.get())), " of ",
                     internal::ShapeText(array_.description()));
    const std::string memory = internal::EndText(memory_);
    return is_to_array_ ? absl::StrCat("copy from ", memory, " to ", array)
                        : absl::StrCat("copy from ", array, " to ", memory);
  }
  const MemoryRange& home() const { return home_; }
  static bool is_fill() { return false; }
  std::array<const MemoryRange*, 2> ranges() const { return {&home_, memory_.range}; }

  CUresult Do(const ObjectDriver& driver, const StreamRef* stream) const {
    Side array;
    array.x = x_bytes_;
    array.y = copy_.y;
    array.z = copy_.z;
    array.array = array_.get();
    Side memory;
    memory.type = memory_.range == nullptr ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    memory.address = memory_.address;
    memory.pitch = copy_.pitch;
    memory.rows = copy_.rows;
    CUDA_MEMCPY3D copy = {};
    SetSource(is_to_array_ ? memory : array, &copy);
    SetDestination(is_to_array_ ? array : memory, &copy);
    copy.WidthInBytes = row_bytes_;
    copy.Height = copy_.height;
    copy.Depth = copy_.depth;
    return stream != nullptr ? driver.Memcpy3DAsync(&copy, stream->get()) : driver.Memcpy3D(&copy);
  }
  static CUresult Wait(const ObjectDriver& driver) { return internal::WaitForStream0(driver); }

 private:
  absl::Status Refused(const std::string& why) const {
    return absl::InvalidArgumentError(absl::StrCat(Text(), ": ", why));
  }

  absl::Status FindPart(const Size& size) {
    const Size asked = {copy_.width, copy_.height, copy_.depth};
    const bool is_there = FindExtent(size.width, copy_.x, &copy_.width) &&
                          FindExtent(size.height, copy_.y, &copy_.height) &&
                          FindExtent(size.depth, copy_.z, &copy_.depth);
    if (is_there) return absl::OkStatus();
    return absl::OutOfRangeError(absl::StrCat(Text(), ": the part of ", SizeText(asked), " from ",
                                              copy_.x, ", ", copy_.y, ", ", copy_.z,
                                              " on is not in the array's ", SizeText(size)));
  }
  // 0 is what is left.
  static bool FindExtent(std::size_t size, std::size_t at, std::size_t* extent) {
    if (at >= size) return false;
    if (*extent == 0) *extent = size - at;
    return *extent <= size - at;
  }

  absl::Status FindLayout(std::size_t element) {
    const bool is_packed = copy_.pitch == 0 && copy_.rows == 0;
    x_bytes_ = copy_.x * element;
    row_bytes_ = copy_.width * element;
    if (copy_.pitch == 0) copy_.pitch = row_bytes_;
    if (copy_.rows == 0) copy_.rows = copy_.height;
    if (copy_.pitch < row_bytes_ || copy_.rows < copy_.height) {
      return Refused(absl::StrCat("rows of ", row_bytes_, " bytes, ", copy_.height,
                                  " in a slice, do not fit a pitch of ", copy_.pitch, " bytes and ",
                                  copy_.rows, " rows"));
    }
    if (copy_.depth > 1 && copy_.rows > kMostSeen) {
      return Refused(absl::StrCat("a slice of ", copy_.rows, " rows; the driver takes ", kMostSeen,
                                  " at most"));
    }
    std::size_t rows = 0;    // before the last one
    std::size_t needed = 0;  // bytes
    const bool overflows = __builtin_mul_overflow(copy_.depth - 1, copy_.rows, &rows) ||
                           __builtin_add_overflow(rows, copy_.height - 1, &rows) ||
                           __builtin_mul_overflow(rows, copy_.pitch, &needed) ||
                           __builtin_add_overflow(needed, row_bytes_, &needed);
    if (overflows) return Refused("its rows reach beyond the end of the address space");
    const std::size_t bytes = memory_.count * memory_.size;
    if (bytes == needed || (!is_packed && bytes > needed)) return absl::OkStatus();
    return Refused(absl::StrCat(SizeText({copy_.width, copy_.height, copy_.depth}), " elements of ",
                                element, " bytes need ", is_packed ? "" : "at least ", needed,
                                " bytes of memory, and there are ", bytes));
  }

  const Array& array_;
  CopyEnd memory_;
  Array::Part copy_;
  bool is_to_array_;
  MemoryRange home_;
  std::size_t x_bytes_ = 0;
  std::size_t row_bytes_ = 0;
};

absl::Status Run(ArrayTask task, const StreamRef* stream) {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  CUGUEST_RETURN_IF_ERROR(stream != nullptr ? driver->Require(&ObjectDriver::Memcpy3DAsync).status()
                                            : driver->Require(&ObjectDriver::Memcpy3D).status());
  CUGUEST_RETURN_IF_ERROR(task.Check());
  return internal::RunCopy(task, stream);
}

}  // namespace

absl::StatusOr<Array> Array::Create(const ContextRef& context,
                                    const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  CUGUEST_RETURN_IF_ERROR(driver->Require(&ObjectDriver::Array3DCreate).status());
  CUGUEST_RETURN_IF_ERROR(driver->Require(&ObjectDriver::ArrayDestroy).status());
  CUarray array = nullptr;
  const auto create = [&](unsigned long long* handle) {
    if (!IsSeen(shape)) return CUDA_ERROR_INVALID_VALUE;
    const CUresult code = driver->Array3DCreate(&array, &shape);
    *handle = reinterpret_cast<std::uintptr_t>(array);
    return code;
  };
  const auto text = [&] {
    return absl::StrCat("create an array of ",
                        internal::ShapeText(internal::ToDescription(nullptr, shape)));
  };
  const auto reason = [&](CUresult) { return ContextText(context.get()); };
  CUGUEST_ASSIGN_OR_RETURN(
      OwnedObject object,
      internal::CreateIn(context, OwnedObject::Kind::kArray, create, text, reason));
  return Array(std::move(object), internal::ToDescription(array, shape));
}

absl::Status Array::Release() {
  const absl::Status destroyed = object_.Release();
  if (object_.handle() == 0) shape_ = {};
  return destroyed;
}

namespace internal {

absl::Status CopyToArray(const Array& to, const CopyEnd& from, const Array::Part& copy,
                         const StreamRef* stream) {
  return Run(ArrayTask(to, from, copy, true), stream);
}

absl::Status CopyFromArray(const CopyEnd& to, const Array& from, const Array::Part& copy,
                           const StreamRef* stream) {
  return Run(ArrayTask(from, to, copy, false), stream);
}

}  // namespace internal
CUGUEST_END_NAMESPACE

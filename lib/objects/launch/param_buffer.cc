// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/param_buffer.h"

#include <cstddef>
#include <cstring>
#include <functional>

#include "absl/strings/str_cat.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

// What is aligned to more lies elsewhere on each architecture.
constexpr std::size_t kMaxPackedAlignment = 16;

const char* Complaint(const void* data, std::size_t size, std::size_t alignment) {
  if (data == nullptr || size == 0) return "a parameter has at least one byte";
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
    return "an alignment is a power of two";
  }
  return size % alignment != 0 ? "the size of a type is a multiple of its alignment" : nullptr;
}

}  // namespace

absl::Status ParamBuffer::AddBytes(const void* data, std::size_t size, std::size_t alignment) {
  const char* const complaint = Complaint(data, size, alignment);
  if (complaint != nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("add parameter ", parameters_.size() + 1,
                                                   ", of ", size, " bytes, aligned to ", alignment,
                                                   ": ", complaint));
  }
  const Kernel::Parameter place = {internal::AlignUp(bytes_.size(), alignment), size};
  if (size > kMaxBytes || place.offset > kMaxBytes - size) {
    return absl::OutOfRangeError(absl::StrCat(
        "add parameter ", parameters_.size() + 1, ", of ", size, " bytes at offset ", place.offset,
        ": a kernel takes at most ", kMaxBytes, " bytes; pass a pointer to the rest"));
  }
  const auto* from = static_cast<const unsigned char*>(data);
  const std::less<> before;
  const bool is_inside =
      !before(from, bytes_.data()) && before(from, bytes_.data() + bytes_.size());
  const std::ptrdiff_t inside = is_inside ? from - bytes_.data() : 0;
  bytes_.reserve(place.offset + size);
  parameters_.push_back(place);
  bytes_.resize(place.offset + size);
  if (is_inside) from = bytes_.data() + inside;
  std::memcpy(bytes_.data() + place.offset, from, size);
  can_be_packed_ = can_be_packed_ && alignment <= kMaxPackedAlignment;
  return absl::OkStatus();
}

void ParamBuffer::Clear() noexcept {
  bytes_.clear();
  parameters_.clear();
  can_be_packed_ = true;
}

CUGUEST_END_NAMESPACE

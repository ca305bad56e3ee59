// SPDX-License-Identifier: Apache-2.0
//
// Bytes of an image, or of a part of one, that somebody else made: every read is bounded,
// and a complaint names the offset in the whole.                                   tier: 3

#ifndef CUGUEST_LIB_MODULE_IMAGE_BYTES_H_
#define CUGUEST_LIB_MODULE_IMAGE_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

class ImageBytes {
 public:
  ImageBytes() noexcept = default;
  ImageBytes(const unsigned char* data, std::size_t size, std::size_t origin = 0) noexcept
      : data_(data), size_(size), origin_(origin) {}

  const unsigned char* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  // Where this part begins in the whole.
  std::size_t origin() const noexcept { return origin_; }

  bool Has(std::uint64_t offset, std::uint64_t count) const noexcept {
    return offset <= size_ && count <= size_ - offset;
  }

  // Has(offset, sizeof(T)) must hold.
  template <typename T>
  T At(std::uint64_t offset) const noexcept {
    static_assert(std::is_trivially_copyable_v<T>, "it is read byte by byte");
    T value;
    std::memcpy(&value, data_ + offset, sizeof(value));
    return value;
  }

  // Has(offset, count) must hold.
  ImageBytes Part(std::uint64_t offset, std::uint64_t count) const noexcept {
    return ImageBytes(data_ + offset, static_cast<std::size_t>(count),
                      origin_ + static_cast<std::size_t>(offset));
  }
  ImageBytes From(std::uint64_t offset) const noexcept { return Part(offset, size_ - offset); }

  std::string_view text() const noexcept {
    return std::string_view(reinterpret_cast<const char*>(data_), size_);
  }

 private:
  const unsigned char* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t origin_ = 0;
};

// "at offset N: what".
template <typename... Parts>
absl::Status Damaged(const ImageBytes& bytes, std::uint64_t offset, const Parts&... what) {
  return absl::InvalidArgumentError(
      absl::StrCat("at offset ", bytes.origin() + offset, ": ", what...));
}

// The same status, with the part that it is about in front: "section 3, ...".
inline absl::Status Within(const std::string& part, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(part, ", ", std::string(status.message())));
}

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_MODULE_IMAGE_BYTES_H_

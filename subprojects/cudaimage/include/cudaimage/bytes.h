// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bytes of an image, or of a part of one, that somebody else made: every read is bounded,
// and a complaint names the offset in the whole.

#ifndef CUDAIMAGE_BYTES_H_
#define CUDAIMAGE_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "status.h"

CUDAIMAGE_BEGIN_NAMESPACE

class Bytes {
 public:
  Bytes() noexcept = default;
  Bytes(const unsigned char* data, std::size_t size, std::size_t origin = 0) noexcept
      : data_(data), size_(size), origin_(origin) {}
  explicit Bytes(std::string_view text) noexcept
      : Bytes(reinterpret_cast<const unsigned char*>(text.data()), text.size()) {}

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
  Bytes Part(std::uint64_t offset, std::uint64_t count) const noexcept {
    return Bytes(data_ + offset, static_cast<std::size_t>(count),
                 origin_ + static_cast<std::size_t>(offset));
  }
  Bytes From(std::uint64_t offset) const noexcept { return Part(offset, size_ - offset); }

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
Status Damaged(const Bytes& bytes, std::uint64_t offset, const Parts&... what) {
  return Status(Status::Code::kDamaged, Text("at offset ", bytes.origin() + offset, ": ", what...));
}

CUDAIMAGE_END_NAMESPACE

#endif  // CUDAIMAGE_BYTES_H_

// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>

#include "lib/module/decompress.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

constexpr std::size_t kShortestMatch = 4;
constexpr unsigned kMore = 15;  // of a length: further bytes follow

class Lz4Block {
 public:
  Lz4Block(const ImageBytes& packed, std::uint64_t size) : packed_(packed), size_(size) {}

  absl::StatusOr<std::string> Decompress() {
    while (at_ < packed_.size()) {
      const std::size_t sequence = at_;
      if (!DecompressSequence()) return Damaged(packed_, sequence, "no LZ4 sequence");
    }
    if (out_.size() == size_) return std::move(out_);
    return Damaged(packed_, at_, "it decompresses to ", out_.size(), " bytes, not ", size_);
  }

 private:
  // Literals and a match; the last has none.
  bool DecompressSequence() {
    const auto token = packed_.At<unsigned char>(at_++);
    std::uint64_t literals = 0;
    std::uint64_t match = 0;
    if (!ReadLength(token >> 4, &literals) || !CopyLiterals(literals)) return false;
    if (at_ == packed_.size()) return true;
    if (!packed_.Has(at_, sizeof(std::uint16_t))) return false;
    const auto distance = packed_.At<std::uint16_t>(at_);
    at_ += sizeof(distance);
    return ReadLength(token & kMore, &match) && CopyMatch(distance, match + kShortestMatch);
  }

  bool ReadLength(unsigned nibble, std::uint64_t* length) {
    *length = nibble;
    if (nibble < kMore) return true;
    unsigned char more = 255;
    while (more == 255) {
      if (!packed_.Has(at_, 1)) return false;
      more = packed_.At<unsigned char>(at_++);
      *length += more;
    }
    return true;
  }

  bool Fits(std::uint64_t count) const { return count <= size_ - out_.size(); }

  bool CopyLiterals(std::uint64_t count) {
    if (!packed_.Has(at_, count) || !Fits(count)) return false;
    out_.append(packed_.Part(at_, count).text());
    at_ += static_cast<std::size_t>(count);
    return true;
  }

  // Byte by byte: it may overlap what it makes.
  bool CopyMatch(std::size_t distance, std::uint64_t count) {
    if (distance == 0 || distance > out_.size() || !Fits(count)) return false;
    for (; count > 0; --count) out_.push_back(out_[out_.size() - distance]);
    return true;
  }

  const ImageBytes packed_;
  const std::uint64_t size_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

absl::StatusOr<std::string> DecompressLz4(const ImageBytes& packed, std::uint64_t size) {
  return Lz4Block(packed, size).Decompress();
}

}  // namespace internal
CUGUEST_END_NAMESPACE

// SPDX-License-Identifier: Apache-2.0
//
// The two kinds of bit streams of RFC 8878, and its entropy codes.                 tier: 3

#ifndef CUGUEST_LIB_MODULE_ZSTD_BITS_H_
#define CUGUEST_LIB_MODULE_ZSTD_BITS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cuguest/export.h"
#include "lib/module/image_bytes.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// The position of the highest set bit; `value` is not 0.
inline unsigned HighestBit(std::uint64_t value) {
  return 63U - static_cast<unsigned>(__builtin_clzll(value));
}

// From the first bit of the first byte on.
class ForwardBits {
 public:
  explicit ForwardBits(const ImageBytes& bytes) : bytes_(bytes) {}

  // At most 32 bits; 0 for those beyond the end, after which Overran().
  std::uint32_t Read(unsigned count);
  void Unread(unsigned count) { at_ -= count; }
  bool Overran() const { return at_ > bytes_.size() * 8; }
  std::size_t BytesRead() const { return (at_ + 7) / 8; }

 private:
  ImageBytes bytes_;
  std::size_t at_ = 0;
};

// From the bit below the highest set one of the last byte, backwards.
class BackwardBits {
 public:
  // False if there is no set bit in the last byte.
  bool Begin(const ImageBytes& bytes);

  // At most 56 bits; 0 for those before the beginning, after which Overran().
  std::uint64_t Peek(unsigned count) const;
  void Skip(unsigned count) { left_ -= static_cast<std::int64_t>(count); }
  std::uint64_t Read(unsigned count) {
    const std::uint64_t bits = Peek(count);
    Skip(count);
    return bits;
  }
  bool AtEnd() const { return left_ == 0; }
  bool Overran() const { return left_ < 0; }

 private:
  ImageBytes bytes_;
  std::int64_t left_ = 0;  // bits
};

// Finite state entropy (RFC 8878, 4.1).
class FseTable {
 public:
  struct Cell {
    std::uint8_t symbol = 0;
    std::uint8_t bits = 0;
    std::uint16_t base = 0;
  };

  // From frequencies (-1: less than one), which add up to 1 << accuracy.
  bool Build(const std::vector<int>& frequencies, unsigned accuracy);
  // One symbol that takes no bits.
  void BuildOfOne(std::uint8_t symbol);
  // From a description; `*size` is how many bytes it took.
  bool Read(const ImageBytes& bytes, unsigned most_accuracy, std::size_t most_symbols,
            std::size_t* size);

  bool empty() const { return cells_.empty(); }
  unsigned accuracy() const { return accuracy_; }
  const Cell& At(std::size_t state) const { return cells_[state]; }

 private:
  std::vector<Cell> cells_;
  unsigned accuracy_ = 0;
};

struct FseState {
  void Begin(const FseTable& from, BackwardBits* bits) {
    table = &from;
    state = static_cast<std::size_t>(bits->Read(from.accuracy()));
  }
  std::uint8_t Symbol() const { return table->At(state).symbol; }
  void Advance(BackwardBits* bits) {
    const FseTable::Cell& cell = table->At(state);
    state = cell.base + static_cast<std::size_t>(bits->Read(cell.bits));
  }

  const FseTable* table = nullptr;
  std::size_t state = 0;
};

// Huffman codes (RFC 8878, 4.2).
class HuffmanTable {
 public:
  bool Read(const ImageBytes& bytes, std::size_t* size);
  // The whole of `bytes` as `count` symbols, appended.
  bool Decode(const ImageBytes& bytes, std::size_t count, std::string* out) const;
  bool empty() const { return cells_.empty(); }

 private:
  struct Cell {
    std::uint8_t symbol = 0;
    std::uint8_t bits = 0;
  };

  bool Build(std::vector<std::uint8_t> weights);

  std::vector<Cell> cells_;
  unsigned most_bits_ = 0;
};

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_MODULE_ZSTD_BITS_H_

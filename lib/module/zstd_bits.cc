// SPDX-License-Identifier: Apache-2.0

#include "lib/module/zstd_bits.h"

#include <algorithm>
#include <string>
#include <utility>

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

constexpr unsigned kMostWeightAccuracy = 6;
constexpr std::size_t kMostWeights = 255;  // the last is not written
constexpr unsigned kMostHuffmanBits = 11;

// Weights as they are written, two of an FSE code taking turns.
bool ReadFseWeights(const ImageBytes& bytes, std::vector<std::uint8_t>* weights) {
  FseTable table;
  std::size_t size = 0;
  BackwardBits bits;
  if (!table.Read(bytes, kMostWeightAccuracy, kMostHuffmanBits + 2, &size)) return false;
  if (!bits.Begin(bytes.From(size))) return false;
  FseState states[2];
  states[0].Begin(table, &bits);
  states[1].Begin(table, &bits);
  if (bits.Overran()) return false;
  for (int turn = 0; weights->size() < kMostWeights; turn = 1 - turn) {
    weights->push_back(states[turn].Symbol());
    states[turn].Advance(&bits);
    if (!bits.Overran()) continue;
    weights->push_back(states[1 - turn].Symbol());
    return weights->size() <= kMostWeights;
  }
  return false;
}

void ReadPlainWeights(const ImageBytes& bytes, std::size_t count,
                      std::vector<std::uint8_t>* weights) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto two = bytes.At<std::uint8_t>(i / 2);
    weights->push_back(i % 2 == 0 ? two >> 4 : two & 15);
  }
}

}  // namespace

std::uint32_t ForwardBits::Read(unsigned count) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < count; ++i, ++at_) {
    if (!bytes_.Has(at_ / 8, 1)) continue;
    const std::uint32_t bit = (bytes_.At<std::uint8_t>(at_ / 8) >> (at_ % 8)) & 1U;
    value |= bit << i;
  }
  return value;
}

bool BackwardBits::Begin(const ImageBytes& bytes) {
  bytes_ = bytes;
  if (bytes.size() == 0) return false;
  const auto last = bytes.At<std::uint8_t>(bytes.size() - 1);
  if (last == 0) return false;
  left_ = static_cast<std::int64_t>((bytes.size() - 1) * 8 + HighestBit(last));
  return true;
}

std::uint64_t BackwardBits::Peek(unsigned count) const {
  // The bits [left - count, left), of which there may be none below 0.
  const std::int64_t first = left_ - static_cast<std::int64_t>(count);
  if (left_ <= 0) return 0;
  const auto from = static_cast<std::size_t>(std::max<std::int64_t>(first, 0));
  std::uint64_t value = 0;
  const std::size_t byte = from / 8;
  for (std::size_t i = 0; i < sizeof(value) && bytes_.Has(byte + i, 1); ++i) {
    value |= std::uint64_t{bytes_.At<std::uint8_t>(byte + i)} << (8 * i);
  }
  value >>= from % 8;
  const auto there = static_cast<unsigned>(left_ - static_cast<std::int64_t>(from));
  value &= (std::uint64_t{1} << there) - 1;
  return value << (count - there);
}

bool FseTable::Build(const std::vector<int>& frequencies, unsigned accuracy) {
  const std::size_t size = std::size_t{1} << accuracy;
  std::vector<std::size_t> next(frequencies.size());
  std::size_t high = size;
  std::size_t total = 0;
  accuracy_ = accuracy;
  cells_.assign(size, Cell());
  for (std::size_t symbol = 0; symbol < frequencies.size(); ++symbol) {
    const bool rare = frequencies[symbol] < 0;
    next[symbol] = rare ? 1 : static_cast<std::size_t>(frequencies[symbol]);
    total += next[symbol];
    if (total > size) return false;
    if (rare) cells_[--high].symbol = static_cast<std::uint8_t>(symbol);
  }
  if (total != size) return false;
  const std::size_t step = (size >> 1) + (size >> 3) + 3;
  std::size_t at = 0;
  for (std::size_t symbol = 0; symbol < frequencies.size(); ++symbol) {
    for (int i = 0; i < frequencies[symbol]; ++i) {
      cells_[at].symbol = static_cast<std::uint8_t>(symbol);
      do {
        at = (at + step) % size;
      } while (at >= high);
    }
  }
  for (Cell& cell : cells_) {
    const std::size_t state = next[cell.symbol]++;
    cell.bits = static_cast<std::uint8_t>(accuracy - HighestBit(state));
    cell.base = static_cast<std::uint16_t>((state << cell.bits) - size);
  }
  return true;
}

void FseTable::BuildOfOne(std::uint8_t symbol) {
  accuracy_ = 0;
  cells_.assign(1, Cell{symbol, 0, 0});
}

bool FseTable::Read(const ImageBytes& bytes, unsigned most_accuracy, std::size_t most_symbols,
                    std::size_t* size) {
  ForwardBits bits(bytes);
  const unsigned accuracy = bits.Read(4) + 5;
  if (accuracy > most_accuracy) return false;
  std::vector<int> frequencies;
  int left = 1 << accuracy;
  while (left > 0) {
    // Of the values up to left + 1, the lower ones take a bit less.
    const unsigned count = HighestBit(static_cast<unsigned>(left) + 1) + 1;
    const std::uint32_t low = (1U << (count - 1)) - 1;
    const std::uint32_t shorter = (1U << count) - 2 - static_cast<std::uint32_t>(left);
    std::uint32_t value = bits.Read(count);
    if ((value & low) < shorter) {
      bits.Unread(1);
      value &= low;
    } else if (value > low) {
      value -= shorter;
    }
    const int frequency = static_cast<int>(value) - 1;
    left -= frequency < 0 ? 1 : frequency;
    frequencies.push_back(frequency);
    for (std::uint32_t zeros = frequency == 0 ? 3 : 0; zeros == 3;) {
      zeros = bits.Read(2);
      frequencies.insert(frequencies.end(), zeros, 0);
    }
    if (bits.Overran() || frequencies.size() > most_symbols) return false;
  }
  *size = bits.BytesRead();
  return left == 0 && Build(frequencies, accuracy);
}

bool HuffmanTable::Read(const ImageBytes& bytes, std::size_t* size) {
  constexpr unsigned kPlain = 127;
  if (!bytes.Has(0, 1)) return false;
  const auto header = bytes.At<std::uint8_t>(0);
  const bool plain = header > kPlain;
  const std::size_t count = plain ? header - kPlain : 0;
  const std::size_t length = plain ? (count + 1) / 2 : header;
  std::vector<std::uint8_t> weights;
  if (!bytes.Has(1, length)) return false;
  *size = 1 + length;
  if (!plain) return ReadFseWeights(bytes.Part(1, length), &weights) && Build(std::move(weights));
  ReadPlainWeights(bytes.From(1), count, &weights);
  return Build(std::move(weights));
}

bool HuffmanTable::Build(std::vector<std::uint8_t> weights) {
  std::uint64_t total = 0;
  for (const std::uint8_t weight : weights) {
    if (weight > kMostHuffmanBits) return false;
    if (weight > 0) total += std::uint64_t{1} << (weight - 1);
  }
  if (total == 0) return false;
  most_bits_ = HighestBit(total) + 1;
  const std::uint64_t rest = (std::uint64_t{1} << most_bits_) - total;
  if (most_bits_ > kMostHuffmanBits || (rest & (rest - 1)) != 0) return false;
  weights.push_back(static_cast<std::uint8_t>(HighestBit(rest) + 1));
  cells_.clear();
  for (unsigned weight = 1; weight <= most_bits_; ++weight) {
    for (std::size_t symbol = 0; symbol < weights.size(); ++symbol) {
      if (weights[symbol] != weight) continue;
      const Cell cell = {static_cast<std::uint8_t>(symbol),
                         static_cast<std::uint8_t>(most_bits_ + 1 - weight)};
      cells_.insert(cells_.end(), std::size_t{1} << (weight - 1), cell);
    }
  }
  return cells_.size() == std::size_t{1} << most_bits_;
}

bool HuffmanTable::Decode(const ImageBytes& bytes, std::size_t count, std::string* out) const {
  BackwardBits bits;
  if (!bits.Begin(bytes)) return false;
  for (std::size_t i = 0; i < count && !bits.Overran(); ++i) {
    const Cell& cell = cells_[static_cast<std::size_t>(bits.Peek(most_bits_))];
    bits.Skip(cell.bits);
    out->push_back(static_cast<char>(cell.symbol));
  }
  return bits.AtEnd();
}

}  // namespace internal
CUGUEST_END_NAMESPACE

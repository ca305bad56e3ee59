// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kinds of damage, each a function of bytes and of chance, which is the same in every run.

#ifndef CUGUEST_TEST_OBJECTS_CODE_MUTATIONS_H_
#define CUGUEST_TEST_OBJECTS_CODE_MUTATIONS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "test/objects/code/images.h"

namespace module_test {

// SplitMix64.
class Chance {
 public:
  explicit Chance(std::string_view seed) {
    for (const char c : seed) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }

  std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  // 0 where there is nothing to choose from.
  std::size_t Below(std::size_t limit) {
    return limit == 0 ? 0 : static_cast<std::size_t>(Next() % limit);
  }
  unsigned char Byte() { return static_cast<unsigned char>(Next()); }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

using Mutate = Bytes (*)(Bytes bytes, Chance* chance);

struct Mutation {
  const char* name;
  Mutate mutate;
};

namespace mutations {

inline Bytes Truncate(Bytes bytes, Chance* chance) {
  bytes.resize(chance->Below(bytes.size()));
  return bytes;
}

// From `begin` on.
inline Bytes ChangeBytes(Bytes bytes, std::size_t begin, std::size_t end, std::size_t most,
                         Chance* chance) {
  for (std::size_t count = 1 + chance->Below(most); count > 0; --count) {
    bytes[begin + chance->Below(end - begin)] = chance->Byte();
  }
  return bytes;
}

inline Bytes ChangeOne(Bytes bytes, Chance* chance) {
  const std::size_t size = bytes.size();
  return ChangeBytes(std::move(bytes), 0, size, 1, chance);
}

inline Bytes ChangeHeader(Bytes bytes, Chance* chance) {
  const std::size_t size = std::min<std::size_t>(bytes.size(), 64);
  return ChangeBytes(std::move(bytes), 0, size, 4, chance);
}

// Where an ELF file has the headers of its sections and segments.
inline Bytes ChangeTables(Bytes bytes, Chance* chance) {
  const std::size_t size = bytes.size();
  return ChangeBytes(std::move(bytes), size - size / 4, size, 6, chance);
}

// What offsets, sizes and counts do not like to be.
inline Bytes ChangeWord(Bytes bytes, Chance* chance) {
  constexpr std::uint32_t kWords[] = {0,          1,       0xffffffff, 0x7fffffff,
                                      0x80000000, 0x10000, 0x1000,     0xfffffff0};
  const std::uint32_t word = kWords[chance->Below(8)];
  std::memcpy(&bytes[chance->Below(bytes.size() / 4) * 4], &word, sizeof(word));
  return bytes;
}

inline Bytes FlipBit(Bytes bytes, Chance* chance) {
  bytes[chance->Below(bytes.size())] ^= static_cast<unsigned char>(1U << chance->Below(8));
  return bytes;
}

inline Bytes SwapBlocks(Bytes bytes, Chance* chance) {
  const std::size_t size = std::min<std::size_t>(16 + chance->Below(240), bytes.size() / 2);
  const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(chance->Below(size));
  const auto second = bytes.end() - static_cast<std::ptrdiff_t>(size + chance->Below(size / 2));
  if (first + static_cast<std::ptrdiff_t>(size) <= second) {
    std::swap_ranges(first, first + static_cast<std::ptrdiff_t>(size), second);
  }
  return bytes;
}

inline Bytes Fill(Bytes bytes, unsigned char with, Chance* chance) {
  const std::size_t begin = chance->Below(bytes.size());
  const std::size_t size = std::min<std::size_t>(1 + chance->Below(128), bytes.size() - begin);
  std::memset(&bytes[begin], with, size);
  return bytes;
}
inline Bytes FillWithZeros(Bytes bytes, Chance* chance) {
  return Fill(std::move(bytes), 0, chance);
}
inline Bytes FillWithOnes(Bytes bytes, Chance* chance) {
  return Fill(std::move(bytes), 0xff, chance);
}

// All but the first few, by which it is recognised.
inline Bytes Randomise(Bytes bytes, Chance* chance) {
  constexpr std::size_t kKept[] = {0, 4, 8, 16, 20, 64, 128};
  const std::size_t kept = std::min(kKept[chance->Below(7)], bytes.size());
  std::generate(bytes.begin() + static_cast<std::ptrdiff_t>(kept), bytes.end(),
                [chance] { return chance->Byte(); });
  return bytes;
}

inline Bytes Remove(Bytes bytes, Chance* chance) {
  const std::size_t size = 1 + chance->Below(64);
  const auto begin =
      bytes.begin() + static_cast<std::ptrdiff_t>(chance->Below(bytes.size() - size));
  bytes.erase(begin, begin + static_cast<std::ptrdiff_t>(size));
  return bytes;
}

inline Bytes Repeat(Bytes bytes, Chance* chance) {
  const std::size_t size = 1 + chance->Below(64);
  const auto begin =
      bytes.begin() + static_cast<std::ptrdiff_t>(chance->Below(bytes.size() - size));
  const Bytes block(begin, begin + static_cast<std::ptrdiff_t>(size));
  bytes.insert(begin, block.begin(), block.end());
  return bytes;
}

}  // namespace mutations

inline constexpr Mutation kMutations[] = {
    {"truncated", mutations::Truncate},
    {"one byte changed", mutations::ChangeOne},
    {"one bit flipped", mutations::FlipBit},
    {"bytes of the header changed", mutations::ChangeHeader},
    {"bytes of the tables changed", mutations::ChangeTables},
    {"one word changed", mutations::ChangeWord},
    {"blocks swapped", mutations::SwapBlocks},
    {"filled with zeros", mutations::FillWithZeros},
    {"filled with ones", mutations::FillWithOnes},
    {"random", mutations::Randomise},
    {"a piece removed", mutations::Remove},
    {"a piece repeated", mutations::Repeat},
};

}  // namespace module_test

#endif  // CUGUEST_TEST_OBJECTS_CODE_MUTATIONS_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers that follow from a seed alone, on every machine: SplitMix64 (Steele, Lea and
// Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).

#ifndef CUGUEST_TEST_INTEROP_STORM_RANDOM_H_
#define CUGUEST_TEST_INTEROP_STORM_RANDOM_H_

#include <cstdint>

namespace storm {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  static std::uint64_t Mix(std::uint64_t value) {
    value += 0x9e3779b97f4a7c15;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
  }

  // One for each of (a, b, c).
  static Random Of(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    return Random(Mix(Mix(Mix(a) + b) + c));
  }

  std::uint64_t Next() { return Mix(state_++); }
  int Below(int bound) { return static_cast<int>(Next() % static_cast<std::uint64_t>(bound)); }
  bool OneIn(int count) { return Below(count) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace storm

#endif  // CUGUEST_TEST_INTEROP_STORM_RANDOM_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "examples/libraries/product.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>

namespace support {
namespace {

using Numbers = std::vector<std::int64_t>;

constexpr int kLargest = 8;

std::vector<float> RandomMatrix(int n, std::mt19937* random) {
  std::vector<float> matrix(static_cast<std::size_t>(n) * static_cast<std::size_t>(n));
  for (float& element : matrix) {
    element = static_cast<float>(static_cast<int>((*random)() % (2 * kLargest + 1)) - kLargest);
  }
  return matrix;
}

Numbers RandomVector(int n, std::mt19937* random) {
  Numbers x(static_cast<std::size_t>(n));
  for (std::int64_t& element : x) element = (*random)() >> 12;
  return x;
}

Numbers Times(const std::vector<float>& matrix, const Numbers& x) {
  Numbers result(x.size());
  const float* element = matrix.data();
  for (const std::int64_t factor : x) {  // column by column
    for (std::int64_t& sum : result) sum += static_cast<std::int64_t>(*element++) * factor;
  }
  return result;
}

bool AreWhole(const std::vector<float>& values, float largest) {
  for (const float value : values) {
    if (!(std::fabs(value) <= largest) || value != std::trunc(value)) return false;
  }
  return true;
}

}  // namespace

Product::Product(int n, unsigned seed) : n_(n) {
  std::mt19937 random(seed);
  a_ = RandomMatrix(n, &random);
  b_ = RandomMatrix(n, &random);
}

bool Product::IsRight(const std::vector<float>& c) const {
  if (c.size() != a_.size()) return false;
  if (!AreWhole(c, static_cast<float>(kLargest * kLargest * n_))) return false;
  std::random_device seed;
  std::mt19937 random(seed());
  const Numbers x = RandomVector(n_, &random);
  return Times(c, x) == Times(a_, Times(b_, x));
}

}  // namespace support

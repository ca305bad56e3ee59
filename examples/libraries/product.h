// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product of two matrices that can be checked without a tolerance, for the examples of cuBLAS.

#ifndef CUGUEST_EXAMPLES_LIBRARIES_PRODUCT_H_
#define CUGUEST_EXAMPLES_LIBRARIES_PRODUCT_H_

#include <vector>

namespace support {

// C = A B of n x n floats, column by column, as BLAS has them. Their elements are whole
// numbers from -8 to 8, so that a float holds every partial sum exactly (64 n < 2^24): in
// whichever order a library adds, C is either exactly right or wrong.
//
// Threads: the const functions from any.
class Product {
 public:
  // n at most 32768. Another seed, other matrices.
  Product(int n, unsigned seed);

  [[nodiscard]] int n() const { return n_; }
  [[nodiscard]] const std::vector<float>& a() const { return a_; }
  [[nodiscard]] const std::vector<float>& b() const { return b_; }

  // Whether `c` is C. Freivalds' check: C x = A (B x) for random whole numbers x of 20 bits,
  // in whole numbers. A wrong `c` passes in fewer than one of a million cases.
  [[nodiscard]] bool IsRight(const std::vector<float>& c) const;

 private:
  int n_;
  std::vector<float> a_;
  std::vector<float> b_;
};

}  // namespace support

#endif  // CUGUEST_EXAMPLES_LIBRARIES_PRODUCT_H_

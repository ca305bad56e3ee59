// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a fuzz target decodes of its bytes.

#ifndef CUGUEST_TEST_FUZZ_INPUT_H_
#define CUGUEST_TEST_FUZZ_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace cuguest_fuzz {

// Bytes, one after the other; zeros once there are no more.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}

  bool empty() const { return left_ == 0; }
  std::uint8_t Byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  unsigned Below(unsigned limit) { return Byte() % limit; }
  std::uint32_t Word() {
    std::uint32_t word = 0;
    for (int i = 0; i < 4; ++i) word = word << 8 | Byte();
    return word;
  }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
};

}  // namespace cuguest_fuzz

// Ends the process, which libFuzzer reports with the input.
#define FUZZ_CHECK(holds)                                                                  \
  do {                                                                                     \
    if (!(holds)) {                                                                        \
      std::fprintf(stderr, "%s:%d: this does not hold: %s\n", __FILE__, __LINE__, #holds); \
      std::abort();                                                                        \
    }                                                                                      \
  } while (false)

#endif  // CUGUEST_TEST_FUZZ_INPUT_H_

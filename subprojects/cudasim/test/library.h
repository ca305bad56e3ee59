// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of what cuBLAS and the like compute share.

#ifndef CUDASIM_TEST_LIBRARY_H_
#define CUDASIM_TEST_LIBRARY_H_

#include <complex>
#include <cstdint>
#include <vector>

#include "test/facts.h"

namespace cudasim_facts {

// A context that is current.
struct Current {
  Current() { SetStack({context.get()}); }
  ~Current() { SetStack({}); }
  OwnContext context;
};

// Numbers in device memory of the current context.
template <typename T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& values) : count_(values.size()) {
    OK(RAW(cuMemAlloc)(&address_, count_ * sizeof(T)));
    OK(RAW(cuMemcpyHtoD)(address_, values.data(), count_ * sizeof(T)));
  }
  ~OnDevice() { OK(RAW(cuMemFree)(address_)); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  template <typename Type = T>
  Type* get() const {
    return reinterpret_cast<Type*>(address_);
  }
  std::vector<T> Read() const {
    std::vector<T> values(count_);
    OK(RAW(cuMemcpyDtoH)(values.data(), address_, count_ * sizeof(T)));
    return values;
  }

 private:
  const size_t count_;
  CUdeviceptr address_ = 0;
};

// Small whole numbers, so that sums of products are exact; always the same.
template <typename T>
struct Number {
  static T Make(int a, int) { return static_cast<T>(a); }
};
template <typename T>
struct Number<std::complex<T>> {
  static std::complex<T> Make(int a, int b) { return {static_cast<T>(a), static_cast<T>(b)}; }
};
template <typename T>
std::vector<T> Numbers(size_t count, unsigned seed) {
  std::vector<T> values;
  std::uint64_t state = seed;
  const auto next = [&state] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>(state >> 33) % 7 - 3;
  };
  for (size_t i = 0; i < count; ++i) {
    const int a = next();
    values.push_back(Number<T>::Make(a, next()));
  }
  return values;
}

}  // namespace cudasim_facts

#endif  // CUDASIM_TEST_LIBRARY_H_

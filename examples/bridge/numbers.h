// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program of the CUDA runtime has: a thousand numbers in memory of cudaMalloc.

#ifndef CUGUEST_EXAMPLES_BRIDGE_NUMBERS_H_
#define CUGUEST_EXAMPLES_BRIDGE_NUMBERS_H_

#include <cuda_runtime_api.h>

#include <vector>

#include "examples/support/check.h"

namespace host {

class Numbers {
 public:
  static constexpr unsigned kCount = 1000;  // as many as in a Ramp
  static constexpr std::size_t kBytes = kCount * sizeof(float);

  explicit Numbers(const std::vector<float>& values) {
    SUCCEEDS(cudaMalloc(reinterpret_cast<void**>(&values_), kBytes));
    SUCCEEDS(cudaMemcpy(values_, values.data(), kBytes, cudaMemcpyHostToDevice));
  }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  ~Numbers() { SUCCEEDS(cudaFree(values_)); }

  [[nodiscard]] float* get() const { return values_; }
  [[nodiscard]] std::vector<float> Read() const {
    std::vector<float> values(kCount);
    SUCCEEDS(cudaMemcpy(values.data(), values_, kBytes, cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  float* values_ = nullptr;
};

}  // namespace host

#endif  // CUGUEST_EXAMPLES_BRIDGE_NUMBERS_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a caller sees of its thread and of the primary contexts, and what no call may change behind
// its back.

#ifndef CUGUEST_TEST_FAULTS_SURROUNDINGS_H_
#define CUGUEST_TEST_FAULTS_SURROUNDINGS_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <sstream>
#include <string>

#include "cuguest/testing/stack_probe.h"
#include "test/support/capture_mode.h"

namespace cuguest_faults {

struct Surroundings {
  cuguest::testing::StackProbe contexts = cuguest::testing::StackProbe::Take();
  CUstreamCaptureMode mode = cuguest_test::ThreadMode();
  cudaError_t last_error = cudaPeekAtLastError();

  std::string Difference(const Surroundings& later) const {
    std::ostringstream text;
    text << contexts.Difference(later.contexts);
    if (later.mode != mode) text << "capture mode " << mode << " became " << later.mode << "\n";
    if (later.last_error != last_error) {
      text << "last error " << last_error << " became " << later.last_error << "\n";
    }
    return text.str();
  }
};

}  // namespace cuguest_faults

#endif  // CUGUEST_TEST_FAULTS_SURROUNDINGS_H_

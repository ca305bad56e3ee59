// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file that uses the runtime bridge; compiled only, because this test has no CUDA runtime.

#include "cuguest/runtime/error.h"
#include "cuguest/runtime/version.h"

bool HasOldDriver() {
  return cuguest::runtime::RuntimeCodeOf(cuguest::runtime::CanWork()) ==
         cudaErrorInsufficientDriver;
}

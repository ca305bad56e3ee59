// SPDX-License-Identifier: Apache-2.0

#ifndef CUDASIM_RUNTIME_NULL_H_
#define CUDASIM_RUNTIME_NULL_H_

#include "driver/panic.h"

namespace cudasim::runtime {

[[noreturn]] inline void PanicNull(const char* call) {
  cudasim::driver::Panic(
      "%s: a null argument where a real runtime crashes (measured on an H200, driver 580.159.04)",
      call);
}

}  // namespace cudasim::runtime

#endif  // CUDASIM_RUNTIME_NULL_H_

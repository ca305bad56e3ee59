// SPDX-License-Identifier: Apache-2.0

#ifndef CUGUEST_LIB_SIM_RUNTIME_NULL_H_
#define CUGUEST_LIB_SIM_RUNTIME_NULL_H_

#include "lib/sim/panic.h"

namespace cuguest_sim_runtime {

[[noreturn]] inline void PanicNull(const char* call) {
  cuguest_sim::Panic(
      "%s: a null argument where a real runtime crashes (measured on an H200, driver 580.159.04)",
      call);
}

}  // namespace cuguest_sim_runtime

#endif  // CUGUEST_LIB_SIM_RUNTIME_NULL_H_

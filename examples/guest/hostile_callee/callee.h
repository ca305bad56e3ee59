// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the library calls: a codec, a solver, a callback of its user's. It is a library of its own,
// which the host loads.

#ifndef CUGUEST_EXAMPLES_GUEST_HOSTILE_CALLEE_CALLEE_H_
#define CUGUEST_EXAMPLES_GUEST_HOSTILE_CALLEE_CALLEE_H_

#include <cuda.h>

#include "cuguest/driver.h"

struct CalleeContexts {
  CUcontext c;        // the callee's own
  CUcontext p;        // the device's primary, which the CUDA runtime works in
  CUcontext library;  // the one that the library works in
};

// What it exports, under the names of the faults: each returns whether its calls succeeded.
using CalleeFault = bool(const cuguest::Driver& driver, const CalleeContexts& contexts);

#endif  // CUGUEST_EXAMPLES_GUEST_HOSTILE_CALLEE_CALLEE_H_

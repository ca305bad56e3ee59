// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the library calls: a codec, a solver, a callback of its user's. It is a library of its own,
// which the host loads.

#ifndef CUGUEST_EXAMPLES_GUEST_HOSTILE_CALLEE_CALLEE_H_
#define CUGUEST_EXAMPLES_GUEST_HOSTILE_CALLEE_CALLEE_H_

#include <cuda.h>

#include "cuguest/driver.h"

namespace callee {

struct Contexts {
  CUcontext c;        // the callee's own
  CUcontext p;        // the device's primary, which the CUDA runtime works in
  CUcontext library;  // the one that the library works in
};

enum class Fault {
  kReplacesTop,
  kLeaksPush,
  kLeaksLibrarysPush,
  kPopsOnce,
  kPopsTwice,
  kDestroysContext,
};

// What it exports: commits the fault; false if a call failed.
#define CALLEE_ENTRY "CalleeMisbehave"
using MisbehaveFunction = bool (*)(const cuguest::Driver& driver, Fault fault,
                                   const Contexts& contexts);

}  // namespace callee

#endif  // CUGUEST_EXAMPLES_GUEST_HOSTILE_CALLEE_CALLEE_H_

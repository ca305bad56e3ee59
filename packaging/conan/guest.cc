// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Works with a driver and without one.

#include <cstdio>

#include "cuguest/no_context_guard.h"
#include "cuguest/version.h"

int main() {
  const cuguest::NoContextGuard guard;
  std::printf("cuguest %d.%d.%d: %d\n", CUGUEST_VERSION_MAJOR, CUGUEST_VERSION_MINOR,
              CUGUEST_VERSION_PATCH, guard.result());
}

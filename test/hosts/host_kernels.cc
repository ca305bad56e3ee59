// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The simulation does not execute kernels: host functions run in place of the guest's. For a host
// that is no C++ program.

#include "test/runtime/host_kernels.h"

extern "C" __attribute__((visibility("default"))) void RegisterHostKernels() {
  cuguest_runtime_test::HostKernels();
}

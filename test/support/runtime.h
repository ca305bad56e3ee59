// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For test programs that are linked with the CUDA runtime.

#ifndef CUGUEST_TEST_SUPPORT_RUNTIME_H_
#define CUGUEST_TEST_SUPPORT_RUNTIME_H_

#include "subprojects/cudasim/test/support/runtime.h"
#include "test/support/test.h"

#endif  // CUGUEST_TEST_SUPPORT_RUNTIME_H_

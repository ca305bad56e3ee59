// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The header under test, with the headers of any toolkit.

#ifndef CUGUEST_TEST_RUNTIME_EXECUTION_CONTEXT_H_
#define CUGUEST_TEST_RUNTIME_EXECUTION_CONTEXT_H_

#include "subprojects/cudasim/test/support/execution_context.h"

#define CUGUEST_RUNTIME_DECLARES_EXECUTION_CONTEXTS
#include "cuguest/runtime/execution_context.h"

#endif  // CUGUEST_TEST_RUNTIME_EXECUTION_CONTEXT_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every Boost.Test binary of the suites shares: the runner, with its decorators, and contexts.

#ifndef CUDASIM_TEST_SUPPORT_TEST_H_
#define CUDASIM_TEST_SUPPORT_TEST_H_

#include <cuda.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "test/support/own_context.h"
#include "test/support/runner.h"

#endif  // CUDASIM_TEST_SUPPORT_TEST_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every public operation that makes calls of the driver or the runtime, for the walk over their
// faults: the tables of the bridge (test/runtime/calls.h) and those of the headers below it and of
// the C API. test/headers/calls_test.py fails where a public function is in none of them.

#ifndef CUGUEST_TEST_FAULTS_OPERATIONS_H_
#define CUGUEST_TEST_FAULTS_OPERATIONS_H_

#include <vector>

#include "test/runtime/calls.h"

namespace cuguest_faults {

using cuguest_runtime_test::Call;
using cuguest_runtime_test::Outcome;
using cuguest_runtime_test::Things;

// Headers of tiers 1 and 2.
const std::vector<Call>& CallsOfCore();

// c.h.
const std::vector<Call>& CallsOfC();

}  // namespace cuguest_faults

#endif  // CUGUEST_TEST_FAULTS_OPERATIONS_H_

// SPDX-License-Identifier: Apache-2.0
//
// What every Boost.Test binary of the suites shares: the decorators below, and, from
// main.cc, a fixture around each case that empties the thread's stack of contexts,
// and fails the case if it is not empty afterwards.

#ifndef CUDASIM_TEST_SUPPORT_TEST_H_
#define CUDASIM_TEST_SUPPORT_TEST_H_

#include <cuda.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "test/support/own_context.h"

namespace cudasim_test {

// Decorators: BOOST_AUTO_TEST_CASE(name, *OnlySim()). A case that does not apply is
// reported as skipped, with the reason; a binary whose every case was skipped ends
// with 77.
boost::unit_test::precondition OnlyIf(bool (*applies)(), const char* reason);
boost::unit_test::precondition OnlySim();
boost::unit_test::precondition OnlyReal();
boost::unit_test::precondition NeedsDevices(int count);

// The case needs a driver of CUDA `version` (12040) or newer, because `why`:
//
//   BOOST_AUTO_TEST_CASE(lists_kernels, *NeedsDriver(12040, "cuLibraryEnumerateKernels"))
//
// `why` names what older drivers lack: an entry or the documented behaviour.
boost::unit_test::precondition NeedsDriver(int version, const char* why);
// The case shows what such an older driver does.
boost::unit_test::precondition NeedsDriverBefore(int version, const char* why);

// For a line of a case that such a driver would fail.
bool HasDriver(int version);

// Called while the program loads: it is of no use on the simulation, and ends there with 77
// before it begins. Returns true.
bool NeedRealDriver(const char* reason);
// The same, for a driver that is older than `version`.
bool NeedDriver(int version, const char* why);

// Makes the thread's stack exactly `entries`, bottom first.
void SetStack(const std::vector<CUcontext>& entries);
// The thread's stack down to a destroyed context, if there is one, bottom first. The stack is left
// as it is.
std::vector<CUcontext> GetStack();

}  // namespace cudasim_test

#endif  // CUDASIM_TEST_SUPPORT_TEST_H_

// SPDX-License-Identifier: Apache-2.0
//
// What every Boost.Test binary of the suites shares: the decorators below, and, from
// main.cc, a fixture around each case that empties the thread's stack of contexts,
// and fails the case if it is not empty afterwards or if a guard reported an incident
// that the case did not ask for.

#ifndef CUGUEST_TEST_SUPPORT_TEST_H_
#define CUGUEST_TEST_SUPPORT_TEST_H_

#include <cuda.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "cuguest/driver.h"
#include "cuguest/incident.h"
#include "subprojects/cudasim/test/support/own_context.h"

namespace cuguest_test {

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

// The driver under test; main() has made sure that there is one.
const cuguest::Driver& TheDriver();

// The incidents that guards of this process reported since the case began or since the
// last call, from every thread. A case that takes none must have caused none.
std::vector<cuguest::Incident> TakeIncidents();

using cudasim_test::OwnContext;

// Makes the thread's stack exactly `entries`, bottom first.
void SetStack(const std::vector<CUcontext>& entries);
// The thread's stack, bottom first; it is left as it is.
std::vector<CUcontext> GetStack();

// Sim::ResetCalls() on a thread that has seen no context current: from there on a guard by
// ContextRef makes the 3 or 4 calls that the headers count, and an Acquire function those of its
// first time.
void BeginCount();

}  // namespace cuguest_test

#endif  // CUGUEST_TEST_SUPPORT_TEST_H_

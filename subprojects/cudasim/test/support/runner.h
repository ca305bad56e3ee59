// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the cases of a Boost.Test program: settles which driver is under test, empties the thread's
// stack of contexts around each case, and prints what a report needs:
//
//   driver: simulated, CUDA 13.0, 2 devices
//   ...
//   skipped: CASE: REASON
//   cases: 12 passed, 0 failed, 1 skipped
//
// CUDASIM_TEST_DRIVER says which driver there must be, "sim" or "real"; another one, or
// none, is a failure. Without the variable a missing driver is a skip (77). Boost.Test
// itself returns 0 when every case was skipped, which would turn a lost GPU green.

#ifndef CUDASIM_TEST_SUPPORT_RUNNER_H_
#define CUDASIM_TEST_SUPPORT_RUNNER_H_

#include <cuda.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

namespace cudasim_test {

// The main of a test program. A case fails if it leaves contexts on the stack. `before` and `after`
// are called around each case, with an empty stack; null: nothing. Ends with the destruction of the
// contexts that cases used again.
int RunCases(int argc, char** argv, void (*before)() = nullptr, void (*after)() = nullptr);

// Decorators: BOOST_AUTO_TEST_CASE(name, *OnlySim()). A case that does not apply is
// reported as skipped, with the reason; a binary whose every case was skipped ends
// with 77.
boost::unit_test::precondition OnlyIf(bool (*applies)(), const char* reason);
boost::unit_test::precondition OnlySim();
boost::unit_test::precondition OnlyReal();
boost::unit_test::precondition NeedsDevices(int count);
boost::unit_test::precondition NeedsPeers();  // two devices, and each reaches the other's memory
boost::unit_test::precondition NeedsHostPools();
// A pool on the host's first NUMA node.
CUresult CreateHostPool(CUmemoryPool* pool);

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

// In a case that finds out as it runs that the driver refuses what it is about: if no check of it
// fails, it is reported as skipped, with the reason, and not as passed.
void SayIsSkipped(const std::string& reason);

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

// Throws if a test cannot do what it needs. Not an assertion of Boost.Test: fixtures of whole
// suites, which are no test cases, and other threads come here too.
void Require(CUresult code, const char* doing);

}  // namespace cudasim_test

#endif  // CUDASIM_TEST_SUPPORT_RUNNER_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every Boost.Test binary of the suites shares: cudasim's runner, and in addition a case fails
// if a guard reported an incident that the case did not ask for.

#ifndef CUGUEST_TEST_SUPPORT_TEST_H_
#define CUGUEST_TEST_SUPPORT_TEST_H_

#include <cuda.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "cuguest/incident.h"
#include "cuguest/objects/driver.h"
#include "subprojects/cudasim/test/support/own_context.h"
#include "subprojects/cudasim/test/support/runner.h"

namespace cuguest_test {

using cudasim_test::GetStack;
using cudasim_test::NeedDriver;
using cudasim_test::NeedRealDriver;
using cudasim_test::NeedsDevices;
using cudasim_test::NeedsDriver;
using cudasim_test::NeedsDriverBefore;
using cudasim_test::NeedsHostPools;
using cudasim_test::NeedsPeers;
using cudasim_test::OnlyIf;
using cudasim_test::OnlyReal;
using cudasim_test::OnlySim;
using cudasim_test::OwnContext;
using cudasim_test::SayIsSkipped;
using cudasim_test::SetStack;

// The driver under test; main() has made sure that there is one.
const cuguest::ObjectDriver& TheDriver();

// For a line of a case that such a driver would fail. Makes no driver call.
inline bool HasDriver(int version) { return TheDriver().version >= version; }

// The incidents that guards of this process reported since the case began or since the
// last call, from every thread. A case that takes none must have caused none.
std::vector<cuguest::Incident> TakeIncidents();

// While it exists, incidents have no listener but the case's own, and the case may cause them.
// Recording one asks for memory. Not for several threads at a time.
class [[nodiscard]] Unrecorded {
 public:
  Unrecorded();
  Unrecorded(const Unrecorded&) = delete;
  Unrecorded& operator=(const Unrecorded&) = delete;
  ~Unrecorded();
};

// Sim::ResetCalls() on a thread that has seen no context current: from there on a guard by
// ContextRef makes the 3 or 5 calls that the headers count, and an Acquire function those of its
// first time.
void BeginCount();

}  // namespace cuguest_test

#endif  // CUGUEST_TEST_SUPPORT_TEST_H_

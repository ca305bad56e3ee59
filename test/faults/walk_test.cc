// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any call of the driver or the runtime may fail, at any point of any public operation, and after
// it one more: the caller's stack, capture mode and last error are what they were, the primary
// contexts too, and nothing is leaked but what the driver refuses to take back; somebody is told;
// and the operation does its work when it is called again.
//
// So may any request for host memory, singly: by std::bad_alloc or a status, and nothing is leaked.
//
// Without the handles of toolkit libraries (libraries/library_test.cc): most calls beneath them are
// the library's own, and what it makes of their failure is its own, too.

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "test/faults/walk.h"

namespace {

using namespace cuguest_faults;
using cuguest_runtime_test::InEveryState;
using cuguest_runtime_test::SetUp;
using cuguest_test::OwnContext;

Depth DepthOfRun() {
  if (std::getenv("CUGUEST_TEST_FAULT_PAIRS") != nullptr) return Depth::kPairs;
  if (std::getenv("CUGUEST_TEST_HOST_MEMORY") != nullptr) return Depth::kHostMemory;
  return Depth::kSingles;
}

// CUGUEST_TEST_FAULT_PAIRS=N: one of N.
size_t OneSecondOf() {
  const char* const number = std::getenv("CUGUEST_TEST_FAULT_PAIRS");
  return std::max(1UL, number == nullptr ? 1 : std::strtoul(number, nullptr, 10));
}

void WalkOver(const char* tables, const std::vector<Call>& operations) {
  Walk walk(DepthOfRun(), OneSecondOf());
  for (const Call& operation : operations) {
    // What the driver refused to take back ends with the contexts.
    OwnContext::DestroyIdle();
    const Things things;
    InEveryState(things, [&](const char* state, const SetUp& set_stack) {
      walk.Over(operation, things, state, set_stack);
    });
  }
  std::printf(
      "%s: %zu operations in a state, %zu single faults and %zu pairs, %zu requests for host "
      "memory refused, %zu broken\n",
      tables, walk.operations(), walk.singles(), walk.pairs(), walk.allocations(), walk.broken());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(walk, *cuguest_test::OnlySim())

BOOST_AUTO_TEST_CASE(of_the_core) { WalkOver("the core", CallsOfCore()); }

BOOST_AUTO_TEST_CASE(of_the_c_api) { WalkOver("the C API", CallsOfC()); }

BOOST_AUTO_TEST_CASE(of_memory_streams_and_the_bridge) {
  WalkOver("memory, streams and the bridge", cuguest_runtime_test::Calls());
}

BOOST_AUTO_TEST_CASE(of_code) { WalkOver("code", cuguest_runtime_test::CallsOfCode()); }

BOOST_AUTO_TEST_CASE(of_what_the_runtime_refuses) {
  WalkOver("what the runtime refuses", cuguest_runtime_test::CallsThatTheRuntimeRefuses());
}

BOOST_AUTO_TEST_SUITE_END()

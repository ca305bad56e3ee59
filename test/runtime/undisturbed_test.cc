// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// No call of the bridge creates a primary context, changes the current one or the stack
// beneath, or touches the runtime's last error: whatever was current, whatever the last error
// was, and whether the call succeeds or not. The exceptions are those that contracts name.

#include "cudasim/sim.h"
#include "cuguest/runtime/error.h"
#include "test/runtime/calls.h"

namespace {

using namespace cuguest_runtime_test;
using cudasim::Sim;
using cudasim::SimLive;

// The runtime keeps it until it is taken.
void SetLastError(cudaError_t error) {
  static_cast<void>(cudaGetLastError());
  if (error != cudaSuccess) BOOST_CHECK_EQUAL(cudaSetDevice(4711), error);
  BOOST_CHECK_EQUAL(cudaPeekAtLastError(), error);
}

// Undisturbed when the call has returned, and again when the object that it gave is gone.
void Run(const Call& call, const Things& things) {
  const SimLive live = Sim::Live();
  const Undisturbed until_the_end;
  Outcome outcome = [&] {
    const Undisturbed by_the_call;
    return call.make(things);
  }();
  outcome.object.reset();
  BOOST_TEST((Sim::Live() == live), "something was left behind");
  if (call.expected.has_value()) {
    BOOST_TEST((outcome.status.code() == *call.expected), outcome.status.ToString());
  }
}

void RunAll(const std::vector<Call>& calls, cudaError_t last_error) {
  const Things things;
  InEveryState(things, [&](const char*, const SetUp& set_stack) {
    for (const Call& call : calls) {
      set_stack();
      SetLastError(last_error);
      BOOST_TEST_CONTEXT(call.names) { Run(call, things); }
    }
  });
  SetLastError(cudaSuccess);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(undisturbed)

BOOST_AUTO_TEST_CASE(no_call_disturbs) { RunAll(Calls(), cudaSuccess); }

BOOST_AUTO_TEST_CASE(no_call_with_code_disturbs) { RunAll(CallsOfCode(), cudaErrorInvalidDevice); }

BOOST_AUTO_TEST_CASE(no_call_takes_or_changes_a_last_error) {
  RunAll(Calls(), cudaErrorInvalidDevice);
}

BOOST_AUTO_TEST_CASE(what_the_runtime_refuses_leaves_no_error) {
  RunAll(CallsThatTheRuntimeRefuses(), cudaSuccess);
}

// Nobody can set an error of the runtime again: what was there is lost to the failing call's.
BOOST_AUTO_TEST_CASE(what_the_runtime_refuses_overwrites_an_error_that_was_there) {
  const Things things;
  InEveryState(things, [&](const char*, const SetUp& set_stack) {
    for (const Call& call : CallsThatTheRuntimeRefuses()) {
      set_stack();
      SetLastError(cudaErrorInvalidDevice);
      BOOST_TEST_CONTEXT(call.names) {
        const cuguest::testing::UndisturbedScope stack(
            [](const std::string& difference) { BOOST_ERROR(difference); });
        const absl::Status status = call.make(things).status;
        if (!status.ok()) {
          BOOST_TEST((cuguest::runtime::RuntimeCodeOf(status) == cudaPeekAtLastError()));
        }
        BOOST_TEST((cudaPeekAtLastError() != cudaErrorInvalidDevice));
      }
    }
  });
  SetLastError(cudaSuccess);
}

BOOST_AUTO_TEST_SUITE_END()

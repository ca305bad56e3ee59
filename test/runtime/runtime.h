// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of the bridge share. They call both APIs: the driver's through RAW, the
// runtime's as linked.

#ifndef CUGUEST_TEST_RUNTIME_RUNTIME_H_
#define CUGUEST_TEST_RUNTIME_RUNTIME_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "cuguest/testing/stack_probe.h"
#include "test/support/driver_calls.h"
#include "test/support/runtime.h"

namespace cuguest_runtime_test {

using cuguest::ContextRef;
using cuguest::Device;
using cuguest_test::CurrentContext;
using cuguest_test::GetStack;
using cuguest_test::OnAnotherThread;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;

inline Device First() { return Device::Borrow(0); }

// The test's own reference to a primary context; it is reset with the last one.
inline cuguest::PrimaryContext RetainPrimary(Device device = First()) {
  auto primary = cuguest::PrimaryContext::Retain(device);
  BOOST_TEST_REQUIRE(primary.ok(), cuguest::ToStatus(primary).ToString());
  return primary;
}

inline bool PrimaryIsActive(Device device = First()) {
  const auto state = cuguest::PrimaryContext::Query(device);
  BOOST_TEST_REQUIRE(state.ok(), cuguest::ToStatus(state).ToString());
  return state.active;
}

// The runtime keeps the reference that it took when it first used a primary context, so a case
// that needs an inactive one releases it first.
inline void EndPrimary(Device device = First()) {
  OK(RAW(cuDevicePrimaryCtxReset)(device.get()));
  BOOST_TEST(!PrimaryIsActive(device));
}

// Fails the case unless, at its end, this thread's stack and last error and every primary
// context are what they were.
class Undisturbed {
 public:
  Undisturbed()
      : error_(cudaPeekAtLastError()),
        probe_([](const std::string& difference) { BOOST_ERROR(difference); }) {}
  ~Undisturbed() { BOOST_CHECK_EQUAL(cudaPeekAtLastError(), error_); }

 private:
  cudaError_t error_;
  cuguest::testing::UndisturbedScope probe_;
};

}  // namespace cuguest_runtime_test

#endif  // CUGUEST_TEST_RUNTIME_RUNTIME_H_

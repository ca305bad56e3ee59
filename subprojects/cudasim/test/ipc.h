// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the *ipc_facts_test.cc share: a handle on its way to a child.

#ifndef CUDASIM_TEST_IPC_H_
#define CUDASIM_TEST_IPC_H_

#include <string>
#include <vector>

#include "test/support/child.h"

namespace cudasim_facts {

// A variable of the child's environment.
inline constexpr char kHandle[] = "CUDASIM_TEST_IPC_HANDLE";

// Runs a CHILD that calls ReceivedHandle().
template <typename Handle>
cudasim_test::Ended RunWithHandle(const std::string& child, const Handle& handle,
                                  std::vector<std::string> environment = {}) {
  environment.push_back(cudasim_test::VariableOf(kHandle, handle));
  return cudasim_test::RunSelf({"--child=" + child}, environment);
}

template <typename Handle>
Handle ReceivedHandle() {
  return cudasim_test::ReadVariable<Handle>(kHandle);
}

}  // namespace cudasim_facts

#endif  // CUDASIM_TEST_IPC_H_

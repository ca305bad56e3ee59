// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the *ipc_facts_test.cc share: a handle on its way to a child.

#ifndef CUDASIM_TEST_IPC_H_
#define CUDASIM_TEST_IPC_H_

#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

#include "test/support/child.h"

namespace cudasim_facts {

// A variable of the child's environment.
inline constexpr char kHandle[] = "CUDASIM_TEST_IPC_HANDLE";

// Runs a CHILD that calls ReceivedHandle(). A handle holds zeros: two letters stand for each byte.
template <typename Handle>
cudasim_test::Ended RunWithHandle(const std::string& child, const Handle& handle,
                                  std::vector<std::string> environment = {}) {
  std::string text = kHandle + std::string("=");
  for (const char byte : handle.reserved) {
    const auto bits = static_cast<unsigned char>(byte);
    text += static_cast<char>('a' + (bits >> 4));
    text += static_cast<char>('a' + (bits & 15));
  }
  environment.push_back(text);
  return cudasim_test::RunSelf({"--child=" + child}, environment);
}

template <typename Handle>
Handle ReceivedHandle() {
  const char* text = std::getenv(kHandle);
  Handle handle = {};
  for (auto& byte : handle.reserved) {
    byte = static_cast<std::remove_reference_t<decltype(byte)>>((text[0] - 'a') << 4 |
                                                                (text[1] - 'a'));
    text += 2;
  }
  return handle;
}

}  // namespace cudasim_facts

#endif  // CUDASIM_TEST_IPC_H_

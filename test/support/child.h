// SPDX-License-Identifier: Apache-2.0
//
// For a Boost.Test program some of whose cases need a process of their own: one that
// has not called cuInit, or one that is to abort.
//
//   CHILD(pushes_a_destroyed_context) {
//     CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
//     ...
//     return 0;  // the exit code
//   }
//   BOOST_AUTO_TEST_CASE(...) {
//     const cuguest_test::Ended ended = cuguest_test::RunChild("pushes_a_destroyed_context");
//
// The child is this very program, run with --child=NAME. It never reaches main(), so
// nothing has called cuInit there. A program of nothing but such cases is written with
// scenario.h instead.

#ifndef CUGUEST_TEST_SUPPORT_CHILD_H_
#define CUGUEST_TEST_SUPPORT_CHILD_H_

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "test/support/scenario.h"

namespace cuguest_test {

// Ends the process with the child's exit code if this process is that child.
inline bool RunIfChild(const char* name, int (*child)()) {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string line((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::string wanted = std::string(1, '\0') + "--child=" + name + '\0';
  if (line.find(wanted) != std::string::npos) std::exit(child());
  return true;
}

inline Ended RunChild(const std::string& name) { return RunSelf({"--child=" + name}); }

}  // namespace cuguest_test

#define CHILD(name)                                                                               \
  static int Child_##name();                                                                      \
  static const bool ran_##name [[maybe_unused]] = cuguest_test::RunIfChild(#name, &Child_##name); \
  static int Child_##name()

// The child ran to its end and found everything as expected.
#define REQUIRE_CHILD_PASSES(name)                                  \
  do {                                                              \
    const cuguest_test::Ended ended = cuguest_test::RunChild(name); \
    BOOST_TEST(ended.code == 0, name << ": " << ended.output);      \
  } while (false)

#endif  // CUGUEST_TEST_SUPPORT_CHILD_H_

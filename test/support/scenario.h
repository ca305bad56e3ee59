// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For what needs a process of its own: exit order, fork, a lost device, a missing
// driver. A scenario runs in a fresh copy of the test program, and what it prints and
// how it ends is checked by the parent.
//
//   void Ends() { CHECK(1 + 1 == 2); }                     // in the child
//   int main(int argc, char** argv) {
//     return cuguest_test::RunScenarios(argc, argv, {{"ends", &Ends}});
//   }
//
// The program's arguments: none for all scenarios, --run_test=NAME (or */NAME, as Boost.Test has
// it) for one, and NAME in the child.
//
// A program of Boost.Test with a few such cases writes them with CHILD of child.h, which comes
// with this header.

#ifndef CUGUEST_TEST_SUPPORT_SCENARIO_H_
#define CUGUEST_TEST_SUPPORT_SCENARIO_H_

#include <sys/types.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "subprojects/cudasim/test/support/child.h"

namespace cuguest_test {

using cudasim_test::CheckFailed;
using cudasim_test::Ended;
using cudasim_test::MakeContext;
using cudasim_test::ReadVariable;
using cudasim_test::RunChild;
using cudasim_test::RunSelf;
using cudasim_test::VariableOf;

enum class On { kAnyDriver, kSimulation, kRealDriver };

struct Scenario {
  const char* name;
  void (*run)();
  // The lines the child must print, in this order, with others between them.
  std::vector<std::string> lines = {};
  int code = 0;
  On on = On::kAnyDriver;
  std::vector<std::string> environment = {};
  // Why the scenario cannot run here; empty if it can.
  std::string (*skip)() = nullptr;
};

// Runs `in_child` in a child that `make` has made, which must end well. Returns when it has ended.
void Fork(const std::function<void()>& in_child, pid_t (*make)() = &fork);

int RunScenarios(int argc, char** argv, const std::vector<Scenario>& scenarios);

}  // namespace cuguest_test

#endif  // CUGUEST_TEST_SUPPORT_SCENARIO_H_

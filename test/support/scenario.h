// SPDX-License-Identifier: Apache-2.0
//
// For what needs a process of its own: exit order, fork, a lost device, a missing
// driver. A scenario runs in a fresh copy of the test program, and what it prints and
// how it ends is checked by the parent.
//
//   void Ends() { CHECK(1 + 1 == 2); }                     // in the child
//   int main(int argc, char** argv) {
//     return cuguest_test::RunScenarios(argc, argv, {{"ends", &Ends}});
//   }

#ifndef CUGUEST_TEST_SUPPORT_SCENARIO_H_
#define CUGUEST_TEST_SUPPORT_SCENARIO_H_

#include <cuda.h>

#include <string>
#include <vector>

namespace cuguest_test {

// How a child ended: an exit code, or minus the signal.
struct Ended {
  int code = 0;
  std::string output;  // stdout and stderr together
};

// Runs this program anew with `arguments`; "NAME=VALUE" entries of `environment` are
// set, and "NAME" ones unset.
Ended RunSelf(const std::vector<std::string>& arguments,
              const std::vector<std::string>& environment = {});

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

int RunScenarios(int argc, char** argv, const std::vector<Scenario>& scenarios);

// For the child: a context of its own, floating. Initialises the driver.
CUcontext MakeContext();

// Prints the place and what was expected, and ends the child with 1.
void CheckFailed(const char* file, int line, const char* what);

}  // namespace cuguest_test

#define CHECK(condition)                                                           \
  do {                                                                             \
    if (!(condition)) ::cuguest_test::CheckFailed(__FILE__, __LINE__, #condition); \
  } while (false)

#endif  // CUGUEST_TEST_SUPPORT_SCENARIO_H_

// SPDX-License-Identifier: Apache-2.0
//
// An embedder's test: linked with cuguest-testing, run on the installed simulation.

#include "cuguest/driver.h"
#include "cuguest/testing/sim.h"

int main() {
  if (!cuguest::testing::Sim::IsActive()) return 1;
  return cuguest::Driver::GetInitialized().ok() ? 0 : 2;
}

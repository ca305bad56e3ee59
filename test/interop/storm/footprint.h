// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What there is in the process, as far as the driver tells: exactly on the simulation, by
// the free memory of the devices on a real one.

#ifndef CUGUEST_TEST_INTEROP_STORM_FOOTPRINT_H_
#define CUGUEST_TEST_INTEROP_STORM_FOOTPRINT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "cudasim/sim.h"
#include "test/interop/storm/world.h"

namespace storm {

class Footprint {
 public:
  [[nodiscard]] static Footprint Take(const World& world);

  // What `later` has more, or less; empty if nothing.
  [[nodiscard]] std::string Difference(const Footprint& later) const;

 private:
  cudasim::SimLive live_ = {};
  std::vector<std::size_t> free_bytes_;  // by device
};

// What the process takes from the system.
struct ProcessSize {
  std::size_t resident = 0;  // bytes
  std::size_t descriptors = 0;

  [[nodiscard]] static ProcessSize Now();
};

// What is left when a world has ended; empty if nothing is.
std::string WhatIsLeft();

}  // namespace storm

#endif  // CUGUEST_TEST_INTEROP_STORM_FOOTPRINT_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a storm is: the same options on the same driver are the same storm.

#ifndef CUGUEST_TEST_INTEROP_STORM_OPTIONS_H_
#define CUGUEST_TEST_INTEROP_STORM_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace storm {

// A fault that the storm commits itself, to see that it is found: see plant.h.
struct Plant {
  std::string kind;
  std::uint64_t index = 0;  // of the operation after which it is committed
};

struct Options {
  std::uint64_t seed = 1;
  int threads = 16;
  // Of all threads together. The first n of a longer storm are those of the same storm of n.
  std::uint64_t operations = 20000;
  int contexts = 6;  // that live throughout, beside the primary ones
  // One operation in so many makes or ends a context, which takes a GPU 0.1 s.
  int heavy = 0;
  // One thread runs at a time, in the order of the operations' indices.
  bool lockstep = false;
  std::vector<int> only;             // the threads that run; empty: all
  std::vector<std::string> without;  // operations that are left out
  std::optional<Plant> plant;

  // Of the supervisor.
  int seeds = 3;       // storms, of seed, seed + 1, ...
  double seconds = 0;  // more than 0: as many as begin in that time
  bool shrink = true;  // look for the shortest storm that fails
  // Of the process that is one storm.
  bool child = false;

  [[nodiscard]] bool Runs(int thread) const;
  [[nodiscard]] bool Does(const std::string& operation) const;
  // The command line of one storm.
  [[nodiscard]] std::vector<std::string> Arguments() const;
};

// Nothing, and a message on stdout, where the command line is wrong.
std::optional<Options> ParseOptions(int argc, char** argv);

}  // namespace storm

#endif  // CUGUEST_TEST_INTEROP_STORM_OPTIONS_H_

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sequence of calls: what is played is decided by the seed and the answers so far.

#ifndef CUDASIM_CONFORMANCE_SEQUENCE_H_
#define CUDASIM_CONFORMANCE_SEQUENCE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "conformance/call.h"

namespace conformance {

struct Step {
  int thread = 0;
  const Call* call = nullptr;
  Values values;
};

// "T1 cuStreamCreate S2 1"
std::string ToText(const Step& step);
Step ToStep(const std::string& text);

struct Answer {
  // "201 -": the code and the outputs.
  std::string text;
  // What is current on the calling thread, and the primary context's state: " C2 1:8".
  std::string state;
};

// Which calls are drawn, how often, and which are of one room. A recording keeps its own, so that a
// call which is added to the table does not make it worthless.
struct PlanRow {
  const Call* call = nullptr;
  size_t room = 0;
  int weight = 0;
};
using Plan = std::vector<PlanRow>;
Plan PlanOfAllCalls();

// Of all sequences of a process.
struct Statistics {
  struct Time {
    long long calls = 0;
    double seconds = 0;
  };
  std::map<std::string, Time> times;             // by call
  std::map<std::string, long long> transitions;  // "state, call, result"
};

// Sequence
//
// From a clean state, to which the end of Play() returns. The order of Play's steps: those of
// `script`, or as drawn from the seed.
class Sequence {
 public:
  Sequence(std::uint64_t seed, std::uint64_t number, Cost cost, Plan plan = {})
      : seed_(seed), number_(number), cost_(cost), plan_(std::move(plan)) {}

  // `see` is told each step and its answer, and ends the sequence by returning false.
  using See = std::function<bool(const Step&, const Answer&)>;
  void Play(int calls, const See& see, Statistics* statistics) const;
  // `announce` is told each step before it is played.
  void BeforeEach(std::function<void(const Step&)> announce) { announce_ = std::move(announce); }
  // Leaves out steps whose objects are not there.
  void PlayScript(const std::vector<Step>& script, const See& see) const;

 private:
  std::uint64_t seed_;
  std::uint64_t number_;
  Cost cost_;
  Plan plan_;
  std::function<void(const Step&)> announce_ = [](const Step&) {};
};

// Most sequences are cheap. Recordings depend on which.
Cost CostOf(std::uint64_t number);

}  // namespace conformance

#endif  // CUDASIM_CONFORMANCE_SEQUENCE_H_

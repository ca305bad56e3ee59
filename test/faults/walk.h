// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The walk over the faults of an operation: each call that it makes of the driver or the runtime
// fails in turn, with each plausible code, and then a second one among those that it makes after
// the first has failed. Which calls there are, the operation itself shows by a run without a fault.
// Or each request for host memory that it makes is refused in turn.

#ifndef CUGUEST_TEST_FAULTS_WALK_H_
#define CUGUEST_TEST_FAULTS_WALK_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cudasim/sim.h"
#include "cuguest/incident.h"
#include "test/faults/operations.h"

namespace cuguest_faults {

struct MadeCall {
  bool of_runtime;
  const char* entry;
};
using MadeCalls = std::vector<MadeCall>;

// The call at `place` of those that the operation makes returns `code`.
struct Fault {
  size_t place;
  int code;
};

// What an operation did, from its beginning until what it gave was gone.
struct Played {
  MadeCalls calls;
  size_t returned_at = 0;  // how many of them were made when it returned
  absl::Status status;
  std::vector<cuguest::Incident> incidents;
  cudasim::SimLive before = {};
  cudasim::SimLive after = {};
  std::string difference;  // of the stack, the primary contexts, the capture mode, the last error
};

// Each call with one code, which take turns; or with every code, what is claimed too, and for two
// of them each later call as well. Or no call, but each request for host memory.
enum class Depth { kSingles, kPairs, kHostMemory };

class Walk {
 public:
  // Of pairs, one of `one_second_of` with the same first fault is walked.
  Walk(Depth depth, size_t one_second_of) : depth_(depth), one_second_of_(one_second_of) {}

  // `state` names what `set_stack` makes current.
  void Over(const Call& operation, const Things& things, const char* state,
            const std::function<void()>& set_stack);

  size_t operations() const { return operations_; }
  size_t singles() const { return singles_; }
  size_t pairs() const { return pairs_; }
  size_t allocations() const { return allocations_; }
  size_t broken() const { return broken_; }

 private:
  // Of the operation that the walk is over.
  struct Subject {
    const Call& operation;
    const Things& things;
    const char* state;
    const std::function<void()>& set_stack;
    Played clean;
  };

  std::vector<CUresult> CodesInTurn();
  void OverCalls(const Subject& subject);
  void OverHostMemory(const Subject& subject);
  void OverSecond(const Subject& subject, const Fault& first, const Played& after_first);
  bool Check(const Subject& subject, const Played& played, const std::vector<Fault>& faults);

  const Depth depth_;
  const size_t one_second_of_;
  size_t second_ = 0;
  size_t turn_ = 0;
  size_t operations_ = 0;
  size_t singles_ = 0;
  size_t pairs_ = 0;
  size_t allocations_ = 0;
  size_t broken_ = 0;
};

}  // namespace cuguest_faults

#endif  // CUGUEST_TEST_FAULTS_WALK_H_

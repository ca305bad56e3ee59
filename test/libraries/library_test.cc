// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// No call of the library handles creates a primary context, changes the stack or the runtime's
// last error, or leaves something behind: whatever was current, whether it succeeds or not, and
// whatever call beneath fails, of the driver or of the library. Which calls there are is found by
// counting those of a run without a fault.

#include <set>
#include <string>

#include "cudasim/sim.h"
#include "cudasim/sim_library.h"
#include "test/libraries/library_calls.h"
#include "test/support/failed_calls.h"
#include "test/support/runtime.h"

namespace {

using namespace cuguest_runtime_test;
using cudasim::Sim;
using cudasim::SimLibrary;
using cudasim::SimLive;
using cuguest_test::TakeIncidents;

ContextRef EndedLife() {
  const cuguest::PrimaryContext primary = RetainPrimary();
  const ContextRef life = primary.context();
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  return life;
}

using StackOf = std::function<std::vector<CUcontext>(const LibraryThings&)>;
struct State {
  const char* name;
  StackOf stack;
};
const State kStates[] = {
    {"nothing current", [](const LibraryThings&) { return std::vector<CUcontext>{}; }},
    {"its context current",
     [](const LibraryThings& t) { return std::vector<CUcontext>{t.home.get()}; }},
    {"another context current",
     [](const LibraryThings& t) {
       return std::vector<CUcontext>{t.home.get(), t.other.get()};
     }},
};

// `arm` lets one call fail.
template <typename Arm>
absl::Status Make(const LibraryCall& call, const State& state, const LibraryThings& things,
                  const Arm& arm) {
  SetStack(state.stack(things));
  absl::Status status;
  {
    const Undisturbed undisturbed;
    arm();
    LibraryOutcome outcome = call.make(things);
    Sim::ClearFaults();
    SimLibrary::ClearFaults();
    outcome.pool.reset();
    status = outcome.status;
  }
  SetStack({});
  return status;
}

// Nothing is left when the contexts are gone.
template <typename Run>
void LeaksNothing(const ContextRef& ended, const Run& run) {
  const SimLive live = Sim::Live();
  {
    const LibraryThings things(ended);
    run(things);
  }
  BOOST_TEST((Sim::Live() == live), "leaked");
}

void ExpectAll(const ContextRef& ended) {
  LeaksNothing(ended, [](const LibraryThings& things) {
    for (const LibraryCall& call : LibraryCalls()) {
      for (const State& state : kStates) {
        BOOST_TEST_CONTEXT(call.names << ", " << state.name) {
          const absl::Status status = Make(call, state, things, [] {});
          BOOST_TEST((status.code() == call.expected), status.ToString());
        }
      }
    }
  });
}

// What is loaded but once, is.
void WarmUp(const ContextRef& ended) {
  const LibraryThings things(ended);
  for (const LibraryCall& call : LibraryCalls()) static_cast<void>(call.make(things));
}

using Counts = std::vector<std::pair<std::string, std::uint64_t>>;

template <typename Simulation>
Counts CountCalls(const LibraryCall& call, const State& state, const ContextRef& ended) {
  const LibraryThings things(ended);
  SetStack(state.stack(things));
  Simulation::ResetCalls();
  const LibraryOutcome outcome = call.make(things);
  Counts counts;
  for (size_t i = 0; const char* entry = Simulation::EntryName(i); ++i) {
    if (const std::uint64_t calls = Simulation::Calls(entry)) counts.emplace_back(entry, calls);
  }
  SetStack({});
  return counts;
}

// Where a pool is forgotten it gives up what it cannot destroy, and where a status is made the
// driver is asked only whether there is more to say.
bool IsAnsweredSilently(const LibraryCall& call) {
  const std::string names = call.names;
  return names.find("::Forget") != std::string::npos || names.find("CodeOf") != std::string::npos;
}

// `fail` lets the nth call of an entry fail. Somebody is told, but for `answered` ones.
template <typename Simulation, typename Fail>
void FailEachCall(const Fail& fail, const std::set<std::string>& answered) {
  const ContextRef ended = EndedLife();
  WarmUp(ended);
  for (const LibraryCall& call : LibraryCalls()) {
    const bool is_silent = IsAnsweredSilently(call);
    for (const State& state : kStates) {
      for (const auto& [name, count] : CountCalls<Simulation>(call, state, ended)) {
        const std::string entry = name;
        for (unsigned nth = 1; nth <= count; ++nth) {
          BOOST_TEST_CONTEXT(call.names << ", " << state.name << ": " << entry << ", call "
                                        << nth) {
            absl::Status status;
            LeaksNothing(ended, [&](const LibraryThings& things) {
              status = Make(call, state, things, [&] { fail(entry.c_str(), nth); });
            });
            const bool was_reported = !TakeIncidents().empty();
            const bool was_said = status.code() != call.expected || was_reported;
            BOOST_TEST((was_said || is_silent || answered.count(entry) != 0),
                       "nobody was told: " << status.ToString());
          }
        }
      }
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(library)

BOOST_AUTO_TEST_CASE(no_call_disturbs) {
  const ContextRef ended = EndedLife();
  WarmUp(ended);
  BOOST_TEST(!PrimaryIsActive());
  ExpectAll(ended);
}

BOOST_AUTO_TEST_CASE(no_call_takes_or_changes_a_last_error) {
  const ContextRef ended = EndedLife();
  RT_IS(cudaSetDevice(4711), InvalidDevice);
  WarmUp(ended);
  ExpectAll(ended);
  RT_IS(cudaGetLastError(), InvalidDevice);
}

// A correct program makes no driver call that fails: see faults/quiet_test.cc.
BOOST_AUTO_TEST_CASE(no_call_of_the_driver_fails, *cuguest_test::OnlySim()) {
  const ContextRef ended = EndedLife();
  WarmUp(ended);
  const LibraryThings things(ended);
  size_t count = 0;
  for (const LibraryCall& call : LibraryCalls()) {
    if (call.expected != absl::StatusCode::kOk) continue;
    for (const State& state : kStates) {
      BOOST_TEST_CONTEXT(call.names << ", " << state.name) {
        SetStack(state.stack(things));
        cuguest_test::BeginCount();
        cuguest_test::FailedCalls failed;
        LibraryOutcome outcome = call.make(things);
        outcome.pool.reset();
        for (const std::string& one : failed.Take()) BOOST_ERROR(one);
        BOOST_TEST(outcome.status.ok());
        ++count;
      }
    }
  }
  SetStack({});
  BOOST_TEST(count > 20u);
}

// Where the end of a scope cannot ask or pop it has another way to the caller's stack; and a
// library goes on if it cannot ask for the primary context.
BOOST_AUTO_TEST_CASE(every_driver_call_fails_once, *cuguest_test::OnlySim()) {
  const auto fail = [](const std::string& entry, unsigned nth) {
    Sim::FailCall(entry.c_str(), nth, CUDA_ERROR_OPERATING_SYSTEM);
    // A guard by ContextRef that gets no answer to which context is current asks for its own.
    if (entry == "cuCtxGetId") Sim::FailCall("cuCtxGetId", nth + 1, CUDA_ERROR_OPERATING_SYSTEM);
  };
  FailEachCall<Sim>(fail, {"cuCtxGetCurrent", "cuCtxPopCurrent", "cuDevicePrimaryCtxGetState"});
}

// All four have a code 1 that is none of success.
BOOST_AUTO_TEST_CASE(every_library_call_fails_once, *cuguest_test::OnlySim()) {
  FailEachCall<SimLibrary>(
      [](const char* entry, unsigned nth) { SimLibrary::FailCall(entry, nth, 1); }, {});
}

BOOST_AUTO_TEST_SUITE_END()

// SPDX-License-Identifier: Apache-2.0
//
// Any driver or runtime call beneath the bridge may fail at any point: it comes out as a
// status or, while a scope ends, as an incident; the stack, the primary contexts and the last
// error are the caller's, and nothing is leaked. Which calls there are is found by counting
// those of a run without a fault.

#include <set>
#include <string>

#include "cuguest/testing/sim.h"
#include "cuguest/testing/sim_runtime.h"
#include "test/runtime/calls.h"

namespace {

using namespace cuguest_runtime_test;
using cuguest::testing::Sim;
using cuguest::testing::SimLive;
using cuguest::testing::SimRuntime;
using cuguest_test::TakeIncidents;
using cuguest_test::TheDriver;

// How often each entry is called.
using Counts = std::vector<std::pair<std::string, std::uint64_t>>;

template <typename Simulation>
Counts CountCalls(const Call& call, const Things& things) {
  static_cast<void>(call.make(things));  // what is done but once is done
  Simulation::ResetCalls();
  const Outcome outcome = call.make(things);
  Counts counts;
  for (size_t i = 0; const char* entry = Simulation::EntryName(i); ++i) {
    if (const std::uint64_t calls = Simulation::Calls(entry)) counts.emplace_back(entry, calls);
  }
  return counts;
}

// A reference to a primary context that the driver did not release is nobody's: the next fault
// starts without it.
void ReturnUnits(const SimLive& before) {
  while (Sim::Live().primary_references > before.primary_references) {
    OK(TheDriver().DevicePrimaryCtxRelease(0));
  }
}

// `arm` lets one call fail. Returns what `call` said, once everything it gave is gone.
template <typename Arm>
absl::Status RunWithFault(const Call& call, const Things& things, const Arm& arm) {
  const SimLive live = Sim::Live();
  const Undisturbed undisturbed;
  arm();
  Outcome outcome = call.make(things);
  Sim::ClearFaults();
  SimRuntime::ClearFaults();
  outcome.object.reset();
  ReturnUnits(live);
  BOOST_TEST((Sim::Live() == live), "leaked");
  return outcome.status;
}

using Entries = std::set<std::string>;

// `fail` lets the nth call of an entry fail, for each that is made; `infallible` entries are
// left out. Somebody is told, but for `answered` ones.
template <typename Simulation, typename Fail>
void FailEachCall(const Fail& fail, const Entries& infallible, const Entries& answered) {
  const Things things;
  InEveryState(things, [&](const char*, const SetUp& set_stack) {
    for (const Call& call : Calls()) {
      set_stack();
      for (const auto& [name, count] : CountCalls<Simulation>(call, things)) {
        const std::string entry = name;
        for (unsigned nth = 1; nth <= count && infallible.count(entry) == 0; ++nth) {
          BOOST_TEST_CONTEXT(call.names << ": " << entry << ", call " << nth) {
            set_stack();
            const auto is_said = [&](const auto& arm) {
              const absl::Status status = RunWithFault(call, things, arm);
              return !status.ok() || !TakeIncidents().empty();
            };
            bool was_said = is_said([&] { fail(entry.c_str(), nth); });
            // A guard by ContextRef that gets no answer to which context is current asks for its
            // own.
            if (!was_said && entry == "cuCtxGetId") {
              set_stack();
              was_said = is_said([&] {
                fail(entry.c_str(), nth);
                fail(entry.c_str(), nth + 1);
              });
            }
            BOOST_TEST((was_said || answered.count(entry) != 0), "nobody was told");
          }
        }
      }
    }
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(runtime_injection, *cuguest_test::OnlySim())

// Where the end of a scope cannot ask or pop it has another way to the caller's stack, and a
// reference that a destructor cannot release is the driver's.
BOOST_AUTO_TEST_CASE(every_driver_call_fails_once) {
  FailEachCall<Sim>([](const char* entry,
                       unsigned nth) { Sim::FailCall(entry, nth, CUDA_ERROR_OPERATING_SYSTEM); },
                    {}, {"cuCtxGetCurrent", "cuCtxPopCurrent", "cuDevicePrimaryCtxRelease"});
}

// The questions about the last error return nothing else, and the version has nothing to
// fail by.
BOOST_AUTO_TEST_CASE(every_runtime_call_fails_once) {
  FailEachCall<SimRuntime>(
      [](const char* entry, unsigned nth) {
        SimRuntime::FailCall(entry, nth, cudaErrorOperatingSystem);
      },
      {"cudaGetLastError", "cudaPeekAtLastError", "cudaRuntimeGetVersion"}, {});
}

BOOST_AUTO_TEST_SUITE_END()

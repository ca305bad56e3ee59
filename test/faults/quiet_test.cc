// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A correct program on cuguest makes no driver call that fails: each would be a line in the host's
// log of errors (CUDA_LOG_FILE), and an error to tools. So every public operation that does well,
// whatever is current, and whatever the thread has seen current before, makes none. Handles of
// toolkit libraries are in libraries/library_test.cc.

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "cuguest/acquire.h"
#include "cuguest/context_guard.h"
#include "cuguest/objects/stream.h"
#include "test/faults/operations.h"
#include "test/support/failed_calls.h"
#include "test/support/raw_driver.h"

namespace {

using namespace cuguest_faults;
using cuguest::ContextRef;
using cuguest::Event;
using cuguest::StreamRef;
using cuguest_runtime_test::InEveryState;
using cuguest_runtime_test::SetUp;
using cuguest_test::FailedCalls;

// So that this thread has seen a context current that may be so no longer.
void SeeCurrent(const cuguest::ContextRef& context) {
  const cuguest::ContextGuard outer(context);
  const cuguest::ContextGuard nested(context);
  BOOST_TEST((outer.ok() && nested.ok()));
  BOOST_TEST(cuguest::AcquireFromStream(nullptr).ok());
}

class Quiet {
 public:
  explicit Quiet(const char* tables) : tables_(tables) {}
  ~Quiet() {
    std::printf("%s: %zu operations in a state did well, %zu of them were not quiet\n", tables_,
                done_, loud_);
  }

  // `make` is the operation until what it gave is gone, and says whether it did well.
  void Over(const char* names, const std::function<bool()>& make, const char* state,
            const cuguest::ContextRef& seen, const std::function<void()>& set_stack) {
    for (const bool has_seen : {false, true}) {
      for (const bool is_first : {true, false}) {
        set_stack();
        cuguest_test::BeginCount();
        if (has_seen) SeeCurrent(seen);
        FailedCalls failed;
        const bool did_well = make();
        const std::vector<std::string> calls = failed.Take();
        static_cast<void>(cuguest_test::TakeIncidents());
        if (!did_well) continue;
        ++done_;
        loud_ += !calls.empty();
        for (const std::string& call : calls) {
          BOOST_ERROR(names << " (" << state << (has_seen ? ", a context was seen" : "")
                            << (is_first ? ", the first time" : "") << "): " << call);
        }
      }
    }
  }

 private:
  const char* const tables_;
  size_t done_ = 0;
  size_t loud_ = 0;
};

void WalkOver(const char* tables, const std::vector<Call>& operations) {
  Quiet quiet(tables);
  for (const Call& operation : operations) {
    cuguest_test::OwnContext::DestroyIdle();
    const Things things;
    InEveryState(things, [&](const char* state, const SetUp& set_stack) {
      const auto make = [&] { return operation.make(things).status.ok(); };
      quiet.Over(operation.names, make, state, things.home.ref(), set_stack);
    });
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(quiet, *cuguest_test::OnlySim())

BOOST_AUTO_TEST_CASE(of_the_core) { WalkOver("the core", CallsOfCore()); }

BOOST_AUTO_TEST_CASE(of_the_c_api) { WalkOver("the C API", CallsOfC()); }

BOOST_AUTO_TEST_CASE(of_memory_streams_and_the_bridge) {
  WalkOver("memory, streams and the bridge", cuguest_runtime_test::Calls());
}

BOOST_AUTO_TEST_CASE(of_code) { WalkOver("code", cuguest_runtime_test::CallsOfCode()); }

namespace {

// The calls that fail while `event` of other code is asked in each way.
std::vector<std::string> FailedOf(const Event& event, const StreamRef& legacy) {
  FailedCalls failed;
  BOOST_TEST(event.IsDone().value());
  BOOST_TEST(event.Synchronize().ok());
  BOOST_TEST(legacy.WaitFor(event).ok());
  return failed.Take();
}

}  // namespace

// The exception of events: only a call that fails tells of one without a time that it was not
// recorded in a capture (docs/guarantees.md).
BOOST_AUTO_TEST_CASE(of_an_adopted_event) {
  const cuguest_test::OwnContext context;
  const ContextRef ref = ContextRef::Borrow(context.get());
  const StreamRef legacy = StreamRef::Borrow(CU_STREAM_LEGACY, ref);
  const std::vector<std::string> each_asks(3, "cuEventElapsedTime: CUDA_ERROR_INVALID_HANDLE");
  for (const unsigned flags : {CU_EVENT_DEFAULT, CU_EVENT_DISABLE_TIMING}) {
    Event made = Event::Create(ref, flags).value();
    Event event = Event::Adopt(made.Leak(), ref, flags).value();
    BOOST_TEST((FailedOf(event, legacy) == each_asks));
    {
      const cuguest::ContextGuard guard(ref);
      BOOST_TEST(RAW(cuEventRecord)(event.get(), CU_STREAM_LEGACY) == CUDA_SUCCESS);
    }
    BOOST_TEST(legacy.Synchronize().ok());
    const bool has_time = flags == CU_EVENT_DEFAULT;
    BOOST_TEST((FailedOf(event, legacy) == (has_time ? std::vector<std::string>() : each_asks)));
    BOOST_TEST(event.Record(legacy).ok());
    BOOST_TEST(FailedOf(event, legacy).empty());
  }
}

BOOST_AUTO_TEST_SUITE_END()

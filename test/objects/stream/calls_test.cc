// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver calls of stream.h: their numbers, as its `Cost:` lines have them, and every
// one of them failing.

#include <functional>
#include <string>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/objects/stream.h"
#include "test/objects/stream/streams.h"

BOOST_AUTO_TEST_SUITE(calls, *cuguest_test::OnlySim())

using namespace cuguest_streams;
using cudasim::Sim;
using cuguest_test::OnlySim;
using cuguest_test::TakeIncidents;

namespace {

// A context with a stream and two events; another one with a stream and an event.
struct World {
  OwnContext context;
  OwnContext other_context;
  ContextRef home = RefTo(context);
  Stream stream = MakeStream(home);
  StreamRef stream_0 = StreamRef::Borrow(nullptr, home);
  Event event = MakeEvent(home, CU_EVENT_DEFAULT);
  Event end = MakeEvent(home, CU_EVENT_DEFAULT);
  Stream other = MakeStream(RefTo(other_context));
  Event others = MakeEvent(RefTo(other_context), CU_EVENT_DEFAULT);

  World() {
    for (Event* recorded : {&event, &end}) OK(Said(recorded->Record(stream.ref())));
  }
  ~World() { SetStack({}); }
};

struct Step {
  const char* name;
  std::function<absl::Status(World&)> run;
  unsigned calls;          // with nothing current
  unsigned calls_at_home;  // with the context current
};

const std::vector<Step>& Steps() {
  const bool names_context = cuguest_test::HasDriver(13000);  // cuCtxGetDevice takes it
  static const auto& steps = *new std::vector<Step>{
      {"borrow", [](World& w) { return StreamRef::Borrow(w.stream.get()).status(); }, 2, 2},
      {"device", [](World& w) { return w.stream.ref().device().status(); }, names_context ? 2u : 6u,
       names_context ? 2u : 4u},
      {"synchronize", [](World& w) { return w.stream.ref().Synchronize(); }, 5, 5},
      {"is done", [](World& w) { return w.stream.ref().IsDone().status(); }, 5, 5},
      {"synchronize stream 0", [](World& w) { return w.stream_0.Synchronize(); }, 9, 7},
      {"wait", [](World& w) { return w.stream.ref().WaitFor(w.event); }, 3, 3},
      {"wait across", [](World& w) { return w.other.ref().WaitFor(w.event); }, 4, 4},
      {"wait in stream 0", [](World& w) { return w.stream_0.WaitFor(w.event); }, 7, 5},
      {"record", [](World& w) { return w.event.Record(w.stream.ref()); }, 3, 3},
      {"record in stream 0", [](World& w) { return w.event.Record(w.stream_0); }, 7, 5},
      {"event is done", [](World& w) { return w.event.IsDone().status(); }, 4, 4},
      {"wait for event", [](World& w) { return w.event.Synchronize(); }, 4, 4},
      {"elapsed", [](World& w) { return Event::ElapsedMilliseconds(w.event, w.end).status(); }, 2,
       2},
      {"stream created and destroyed",
       [](World& w) {
         absl::StatusOr<Stream> made = Stream::Create(w.home);
         return made.ok() ? made->Release() : made.status();
       },
       6 + 3, 4 + 3},
      {"event created and destroyed",
       [](World& w) {
         absl::StatusOr<Event> made = Event::Create(w.home);
         return made.ok() ? made->Release() : made.status();
       },
       6 + 2, 4 + 2},
  };
  return steps;
}

constexpr const char* kEntries[] = {"cuCtxGetCurrent",
                                    "cuCtxGetId",
                                    "cuCtxPushCurrent",
                                    "cuCtxPopCurrent",
                                    "cuCtxGetDevice",
                                    "cuStreamGetCtx",
                                    "cuStreamGetCaptureInfo",
                                    "cuThreadExchangeStreamCaptureMode",
                                    "cuStreamCreateWithPriority",
                                    "cuStreamDestroy",
                                    "cuStreamSynchronize",
                                    "cuStreamQuery",
                                    "cuStreamWaitEvent",
                                    "cuEventCreate",
                                    "cuEventDestroy",
                                    "cuEventRecord",
                                    "cuEventQuery",
                                    "cuEventSynchronize",
                                    "cuEventElapsedTime"};

constexpr CUresult kInjected = CUDA_ERROR_OPERATING_SYSTEM;

// Calls that come after the work and whose failure is an incident instead of a status.
bool IsOnTheWayOut(const std::string& entry, unsigned nth) {
  return entry == "cuCtxPopCurrent" || (entry == "cuCtxGetCurrent" && nth > 1) ||
         (entry == "cuThreadExchangeStreamCaptureMode" && nth > 1);
}

void RunWithFault(const Step& step, bool at_home, const char* entry, unsigned nth) {
  World world;
  const Entries stack = at_home ? Entries{world.context.get()} : Entries{};
  SetStack(stack);
  const auto live = Sim::Live();
  Sim::ResetCalls();
  Sim::FailCall(entry, nth, kInjected);
  const absl::Status status = step.run(world);
  const bool reached = Sim::Calls(entry) >= nth;
  Sim::ClearFaults();
  const auto incidents = TakeIncidents();
  BOOST_TEST(GetStack() == stack);
  BOOST_TEST((Sim::Live() == live), "leaked");
  if (!reached) {
    BOOST_TEST(status.ok(), status.message());
    BOOST_TEST(incidents.empty());
  } else if (!IsOnTheWayOut(entry, nth)) {
    BOOST_CHECK_EQUAL(Said(status), kInjected);
  }
  OK(Said(step.run(world)));  // nothing was lost
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  OK(RAW(cuThreadExchangeStreamCaptureMode)(&mode));
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_calls_of_the_header) {
  World world;
  for (const Step& step : Steps()) {
    BOOST_TEST_CONTEXT(step.name) {
      for (const bool at_home : {false, true}) {
        SetStack(at_home ? Entries{world.context.get()} : Entries{});
        cuguest_test::BeginCount();
        OK(Said(step.run(world)));
        BOOST_TEST(Sim::TotalCalls() == (at_home ? step.calls_at_home : step.calls));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_calls_of_the_rest) {
  World world;
  Sim::ResetCalls();
  static_cast<void>(StreamRef::Borrow(world.stream.get(), world.home));
  world.stream = Stream::Adopt(world.stream.Leak(), world.home).value();
  BOOST_TEST(Sim::TotalCalls() == 0u);
  BOOST_TEST((world.other.ref().capture_status() == CU_STREAM_CAPTURE_STATUS_NONE));
  BOOST_TEST(Sim::TotalCalls() == 2u);
  { const Stream destructed = std::move(world.other); }
  BOOST_TEST(Sim::TotalCalls() == 4u);
  { const Event destructed = std::move(world.event); }
  BOOST_TEST(Sim::TotalCalls() == 6u);
  // What is empty is refused without a call.
  IS(Said(StreamRef().Synchronize()), INVALID_HANDLE);
  IS(Said(Event().IsDone()), INVALID_HANDLE);
  BOOST_TEST(Sim::TotalCalls() == 6u);
  IS(Said(Event::ElapsedMilliseconds(world.end, world.others)), INVALID_HANDLE);
  BOOST_TEST(Sim::TotalCalls() == 9u);
}

BOOST_AUTO_TEST_CASE(every_call_fails) {
  for (const Step& step : Steps()) {
    for (const bool at_home : {false, true}) {
      for (const char* entry : kEntries) {
        for (unsigned nth = 1; nth <= 4; ++nth) {
          BOOST_TEST_CONTEXT(step.name << (at_home ? ", at home" : "") << ": call " << nth << " of "
                                       << entry) {
            RunWithFault(step, at_home, entry, nth);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(work_that_is_not_done_yet) {
  World world;
  Sim::FailCall("cuStreamQuery", 1, CUDA_ERROR_NOT_READY);
  BOOST_TEST(!world.stream.ref().IsDone().value());
  Sim::FailCall("cuEventQuery", 1, CUDA_ERROR_NOT_READY);
  BOOST_TEST(!world.event.IsDone().value());
}

BOOST_AUTO_TEST_CASE(the_process_ends) {
  for (const char* entry : {"cuCtxGetId", "cuStreamDestroy", "cuEventDestroy"}) {
    World world;
    Sim::FailCall(entry, 1, CUDA_ERROR_DEINITIALIZED);
    OK(Said(world.stream.Release()));
    Sim::ClearFaults();
    Sim::FailCall(entry, 1, CUDA_ERROR_DEINITIALIZED);
    OK(Said(world.event.Release()));
    Sim::ClearFaults();
    BOOST_CHECK(world.stream.get() == nullptr);
    BOOST_CHECK(world.event.get() == nullptr);
  }
}

BOOST_AUTO_TEST_CASE(what_is_not_destroyed_is_still_owned) {
  World world;
  const CUstream stream = world.stream.get();
  const CUevent event = world.event.get();
  Sim::FailCall("cuStreamDestroy", 1, kInjected);
  Sim::FailCall("cuEventDestroy", 1, kInjected);
  BOOST_CHECK_EQUAL(Said(world.stream.Release()), kInjected);
  BOOST_CHECK_EQUAL(Said(world.event.Release()), kInjected);
  BOOST_CHECK(world.stream.get() == stream);
  BOOST_CHECK(world.event.get() == event);
  OK(Said(world.stream.Release()));
  OK(Said(world.event.Release()));
}

BOOST_AUTO_TEST_SUITE_END()

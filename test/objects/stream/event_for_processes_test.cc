// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Event between processes, and of other code in this one.

#include <cstring>
#include <utility>

#include "cudasim/sim.h"
#include "cuguest/objects/stream.h"
#include "test/objects/stream/streams.h"
#include "test/support/advised.h"
#include "test/support/peer.h"

BOOST_AUTO_TEST_SUITE(event_for_processes)

using namespace cuguest_streams;
using cudasim::Sim;
using cuguest_test::NeedsDriver;
using cuguest_test::OnlySim;
using cuguest_test::Peer;
using cuguest_test::PeerDo;

namespace {

constexpr unsigned kShared = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;

Event Imported(const ContextRef& context, const Peer& peer) {
  absl::StatusOr<Event> event = Event::Import(context, peer.mail().event);
  BOOST_TEST_REQUIRE(event.ok(), event.status().ToString());
  return *std::move(event);
}

// What of `event` a capture would be invalidated by.
void CheckNotCaptured(const Guest& guest, Event* event) {
  const StreamRef stream = StreamRef::Borrow(guest.stream, RefTo(guest.context));
  for (const CUstreamCaptureMode mode : kModes) {
    OK(Begin(guest.stream, mode));
    OK(guest.Fill(guest.stream));
    for (const absl::Status& refused : {event->Record(stream), stream.WaitFor(*event)}) {
      IS(Said(refused), STREAM_CAPTURE_UNSUPPORTED);
      BOOST_TEST((refused.code() == absl::StatusCode::kFailedPrecondition));
      BOOST_TEST(Mentions(refused, "before it begins"), refused.message());
    }
    BOOST_TEST(event->IsDone().value());
    OK(Said(event->Synchronize()));
    BOOST_CHECK_EQUAL(StatusOf(guest.stream), kActive);
    OK(End(guest.stream));
  }
  OK(Said(event->Record(stream)));
  OK(Said(stream.WaitFor(*event)));
}

}  // namespace

CHILD(is_a_peer) { return cuguest_test::ServeAsPeer(); }

BOOST_AUTO_TEST_CASE(exported_whatever_is_current) {
  const OwnContext a;
  const OwnContext b;
  const Stream stream = MakeStream(RefTo(a));
  for (const Entries& stack : {Entries{}, Entries{a.get()}, Entries{a.get(), b.get()}}) {
    SetStack(stack);
    Event event = MakeEvent(RefTo(a), kShared);
    const CUipcEventHandle handle = event.Export().value();
    const CUipcEventHandle again = event.Export().value();
    BOOST_TEST(std::memcmp(&handle, &again, sizeof(handle)) == 0);
    OK(Said(event.Record(stream)));
    OK(Said(stream.ref().WaitFor(event)));
    OK(Said(event.Synchronize()));
    BOOST_TEST(event.IsDone().value());
    OK(Said(event.Release()));
    BOOST_TEST(GetStack() == stack);
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(it_has_no_time) {
  const OwnContext a;
  const absl::Status refused = Event::Create(RefTo(a), CU_EVENT_INTERPROCESS).status();
  BOOST_TEST((refused.code() == absl::StatusCode::kInvalidArgument));
  BOOST_TEST(Mentions(refused, Advised("has no time: add CU_EVENT_DISABLE_TIMING")),
             refused.message());
  OK(Said(Event::Create(RefTo(a), kShared)));
}

BOOST_AUTO_TEST_CASE(exports_only_what_was_made) {
  Peer peer;
  Mortal context;
  const Event plain = MakeEvent(context.ref());
  const Event imported = Imported(context.ref(), peer);
  const Event shared = MakeEvent(context.ref(), kShared);
  for (const Event* event : {&plain, &imported}) {
    const absl::Status refused = event->Export().status();
    IS(Said(refused), INVALID_HANDLE);
    BOOST_TEST(Mentions(refused, "created without CU_EVENT_INTERPROCESS, or imported"),
               refused.message());
  }
  BOOST_TEST((Event().Export().status().code() == absl::StatusCode::kInvalidArgument));
  context.Die();
  IS(Said(shared.Export()), CONTEXT_IS_DESTROYED);
}

// ROCm/hip#1984: opened where nothing is current.
BOOST_AUTO_TEST_CASE(waits_for_a_peers_record) {
  Peer peer;
  const OwnContext a;
  const OwnContext b;
  for (const Entries& stack : {Entries{}, Entries{a.get()}, Entries{a.get(), b.get()}}) {
    SetStack(stack);
    const Stream stream = MakeStream(RefTo(a));
    const Stream other = MakeStream(RefTo(a));
    Event event = Imported(RefTo(a), peer);
    BOOST_CHECK(event.context() == RefTo(a));
    BOOST_TEST(event.IsDone().value());
    peer.Ask(PeerDo::kRecordPending);
    BOOST_TEST(!event.IsDone().value());
    OK(Said(stream.ref().WaitFor(event)));
    BOOST_TEST(!stream.ref().IsDone().value());
    BOOST_TEST(other.ref().IsDone().value());
    peer.Ask(PeerDo::kEndWork);
    OK(Said(event.Synchronize()));
    OK(Said(stream.ref().Synchronize()));
    OK(Said(event.Record(stream)));
    OK(Said(event.Synchronize()));
    BOOST_TEST(GetStack() == stack);
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(imported_twice_it_is_destroyed_twice) {
  Peer peer;
  const OwnContext a;
  Event first = Imported(RefTo(a), peer);
  Event second = Imported(RefTo(a), peer);
  OnAnotherThread([&] { first = Event(); });
  OK(Said(second.Synchronize()));
  OK(Said(second.Release()));
}

// There the driver crashes: cudasim's event.cc.
BOOST_AUTO_TEST_CASE(only_its_contexts_streams_wait) {
  Peer peer;
  const OwnContext a;
  const OwnContext b;
  const Stream stream = MakeStream(RefTo(b));
  Event events[] = {MakeEvent(RefTo(a), kShared), Imported(RefTo(a), peer)};
  for (Event& event : events) {
    for (const StreamRef& other : {stream.ref(), StreamRef::Borrow(nullptr, RefTo(b))}) {
      for (const absl::Status& refused : {other.WaitFor(event), event.Record(other)}) {
        IS(Said(refused), INVALID_HANDLE);
        char name[32];
        for (const CUcontext context : {a.get(), b.get()}) {
          std::snprintf(name, sizeof(name), "%p", static_cast<void*>(context));
          BOOST_TEST(Mentions(refused, name), refused.message());
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(captures_refuse_it) {
  Peer peer;
  const Guest guest;
  Event own = MakeEvent(RefTo(guest.context), kShared);
  Event imported = Imported(RefTo(guest.context), peer);
  CheckNotCaptured(guest, &own);
  CheckNotCaptured(guest, &imported);
}

BOOST_AUTO_TEST_CASE(exporting_and_importing_invalidates_no_capture) {
  Peer peer;
  const Guest guest;
  for (const CUstreamCaptureMode mode : kModes) {
    for (const CUcontext context : {guest.context.get(), guest.other.get()}) {
      OK(Begin(guest.stream, mode));
      const ContextRef ref = ContextRef::Borrow(context);
      const auto work = [&] {
        Event own = MakeEvent(ref, kShared);
        OK(Said(own.Export()));
        Event imported = Imported(ref, peer);
        OK(Said(imported.Release()));
      };
      work();
      OnAnotherThread(work);
      BOOST_CHECK_EQUAL(StatusOf(guest.stream), kActive);
      OK(End(guest.stream));
    }
  }
}

BOOST_AUTO_TEST_CASE(it_goes_with_its_context) {
  Peer peer;
  Mortal context;
  Event event = Imported(context.ref(), peer);
  Event destroyed_silently = Imported(context.ref(), peer);
  const ContextRef dead = context.ref();
  context.Die();
  IS(Said(event.IsDone()), CONTEXT_IS_DESTROYED);
  Sim::ResetCalls();
  IS(Said(event.Release()), CONTEXT_IS_DESTROYED);
  destroyed_silently = Event();
  BOOST_TEST(Sim::Calls("cuEventDestroy") == 0U);
  IS(Said(Event::Import(dead, peer.mail().event)), CONTEXT_IS_DESTROYED);
  BOOST_TEST(!Event::Import(ContextRef(), peer.mail().event).ok());
}

BOOST_AUTO_TEST_CASE(not_in_the_exporting_process) {
  const OwnContext a;
  const Event event = MakeEvent(RefTo(a), kShared);
  const absl::Status refused = Event::Import(RefTo(a), event.Export().value()).status();
  IS(Said(refused), INVALID_CONTEXT);
  BOOST_TEST(Mentions(refused, "this process exported it"), refused.message());
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_handle) {
  const OwnContext a;
  const absl::Status refused = Event::Import(RefTo(a), CUipcEventHandle{}).status();
  IS(Said(refused), MAP_FAILED);
  BOOST_TEST(Mentions(refused, "or the bytes are no handle"), refused.message());
}

// Nothing says what a GPU's driver does after its exporter's end.
BOOST_AUTO_TEST_CASE(handle_of_a_destroyed_event, *OnlySim()) {
  Peer peer;
  const OwnContext a;
  peer.Ask(PeerDo::kGiveUp);
  BOOST_TEST(Mentions(Event::Import(RefTo(a), peer.mail().event).status(),
                      "the exporter has destroyed it"));
}

BOOST_AUTO_TEST_CASE(adopts_what_other_code_made) {
  const OwnContext a;
  SetStack({a.get()});
  CUevent made = nullptr;
  OK(RAW(cuEventCreate)(&made, CU_EVENT_DEFAULT));
  SetStack({});
  for (const absl::Status& refused : {Event::Adopt(nullptr, RefTo(a), 0).status(),
                                      Event::Adopt(made, ContextRef(), 0).status()}) {
    BOOST_TEST((refused.code() == absl::StatusCode::kInvalidArgument), refused.message());
  }
  const auto before = Sim::Live().events;
  const Stream stream = MakeStream(RefTo(a));
  Event event = Event::Adopt(made, RefTo(a), CU_EVENT_DEFAULT).value();
  BOOST_TEST(event.get() == made);
  BOOST_TEST(event.IsDone().value());
  OK(Said(stream.ref().WaitFor(event)));
  OK(Said(event.Record(stream)));
  OK(Said(event.Synchronize()));
  BOOST_TEST(Event::ElapsedMilliseconds(event, event).value() == 0);
  BOOST_TEST(event.Export().status().code() == absl::StatusCode::kInvalidArgument);
  OK(Said(event.Release()));
  if (Sim::IsActive()) BOOST_TEST(Sim::Live().events == before - 1);
}

BOOST_AUTO_TEST_CASE(an_adopted_event_invalidates_no_capture) {
  const Guest guest;
  const StreamRef stream = StreamRef::Borrow(guest.stream, RefTo(guest.context));
  const StreamRef legacy = StreamRef::Borrow(nullptr, RefTo(guest.context));
  for (const CUstreamCaptureMode mode : kModes) {
    OK(Begin(guest.stream, mode));
    OK(guest.Record(guest.captured, guest.stream));
    Event captured = Event::Adopt(guest.captured, RefTo(guest.context), CU_EVENT_DEFAULT).value();
    Event recorded = Event::Adopt(guest.recorded, RefTo(guest.context), CU_EVENT_DEFAULT).value();
    for (const absl::Status& refused :
         {captured.IsDone().status(), captured.Synchronize(), legacy.WaitFor(captured)}) {
      IS(Said(refused), CAPTURED_EVENT);
    }
    for (const Event* event : {&captured, &recorded}) {
      const absl::Status refused = stream.WaitFor(*event);
      IS(Said(refused), STREAM_CAPTURE_ISOLATION);
      BOOST_TEST(Mentions(refused, "or by other code"), refused.message());
    }
    BOOST_TEST(recorded.IsDone().value());
    OK(Said(captured.Record(stream)));
    OK(Said(stream.WaitFor(captured)));
    BOOST_CHECK_EQUAL(StatusOf(guest.stream), kActive);
    OK(End(guest.stream));
    static_cast<void>(captured.Leak());
    static_cast<void>(recorded.Leak());
  }
}

BOOST_AUTO_TEST_CASE(every_call_fails_once, *OnlySim()) {
  Peer peer;
  const OwnContext a;
  const Event own = MakeEvent(RefTo(a), kShared);
  for (const char* entry : {"cuCtxGetCurrent", "cuCtxPushCurrent", "cuIpcOpenEventHandle"}) {
    Sim::FailCall(entry, 1, CUDA_ERROR_OPERATING_SYSTEM);
    IS(Said(Event::Import(RefTo(a), peer.mail().event)), OPERATING_SYSTEM);
    Sim::ClearFaults();
  }
  for (const char* entry : {"cuCtxGetCurrent", "cuCtxPushCurrent", "cuIpcGetEventHandle"}) {
    Sim::FailCall(entry, 1, CUDA_ERROR_OPERATING_SYSTEM);
    IS(Said(own.Export()), OPERATING_SYSTEM);
    Sim::ClearFaults();
  }
  BOOST_TEST(GetStack().empty());
}

BOOST_AUTO_TEST_CASE(it_costs_what_it_says, *OnlySim()) {
  Peer peer;
  const OwnContext a;
  const ContextRef context = RefTo(a);
  const Event own = MakeEvent(context, kShared);
  for (const unsigned switched : {0U, 2U}) {
    SetStack(switched == 0 ? Entries{a.get()} : Entries{});
    cuguest_test::BeginCount();
    OK(Said(own.Export()));
    BOOST_TEST(Sim::TotalCalls() == 6 + switched);
    cuguest_test::BeginCount();
    const absl::StatusOr<Event> imported = Event::Import(context, peer.mail().event);
    BOOST_TEST(Sim::TotalCalls() == 6 + switched);
  }
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()

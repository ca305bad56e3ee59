// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nothing of stream.h breaks a capture: what would is refused, and what is not refused
// leaves captures of every mode, on this thread and on others, as they were.

#include <functional>
#include <memory>
#include <vector>

#include "cuguest/objects/stream.h"
#include "test/objects/stream/streams.h"

BOOST_AUTO_TEST_SUITE(capture)

using namespace cuguest_streams;

namespace {

// Captures of every mode, with `work` done on the capturing thread and on another.
void DuringEachCapture(const Guest& guest, const std::function<void()>& work) {
  for (const CUstreamCaptureMode mode : kModes) {
    for (const bool other_thread : {false, true}) {
      BOOST_TEST_CONTEXT("mode " << mode << (other_thread ? ", another thread" : "")) {
        OK(Begin(guest.stream, mode));
        OK(guest.Fill(guest.stream));
        if (other_thread) {
          OnAnotherThread(work);
        } else {
          work();
        }
        BOOST_CHECK_EQUAL(StatusOf(guest.stream), kActive);
        OK(End(guest.stream));
      }
    }
  }
}

ContextRef ContextOf(const Guest& guest) { return RefTo(guest.context); }

StreamRef In(const Guest& guest, CUstream stream) {
  return StreamRef::Borrow(stream, ContextOf(guest));
}

void Lose(const Guest& guest) {
  OK(Begin(guest.stream));
  unsigned flags = 0;
  IS(RAW(cuStreamGetFlags)(guest.stream, &flags), STREAM_CAPTURE_UNSUPPORTED);
}

// Every operation on stream 0, which `expected` says of.
void CheckOnLegacy(const ContextRef& context, CUresult expected, CUstreamCaptureStatus status) {
  const Event never = MakeEvent(context);
  Event recorded = MakeEvent(context);
  for (const CUstream legacy : {CUstream{nullptr}, CU_STREAM_LEGACY}) {
    const StreamRef stream = StreamRef::Borrow(legacy, context);
    for (const absl::Status& said : {stream.Synchronize(), stream.IsDone().status(),
                                     stream.WaitFor(never), recorded.Record(stream)}) {
      BOOST_CHECK_EQUAL(Said(said), expected);
      if (!said.ok()) BOOST_TEST(Mentions(said, "a blocking stream of its context captures"));
    }
    BOOST_TEST((stream.capture_status() == status));
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(of_streams)

BOOST_AUTO_TEST_CASE(the_capturing_stream_is_not_waited_for) {
  const Guest guest;
  Stream owned = Stream::Adopt(guest.stream, ContextOf(guest)).value();
  DuringEachCapture(guest, [&] {
    const StreamRef stream = StreamRef::Borrow(guest.stream).value();
    BOOST_CHECK(stream == owned.ref());
    BOOST_TEST((stream.capture_status() == CU_STREAM_CAPTURE_STATUS_ACTIVE));
    for (const absl::Status& status :
         {stream.Synchronize(), stream.IsDone().status(), owned.Release()}) {
      IS(Said(status), STREAM_CAPTURE_UNSUPPORTED);
      BOOST_TEST((status.code() == absl::StatusCode::kFailedPrecondition));
      BOOST_TEST(Mentions(status, "captures: end the capture first"), status.message());
      BOOST_TEST(!Mentions(status, "ended the capture"), "it goes on");
    }
    BOOST_TEST(stream.device().value().get() == 0);
    BOOST_CHECK(owned.get() == guest.stream);
  });
  OK(Said(owned.ref().Synchronize()));
  OK(Said(owned.Release()));
}

BOOST_AUTO_TEST_CASE(other_streams_and_events_work) {
  for (const unsigned flags : {CU_STREAM_NON_BLOCKING, CU_STREAM_DEFAULT}) {
    const Guest guest(flags);
    DuringEachCapture(guest, [&] {
      for (const ContextRef& context : {ContextOf(guest), RefTo(guest.other)}) {
        Stream stream = MakeStream(context);
        Event event = MakeEvent(context, CU_EVENT_DEFAULT);
        OK(Said(event.Record(stream.ref())));
        OK(Said(event.Synchronize()));
        OK(Said(event.IsDone()));
        OK(Said(Event::ElapsedMilliseconds(event, event)));
        OK(Said(stream.ref().WaitFor(event)));
        OK(Said(stream.ref().Synchronize()));
        BOOST_TEST(stream.ref().IsDone().value());
        BOOST_TEST((stream.ref().capture_status() == CU_STREAM_CAPTURE_STATUS_NONE));
        const StreamRef per_thread = StreamRef::Borrow(CU_STREAM_PER_THREAD, context);
        OK(Said(per_thread.Synchronize()));
        OK(Said(event.Record(per_thread)));
        OK(Said(event.Release()));
        OK(Said(stream.Release()));
      }
    });
  }
}

BOOST_AUTO_TEST_CASE(stream_0_is_refused_while_a_blocking_stream_of_its_context_captures) {
  const Guest guest(CU_STREAM_DEFAULT);
  DuringEachCapture(guest, [&] {
    CheckOnLegacy(ContextOf(guest), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                  CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CheckOnLegacy(RefTo(guest.other), CUDA_SUCCESS, CU_STREAM_CAPTURE_STATUS_NONE);
  });
  CheckOnLegacy(ContextOf(guest), CUDA_SUCCESS, CU_STREAM_CAPTURE_STATUS_NONE);
  const Guest non_blocking;
  DuringEachCapture(non_blocking, [&] {
    CheckOnLegacy(ContextOf(non_blocking), CUDA_SUCCESS, CU_STREAM_CAPTURE_STATUS_NONE);
  });
}

BOOST_AUTO_TEST_CASE(the_ref_remembers_whose_stream_0_it_is) {
  const Guest guest(CU_STREAM_DEFAULT);
  const StreamRef mine = StreamRef::Borrow(nullptr).value();  // guest.context is current
  SetStack({guest.other.get()});
  const StreamRef others = StreamRef::Borrow(nullptr).value();
  OK(Begin(guest.stream));
  for (const Entries& stack :
       {Entries{}, Entries{guest.context.get()}, Entries{guest.other.get()}}) {
    SetStack(stack);
    IS(Said(mine.Synchronize()), STREAM_CAPTURE_IMPLICIT);
    OK(Said(others.Synchronize()));
    BOOST_TEST(GetStack() == stack);
  }
  OK(End(guest.stream));
  OK(Said(mine.Synchronize()));
}

BOOST_AUTO_TEST_CASE(a_lost_capture_is_told) {
  const Guest guest;
  Event event = MakeEvent(ContextOf(guest));
  Stream owned = Stream::Adopt(guest.stream, ContextOf(guest)).value();
  Lose(guest);
  IS(Said(StreamRef::Borrow(guest.stream)), STREAM_CAPTURE_INVALIDATED);
  const StreamRef stream = owned.ref();
  BOOST_TEST((stream.capture_status() == CU_STREAM_CAPTURE_STATUS_INVALIDATED));
  for (const absl::Status& status :
       {stream.Synchronize(), stream.IsDone().status(), stream.WaitFor(event), event.Record(stream),
        owned.Release()}) {
    IS(Said(status), STREAM_CAPTURE_INVALIDATED);
    BOOST_TEST(Mentions(status, "capture is invalidated: end the capture first"), status.message());
  }
  IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
  OK(Said(stream.Synchronize()));
  OK(Said(owned.Release()));
}

BOOST_AUTO_TEST_CASE(destroying_a_capturing_stream_ends_its_capture) {
  const Guest guest;
  for (const CUstreamCaptureMode mode : kModes) {
    for (const bool other_thread : {false, true}) {
      auto stream = std::make_unique<Stream>(MakeStream(ContextOf(guest)));
      OK(Begin(stream->get(), mode));
      OK(guest.Fill(stream->get()));
      if (other_thread) {
        OnAnotherThread([&] { stream.reset(); });
      } else {
        stream.reset();
      }
      OK(RAW(cuEventQuery)(guest.never));  // nothing captures any more
      OK(RAW(cuCtxSynchronize)());
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(of_events)

BOOST_AUTO_TEST_CASE(an_event_in_a_capture_is_only_waited_for) {
  const Guest guest;
  Event event = MakeEvent(ContextOf(guest), CU_EVENT_DEFAULT);
  DuringEachCapture(guest, [&] {
    OK(Said(event.Record(In(guest, guest.stream))));
    for (const absl::Status& status :
         {event.Synchronize(), event.IsDone().status(),
          Event::ElapsedMilliseconds(event, event).status(), In(guest, nullptr).WaitFor(event)}) {
      IS(Said(status), CAPTURED_EVENT);
      BOOST_TEST((status.code() == absl::StatusCode::kFailedPrecondition));
    }
    OK(Said(In(guest, guest.stream).WaitFor(event)));
  });
  // Still so after the capture, until it is recorded outside.
  IS(Said(event.IsDone()), CAPTURED_EVENT);
  OK(Said(event.Record(In(guest, guest.second))));
  OK(Said(event.Synchronize()));
  BOOST_TEST(event.IsDone().value());
}

BOOST_AUTO_TEST_CASE(a_stream_joins_the_capture_and_is_joined) {
  const Guest guest;
  const StreamRef stream = In(guest, guest.stream);
  const StreamRef second = In(guest, guest.second);
  Event forked = MakeEvent(ContextOf(guest));
  Event joined = MakeEvent(ContextOf(guest));
  DuringEachCapture(guest, [&] {
    OK(Said(forked.Record(stream)));
    OK(Said(second.WaitFor(forked)));
    BOOST_TEST((second.capture_status() == CU_STREAM_CAPTURE_STATUS_ACTIVE));
    OK(guest.Fill(guest.second));
    IS(Said(second.Synchronize()), STREAM_CAPTURE_UNSUPPORTED);
    OK(Said(joined.Record(second)));
    OK(Said(stream.WaitFor(joined)));
  });
  BOOST_TEST((second.capture_status() == CU_STREAM_CAPTURE_STATUS_NONE));
}

BOOST_AUTO_TEST_CASE(a_capture_does_not_wait_for_what_is_outside) {
  const Guest guest;
  const StreamRef stream = In(guest, guest.stream);
  const Event never = MakeEvent(ContextOf(guest));
  Event outside = MakeEvent(ContextOf(guest));
  OK(Said(outside.Record(In(guest, guest.second))));
  DuringEachCapture(guest, [&] {
    const absl::Status status = stream.WaitFor(outside);
    IS(Said(status), STREAM_CAPTURE_ISOLATION);
    BOOST_TEST(Mentions(status, "outside of the capture"), status.message());
    OK(Said(stream.WaitFor(never)));
    IS(Said(stream.WaitFor(Event())), INVALID_HANDLE);
  });
}

BOOST_AUTO_TEST_CASE(captures_do_not_merge) {
  const Guest guest;
  Event event = MakeEvent(ContextOf(guest));
  OK(Begin(guest.second));
  OK(Said(event.Record(In(guest, guest.second))));
  DuringEachCapture(
      guest, [&] { IS(Said(In(guest, guest.stream).WaitFor(event)), STREAM_CAPTURE_MERGE); });
  OK(End(guest.second));
  DuringEachCapture(guest, [&] {  // of a capture that is over
    const absl::Status status = In(guest, guest.stream).WaitFor(event);
    IS(Said(status), STREAM_CAPTURE_MERGE);
    BOOST_TEST(Mentions(status, "in one that is over"), status.message());
  });
  const absl::Status status = In(guest, guest.second).WaitFor(event);
  IS(Said(status), INVALID_VALUE);
  BOOST_TEST(Mentions(status, "record it again"), status.message());
}

BOOST_AUTO_TEST_CASE(another_contexts_event_is_refused_and_harms_nothing) {
  const Guest guest;
  Event others = MakeEvent(RefTo(guest.other));
  DuringEachCapture(guest, [&] {
    IS(Said(others.Record(In(guest, guest.stream))), INVALID_HANDLE);
    OK(Said(In(guest, guest.stream).WaitFor(others)));  // never recorded
  });
}

BOOST_AUTO_TEST_CASE(captured_events_are_destroyed_freely) {
  const Guest guest;
  DuringEachCapture(guest, [&] {
    Event event = MakeEvent(ContextOf(guest));
    Event released = MakeEvent(ContextOf(guest));
    OK(Said(event.Record(In(guest, guest.stream))));
    OK(Said(released.Record(In(guest, guest.stream))));
    OK(Said(released.Release()));
  });
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE_END()

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What texts of streams and events advise is done.

#include "cuguest/objects/stream_protocol.h"
#include "test/objects/stream/streams.h"
#include "test/support/advised.h"

BOOST_AUTO_TEST_SUITE(stream)

using namespace cuguest_streams;

namespace {

constexpr auto kImplicit = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
constexpr auto kInCapture = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;

// `status` has `code` and says each of `advice`.
void Refuses(const absl::Status& status, CUresult code, const std::vector<const char*>& advice) {
  BOOST_CHECK_EQUAL(Said(status), code);
  for (const char* words : advice) BOOST_TEST(Mentions(status, words), status.message());
}

ContextRef ContextOf(const Guest& guest) { return RefTo(guest.context); }

}  // namespace

BOOST_AUTO_TEST_CASE(waits_before_and_after_a_capture) {
  const Guest guest;
  const Stream stream = MakeStream(ContextOf(guest));
  OK(Said(stream.ref().Synchronize()));
  OK(Begin(stream.get(), kThreadLocal));
  OK(guest.Fill(stream.get()));
  Refuses(stream.ref().Synchronize(), kInCapture,
          {Advised("captures: end the capture first, or do this before it begins"),
           Advised("while a stream is being captured: make it before the capture or after it")});
  OK(End(stream.get()));
  OK(Said(stream.ref().Synchronize()));
}

BOOST_AUTO_TEST_CASE(ends_an_invalidated_capture_first) {
  const Guest guest;
  const Stream stream = MakeStream(ContextOf(guest));
  OK(Begin(stream.get()));
  unsigned flags = 0;
  IS(RAW(cuStreamGetFlags)(stream.get(), &flags), STREAM_CAPTURE_UNSUPPORTED);
  Refuses(
      stream.ref().Synchronize(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
      {Advised("capture is invalidated: end the capture first"),
       Advised("an earlier call invalidated the capture: end the capture, and find that call")});
  IS(End(stream.get()), STREAM_CAPTURE_INVALIDATED);
  OK(Said(stream.ref().Synchronize()));
  // The call that was found, left out.
  OK(Begin(stream.get()));
  OK(guest.Fill(stream.get()));
  OK(End(stream.get()));
}

BOOST_AUTO_TEST_CASE(non_blocking_stream_for_stream_0) {
  const Guest guest(CU_STREAM_DEFAULT);
  const StreamRef legacy = StreamRef::Borrow(nullptr, ContextOf(guest));
  Event event = MakeEvent(ContextOf(guest));
  OK(Begin(guest.stream, kThreadLocal));
  Refuses(event.Record(legacy), kImplicit,
          {Advised("use a stream made with CU_STREAM_NON_BLOCKING, or wait until the capture has "
                   "ended"),
           Advised("would depend on a capture: give a stream, non-blocking")});
  const Stream stream = MakeStream(ContextOf(guest), CU_STREAM_NON_BLOCKING);
  OK(Said(event.Record(stream.ref())));
  OK(Said(stream.ref().Synchronize()));
  BOOST_CHECK_EQUAL(StatusOf(guest.stream), kActive);
  OK(End(guest.stream));
  OK(Said(event.Record(legacy)));
  OK(Said(legacy.Synchronize()));
}

BOOST_AUTO_TEST_CASE(event_from_outside_of_a_capture) {
  const Guest guest;
  const Stream stream = MakeStream(ContextOf(guest));
  const StreamRef second = StreamRef::Borrow(guest.second, ContextOf(guest));
  Event outside = MakeEvent(ContextOf(guest));
  OK(Said(outside.Record(second)));
  OK(Begin(stream.get()));
  Refuses(stream.ref().WaitFor(outside), CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
          {Advised("record it in a stream of that capture, or let the stream wait before the "
                   "capture begins")});
  Event inside = MakeEvent(ContextOf(guest));
  OK(Said(inside.Record(stream.ref())));
  OK(Said(stream.ref().WaitFor(inside)));
  OK(End(stream.get()));
  OK(Said(stream.ref().WaitFor(outside)));
  OK(Begin(stream.get()));
  OK(guest.Fill(stream.get()));
  OK(End(stream.get()));
}

BOOST_AUTO_TEST_CASE(event_of_another_capture) {
  const Guest guest;
  const Stream stream = MakeStream(ContextOf(guest));
  const StreamRef second = StreamRef::Borrow(guest.second, ContextOf(guest));
  Event event = MakeEvent(ContextOf(guest));
  OK(Begin(guest.second));
  OK(Said(event.Record(second)));
  OK(End(guest.second));
  Refuses(second.WaitFor(event), CUDA_ERROR_INVALID_VALUE,
          {Advised("in a capture that is over or lost: record it again")});
  OK(Begin(stream.get()));
  Refuses(stream.ref().WaitFor(event), CUDA_ERROR_STREAM_CAPTURE_MERGE,
          {Advised("in one that is over: record it in a stream of this one")});
  OK(Said(event.Record(stream.ref())));
  OK(Said(stream.ref().WaitFor(event)));
  OK(End(stream.get()));
  OK(Said(event.Record(second)));
  OK(Said(second.WaitFor(event)));
  OK(Said(event.Synchronize()));
}

BOOST_AUTO_TEST_CASE(event_of_another_context) {
  const Guest guest;
  const Stream stream = MakeStream(ContextOf(guest));
  const Stream others = MakeStream(RefTo(guest.other));
  Event event = MakeEvent(RefTo(guest.other));
  Refuses(event.Record(stream.ref()), CUDA_ERROR_INVALID_HANDLE,
          {Advised("Make one there; streams of any context can wait for it")});
  Event made = MakeEvent(ContextOf(guest));
  OK(Said(made.Record(stream.ref())));
  OK(Said(others.ref().WaitFor(made)));
  OK(Said(others.ref().Synchronize()));
}

BOOST_AUTO_TEST_CASE(default_stream_of_the_arrays_context) {
  const OwnContext array;
  const absl::Status refused = cuguest::StreamOfDlpack(std::nullopt, ContextRef()).status();
  BOOST_TEST(Mentions(refused, Advised("pass the array's")), refused.message());
  const auto found = cuguest::StreamOfDlpack(std::nullopt, RefTo(array));
  OK(Said(found));
  OK(Said((**found).Synchronize()));
}

BOOST_AUTO_TEST_SUITE_END()

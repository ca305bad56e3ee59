// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Event: recorded in its own context, waited for from any.

#include <utility>

#include "cudasim/sim.h"
#include "cuguest/objects/stream.h"
#include "test/objects/stream/streams.h"

BOOST_AUTO_TEST_SUITE(event)

using namespace cuguest_streams;
using cudasim::Sim;
using cuguest_test::NeedsDevices;
using cuguest_test::OnlySim;

namespace {

size_t LiveEvents() { return Sim::Live().events; }

std::string Hex(CUcontext context) {
  char text[32];
  std::snprintf(text, sizeof(text), "%p", static_cast<void*>(context));
  return text;
}

void CheckIsOver(const Event& event, const StreamRef& stream) {
  for (const absl::Status& status :
       {event.Synchronize(), event.IsDone().status(), stream.WaitFor(event),
        Event::ElapsedMilliseconds(event, event).status()}) {
    IS(Said(status), CONTEXT_IS_DESTROYED);
    BOOST_TEST(Mentions(status, "went with its context"));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(it_is_made_and_used_whatever_is_current) {
  const OwnContext a;
  const OwnContext b;
  const Stream stream = MakeStream(RefTo(a));
  for (const Entries& stack : {Entries{}, Entries{a.get()}, Entries{a.get(), b.get()}}) {
    SetStack(stack);
    Event event = MakeEvent(RefTo(a));
    BOOST_CHECK(event.context() == RefTo(a));
    BOOST_TEST(event.IsDone().value());  // never recorded
    OK(Said(event.Record(stream.ref())));
    OK(Said(event.Synchronize()));
    BOOST_TEST(event.IsDone().value());
    OK(Said(stream.ref().WaitFor(event)));
    for (const CUstream special : kSpecial) {
      const StreamRef ref = StreamRef::Borrow(special, RefTo(a));
      OK(Said(event.Record(ref)));
      OK(Said(ref.WaitFor(event)));
    }
    OK(Said(event.Release()));
    BOOST_TEST(GetStack() == stack);
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(flags) {
  const OwnContext a;
  for (const unsigned flags : {unsigned{CU_EVENT_DEFAULT}, unsigned{CU_EVENT_BLOCKING_SYNC},
                               unsigned{CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING}}) {
    OK(Said(Event::Create(RefTo(a), flags)));
  }
  const absl::Status status = Event::Create(RefTo(a), 0x7000).status();
  BOOST_TEST((status.code() == absl::StatusCode::kInvalidArgument));
  BOOST_TEST(Mentions(status, "flags 0x7000"));
  for (const unsigned flags : {unsigned{CU_EVENT_INTERPROCESS}, 0x80U, ~0U}) {
    const absl::Status refused = Event::Create(RefTo(a), flags).status();
    BOOST_TEST((refused.code() == absl::StatusCode::kInvalidArgument), refused.ToString());
  }
}

BOOST_AUTO_TEST_CASE(it_is_not_made_without_a_living_context) {
  IS(Said(Event::Create(ContextRef())), INVALID_CONTEXT);
  Mortal context;
  const ContextRef ref = context.ref();
  context.Die();
  IS(Said(Event::Create(ref)), CONTEXT_IS_DESTROYED);
}

BOOST_AUTO_TEST_CASE(it_is_recorded_in_its_own_context_only) {
  const OwnContext a;
  const OwnContext b;
  const Stream stream = MakeStream(RefTo(b));
  Event event = MakeEvent(RefTo(a));
  for (const StreamRef& other : {stream.ref(), StreamRef::Borrow(nullptr, RefTo(b))}) {
    const absl::Status status = event.Record(other);
    BOOST_TEST((status.code() == absl::StatusCode::kInvalidArgument));
    IS(Said(status), INVALID_HANDLE);
    BOOST_TEST(Mentions(status, Hex(a.get())), status.message());
    BOOST_TEST(Mentions(status, Hex(b.get())), status.message());
    BOOST_TEST(GetStack().empty());
  }
  OK(Said(event.Record(MakeStream(RefTo(a)).ref())));
}

BOOST_AUTO_TEST_CASE(streams_of_other_contexts_wait_for_it) {
  const OwnContext a;
  const OwnContext b;
  const PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  Event event = MakeEvent(RefTo(a));
  OK(Said(event.Record(StreamRef::Borrow(nullptr, RefTo(a)))));
  for (const ContextRef& context : {RefTo(b), primary.context()}) {
    OK(Said(MakeStream(context).ref().WaitFor(event)));
    for (const CUstream special : kSpecial) {
      OK(Said(StreamRef::Borrow(special, context).WaitFor(event)));
    }
  }
  OnAnotherThread([&] { OK(Said(MakeStream(RefTo(b)).ref().WaitFor(event))); });
}

BOOST_AUTO_TEST_CASE(streams_of_other_devices_wait_for_it, *NeedsDevices(2)) {
  const OwnContext first(0);
  const OwnContext second(1);
  const Stream stream = MakeStream(RefTo(first));
  const Stream waiting = MakeStream(RefTo(second));
  Event event = MakeEvent(RefTo(first));
  IS(Said(event.Record(waiting.ref())), INVALID_HANDLE);
  OK(Said(event.Record(stream.ref())));
  OK(Said(waiting.ref().WaitFor(event)));
  OK(Said(StreamRef::Borrow(nullptr, RefTo(second)).WaitFor(event)));
  OK(Said(waiting.ref().Synchronize()));
  BOOST_TEST(event.IsDone().value());
}

BOOST_AUTO_TEST_CASE(a_primary_context_and_its_green_ones_are_one, *NeedsGreenContexts()) {
  const OwnContext user;
  const PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  Green green;
  const Stream streams[] = {MakeStream(green.ref()), MakeStream(primary.context())};
  Event events[] = {MakeEvent(green.ref()), MakeEvent(primary.context())};
  Event users = MakeEvent(RefTo(user));
  for (const Stream& stream : streams) {
    for (Event& event : events) {
      OK(Said(event.Record(stream.ref())));
      OK(Said(stream.ref().WaitFor(event)));
      OK(Said(event.Synchronize()));
    }
    IS(Said(users.Record(stream.ref())), INVALID_HANDLE);
    OK(Said(stream.ref().WaitFor(users)));
  }
  // The driver keeps it, and destroys it with the primary context.
  SetStack({green.get()});
  green.Destroy();
  IS(Said(events[0].Release()), CONTEXT_IS_DESTROYED);
  OK(Said(events[1].Synchronize()));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(the_time_between_two) {
  const OwnContext a;
  const OwnContext b;
  const Stream stream = MakeStream(RefTo(a));
  Event start = MakeEvent(RefTo(a), CU_EVENT_DEFAULT);
  Event end = MakeEvent(RefTo(a), CU_EVENT_DEFAULT);
  const absl::Status never = Event::ElapsedMilliseconds(start, end).status();
  IS(Said(never), INVALID_HANDLE);
  BOOST_TEST(Mentions(never, "never recorded"));
  OK(Said(start.Record(stream.ref())));
  OK(Said(end.Record(stream.ref())));
  OK(Said(end.Synchronize()));
  BOOST_TEST(Event::ElapsedMilliseconds(start, end).value() >= 0);
  SetStack({b.get()});
  BOOST_TEST(Event::ElapsedMilliseconds(start, end).value() >= 0);
  SetStack({});
  Event untimed = MakeEvent(RefTo(a));
  OK(Said(untimed.Record(stream.ref())));
  BOOST_TEST(
      Mentions(Event::ElapsedMilliseconds(start, untimed).status(), "CU_EVENT_DISABLE_TIMING"));
  Event other = MakeEvent(RefTo(b), CU_EVENT_DEFAULT);
  OK(Said(other.Record(StreamRef::Borrow(nullptr, RefTo(b)))));
  OK(Said(other.Synchronize()));
  BOOST_TEST(Mentions(Event::ElapsedMilliseconds(start, other).status(), "different contexts"));
}

BOOST_AUTO_TEST_CASE(the_time_of_what_has_not_happened, *OnlySim()) {
  const OwnContext a;
  const Event start = MakeEvent(RefTo(a), CU_EVENT_DEFAULT);
  Sim::FailCall("cuEventElapsedTime", 1, CUDA_ERROR_NOT_READY);
  BOOST_TEST(
      (Event::ElapsedMilliseconds(start, start).status().code() == absl::StatusCode::kUnavailable));
}

BOOST_AUTO_TEST_CASE(an_empty_one_is_refused) {
  const OwnContext a;
  const Stream stream = MakeStream(RefTo(a));
  Event empty;
  const Event made = MakeEvent(RefTo(a), CU_EVENT_DEFAULT);
  for (const absl::Status& status :
       {empty.Record(stream.ref()), empty.Record(StreamRef()), empty.Synchronize(),
        empty.IsDone().status(), stream.ref().WaitFor(empty),
        Event::ElapsedMilliseconds(empty, empty).status(),
        Event::ElapsedMilliseconds(made, empty).status()}) {
    BOOST_TEST((status.code() == absl::StatusCode::kInvalidArgument), status.message());
    IS(Said(status), INVALID_HANDLE);
    BOOST_TEST(Mentions(status, "an empty event"), status.message());
  }
  OK(Said(empty.Release()));
}

BOOST_AUTO_TEST_CASE(it_moves_and_is_destroyed_once) {
  const OwnContext a;
  const size_t before = LiveEvents();
  {
    Event first = MakeEvent(RefTo(a));
    const CUevent handle = first.get();
    Event second = std::move(first);
    BOOST_CHECK(second.get() == handle);
    BOOST_CHECK(first.get() == nullptr);  // NOLINT(bugprone-use-after-move)
    BOOST_CHECK(first.context() == ContextRef());
    first = MakeEvent(RefTo(a));
    first = std::move(second);  // destroys what it had
    BOOST_CHECK(first.get() == handle);
    Event& same = first;
    first = std::move(same);
    BOOST_CHECK(first.get() == handle);
    if (Sim::IsActive()) BOOST_TEST(LiveEvents() == before + 1);
  }
  BOOST_TEST(LiveEvents() == before);
}

BOOST_AUTO_TEST_CASE(it_is_released_and_leaked) {
  const OwnContext a;
  const size_t before = LiveEvents();
  Event event = MakeEvent(RefTo(a));
  OK(Said(event.Release()));
  BOOST_CHECK(event.get() == nullptr);
  OK(Said(event.Release()));
  event = MakeEvent(RefTo(a));
  const CUevent leaked = event.Leak();
  BOOST_CHECK(event.get() == nullptr);
  OK(RAW(cuEventDestroy)(leaked));
  BOOST_TEST(LiveEvents() == before);
}

BOOST_AUTO_TEST_CASE(it_goes_with_its_context) {
  const OwnContext other;
  const Stream stream = MakeStream(RefTo(other));
  Mortal context;
  Event event = MakeEvent(context.ref());
  const Event destructed = MakeEvent(context.ref());
  const StreamRef stream_0 = StreamRef::Borrow(nullptr, context.ref());
  OK(Said(event.Record(stream_0)));
  context.Die();
  CheckIsOver(event, stream.ref());
  CheckIsOver(event, stream_0);
  IS(Said(event.Record(stream.ref())), CONTEXT_IS_DESTROYED);
  IS(Said(event.Record(stream_0)), CONTEXT_IS_DESTROYED);
  IS(Said(event.Release()), CONTEXT_IS_DESTROYED);
  BOOST_CHECK(event.get() == nullptr);
}

BOOST_AUTO_TEST_CASE(
    it_goes_with_the_primary_context,
    *cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  const OwnContext other;
  const Stream stream = MakeStream(RefTo(other));
  PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  Event event = MakeEvent(primary.context());
  Event assigned = MakeEvent(primary.context());
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  CheckIsOver(event, stream.ref());
  const PrimaryContext revived = PrimaryContext::Retain(Device::Borrow(0));
  CheckIsOver(event, stream.ref());
  assigned = MakeEvent(revived.context());
  OK(Said(assigned.Record(StreamRef::Borrow(nullptr, revived.context()))));
  IS(Said(event.Release()), CONTEXT_IS_DESTROYED);
  static_cast<void>(primary.Leak());
}

BOOST_AUTO_TEST_SUITE_END()

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// StreamRef and Stream: whose streams they are, and what works with another context
// current, or none, and after the context.

#include "cuguest/objects/stream.h"

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "test/objects/stream/streams.h"

BOOST_AUTO_TEST_SUITE(stream)

using namespace cuguest_streams;
using cudasim::Sim;
using cuguest_test::NeedsDevices;

namespace {

// Every operation, from a stack that must stay as it is.
void CheckWorks(const StreamRef& stream, const Entries& stack) {
  SetStack(stack);
  OK(Said(stream.Synchronize()));
  BOOST_TEST(stream.IsDone().value());
  BOOST_TEST(stream.device().value().get() == 0);
  BOOST_TEST((stream.capture_status() == CU_STREAM_CAPTURE_STATUS_NONE));
  Event event = MakeEvent(stream.context());
  OK(Said(event.Record(stream)));
  OK(Said(stream.WaitFor(event)));
  BOOST_TEST(GetStack() == stack);
  SetStack({});
}

// Every operation refuses with `code`, as `canonical`.
void CheckRefuses(const StreamRef& stream, CUresult code, absl::StatusCode canonical) {
  const Entries stack = GetStack();
  for (const absl::Status& status : {stream.Synchronize(), stream.IsDone().status()}) {
    BOOST_CHECK_EQUAL(Said(status), code);
    BOOST_TEST((status.code() == canonical), status.message());
  }
  BOOST_TEST((stream.capture_status() == std::nullopt));
  BOOST_TEST(GetStack() == stack);
}

void CheckIsOver(const StreamRef& stream) {
  CheckRefuses(stream, CUDA_ERROR_CONTEXT_IS_DESTROYED, absl::StatusCode::kFailedPrecondition);
  IS(Said(stream.device()), CONTEXT_IS_DESTROYED);
}

size_t LiveStreams() { return Sim::Live().streams; }

}  // namespace

BOOST_AUTO_TEST_SUITE(ref)

BOOST_AUTO_TEST_CASE(a_created_stream_is_of_its_context_whatever_is_current) {
  const OwnContext a;
  const OwnContext b;
  const Stream stream = MakeStream(RefTo(a));
  for (const Entries& stack : {Entries{}, Entries{a.get()}, Entries{a.get(), b.get()}}) {
    SetStack(stack);
    const StreamRef ref = StreamRef::Borrow(stream.get()).value();
    BOOST_CHECK(ref.get() == stream.get());
    BOOST_CHECK(ref.context() == RefTo(a));
    BOOST_CHECK(ref == stream.ref());
    BOOST_TEST(GetStack() == stack);
    CheckWorks(ref, stack);
  }
}

BOOST_AUTO_TEST_CASE(a_special_stream_stays_with_the_context_that_was_current) {
  const OwnContext a;
  const OwnContext b;
  for (const CUstream stream : kSpecial) {
    SetStack({a.get()});
    const StreamRef ref = StreamRef::Borrow(stream).value();
    SetStack({});
    BOOST_CHECK(ref.get() == stream);
    BOOST_CHECK(ref.context() == RefTo(a));
    BOOST_CHECK(ref == StreamRef::Borrow(stream, RefTo(a)));
    BOOST_CHECK(ref != StreamRef::Borrow(stream, RefTo(b)));
    CheckWorks(ref, {});
    CheckWorks(ref, {a.get()});
    CheckWorks(ref, {a.get(), b.get()});
  }
}

BOOST_AUTO_TEST_CASE(a_special_stream_of_no_context_is_refused) {
  for (const CUstream stream : kSpecial) {
    const absl::StatusOr<StreamRef> ref = StreamRef::Borrow(stream);
    IS(Said(ref), INVALID_CONTEXT);
    BOOST_TEST((ref.status().code() == absl::StatusCode::kFailedPrecondition));
  }
}

BOOST_AUTO_TEST_CASE(the_primary_contexts_streams) {
  const PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  const Stream stream = MakeStream(primary.context());
  CheckWorks(stream.ref(), {});
  for (const CUstream special : kSpecial) {
    CheckWorks(StreamRef::Borrow(special, primary.context()), {});
  }
}

BOOST_AUTO_TEST_CASE(an_empty_ref_is_refused) {
  const StreamRef empty;
  CheckRefuses(empty, CUDA_ERROR_INVALID_HANDLE, absl::StatusCode::kInvalidArgument);
  IS(Said(empty.device()), INVALID_HANDLE);
  BOOST_TEST(Mentions(empty.Synchronize(), "an empty stream"));
  const OwnContext a;
  Event event = MakeEvent(RefTo(a));
  IS(Said(empty.WaitFor(event)), INVALID_HANDLE);
  IS(Said(event.Record(empty)), INVALID_HANDLE);
}

BOOST_AUTO_TEST_CASE(after_its_context_was_destroyed) {
  Mortal context;
  const Stream stream = MakeStream(context.ref());
  const ContextRef ref = context.ref();
  context.Die();
  CheckIsOver(stream.ref());
  BOOST_TEST(Mentions(stream.ref().Synchronize(), "went with its context"));
  for (const CUstream special : kSpecial) CheckIsOver(StreamRef::Borrow(special, ref));
}

BOOST_AUTO_TEST_CASE(
    after_the_primary_context_was_reset,
    *cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  const Stream stream = MakeStream(primary.context());
  const StreamRef stream_0 = StreamRef::Borrow(nullptr, primary.context());
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  CheckIsOver(stream.ref());
  CheckIsOver(stream_0);
  const PrimaryContext revived = PrimaryContext::Retain(Device::Borrow(0));
  CheckIsOver(stream.ref());
  CheckIsOver(stream_0);
  CheckWorks(StreamRef::Borrow(nullptr, revived.context()), {});
  static_cast<void>(primary.Leak());  // the reset took it
}

BOOST_AUTO_TEST_CASE(on_another_thread) {
  const OwnContext a;
  const Stream stream = MakeStream(RefTo(a));
  OnAnotherThread([&] {
    CheckWorks(stream.ref(), {});
    for (const CUstream special : kSpecial) CheckWorks(StreamRef::Borrow(special, RefTo(a)), {});
  });
}

BOOST_AUTO_TEST_CASE(in_a_host_function_it_is_not_permitted) {
  const OwnContext a;
  const Stream busy = MakeStream(RefTo(a));
  const Stream other = MakeStream(RefTo(a));
  struct Seen {
    StreamRef stream;
    absl::Status status;
  } seen = {other.ref(), absl::OkStatus()};
  const auto ask = [](void* data) {
    auto* in = static_cast<Seen*>(data);
    in->status = in->stream.Synchronize();
  };
  OK(RAW(cuLaunchHostFunc)(busy.get(), ask, &seen));
  OK(Said(busy.ref().Synchronize()));
  BOOST_TEST((seen.status.code() == absl::StatusCode::kPermissionDenied), seen.status.message());
}

BOOST_AUTO_TEST_CASE(work_that_is_not_done_yet) {
  const OwnContext a;
  const Stream stream = MakeStream(RefTo(a));
  Event event = MakeEvent(RefTo(a));
  std::atomic<bool> go{false};
  const auto wait = [](void* data) {
    while (!static_cast<std::atomic<bool>*>(data)->load()) {
    }
  };
  OK(RAW(cuLaunchHostFunc)(stream.get(), wait, &go));
  OK(Said(event.Record(stream.ref())));
  BOOST_TEST(!stream.ref().IsDone().value());
  BOOST_TEST(!event.IsDone().value());
  go = true;
  OK(Said(event.Synchronize()));
  BOOST_TEST(event.IsDone().value());
  OK(Said(stream.ref().Synchronize()));
  BOOST_TEST(stream.ref().IsDone().value());
}

BOOST_AUTO_TEST_CASE(of_a_second_device, *NeedsDevices(2)) {
  const OwnContext first(0);
  const OwnContext second(1);
  const Stream stream = MakeStream(RefTo(second));
  for (const Entries& stack : {Entries{}, Entries{first.get()}, Entries{second.get()}}) {
    SetStack(stack);
    BOOST_TEST(stream.ref().device().value().get() == 1);
    OK(Said(stream.ref().Synchronize()));
    const StreamRef stream_0 = StreamRef::Borrow(nullptr, RefTo(second));
    BOOST_TEST(stream_0.device().value().get() == 1);
    OK(Said(stream_0.Synchronize()));
    BOOST_TEST(GetStack() == stack);
  }
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(of_green_contexts, *NeedsGreenContexts())

BOOST_AUTO_TEST_CASE(they_are_the_green_contexts) {
  const Green green;
  const Stream stream = MakeStream(green.ref());
  BOOST_CHECK(StreamRef::Borrow(stream.get()).value().context() == green.ref());
  CheckWorks(stream.ref(), {});
  CheckWorks(StreamRef::Borrow(nullptr, green.ref()), {});
}

BOOST_AUTO_TEST_CASE(there_is_no_per_thread_one) {
  const Green green;
  const StreamRef stream = StreamRef::Borrow(CU_STREAM_PER_THREAD, green.ref());
  CheckRefuses(stream, CUDA_ERROR_INVALID_HANDLE, absl::StatusCode::kInvalidArgument);
  BOOST_TEST(Mentions(stream.Synchronize(), "green contexts do not have"));
  const PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  Event event = MakeEvent(primary.context());
  BOOST_TEST(Mentions(event.Record(stream), "green contexts do not have"));
}

BOOST_AUTO_TEST_CASE(they_go_with_it) {
  Green green;
  Stream stream = MakeStream(green.ref());
  const StreamRef stream_0 = StreamRef::Borrow(nullptr, green.ref());
  SetStack({green.get()});
  green.Destroy();
  CheckIsOver(stream.ref());
  CheckIsOver(stream_0);
  IS(Said(stream.Release()), CONTEXT_IS_DESTROYED);
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(owned)

BOOST_AUTO_TEST_CASE(it_is_made_in_the_given_context_whatever_is_current) {
  const OwnContext a;
  const OwnContext b;
  for (const Entries& stack : {Entries{}, Entries{a.get()}, Entries{a.get(), b.get()}}) {
    SetStack(stack);
    const Stream stream = MakeStream(RefTo(a));
    BOOST_TEST(GetStack() == stack);
    CUcontext context = nullptr;
    OK(RAW(cuStreamGetCtx)(stream.get(), &context));
    BOOST_CHECK(context == a.get());
    BOOST_CHECK(stream.context() == RefTo(a));
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(flags_and_priority) {
  const OwnContext a;
  unsigned flags = 77;
  OK(RAW(cuStreamGetFlags)(MakeStream(RefTo(a)).get(), &flags));
  BOOST_TEST(flags == unsigned{CU_STREAM_NON_BLOCKING});
  OK(RAW(cuStreamGetFlags)(MakeStream(RefTo(a), CU_STREAM_DEFAULT).get(), &flags));
  BOOST_TEST(flags == unsigned{CU_STREAM_DEFAULT});
  for (const auto& [asked, given] : {std::pair{0, 0}, {-2, -2}, {-1000, -5}, {1000, 0}}) {
    const Stream stream = Stream::Create(RefTo(a), CU_STREAM_NON_BLOCKING, asked).value();
    int priority = 77;
    OK(RAW(cuStreamGetPriority)(stream.get(), &priority));
    BOOST_TEST(priority == given);
  }
  const absl::Status status = Stream::Create(RefTo(a), 0x70).status();
  BOOST_TEST((status.code() == absl::StatusCode::kInvalidArgument));
  BOOST_TEST(Mentions(status, "flags 0x70"));
}

BOOST_AUTO_TEST_CASE(it_is_not_made_without_a_living_context) {
  IS(Said(Stream::Create(ContextRef())), INVALID_CONTEXT);
  Mortal context;
  const ContextRef ref = context.ref();
  context.Die();
  IS(Said(Stream::Create(ref)), CONTEXT_IS_DESTROYED);
}

BOOST_AUTO_TEST_CASE(it_moves_and_is_destroyed_once) {
  const OwnContext a;
  const size_t before = LiveStreams();
  {
    Stream first = MakeStream(RefTo(a));
    const CUstream handle = first.get();
    Stream second = std::move(first);
    BOOST_CHECK(second.get() == handle);
    BOOST_CHECK(first.get() == nullptr);  // NOLINT(bugprone-use-after-move)
    BOOST_CHECK(first.ref() == StreamRef());
    IS(Said(first.ref().Synchronize()), INVALID_HANDLE);
    OK(Said(first.Release()));
    first = MakeStream(RefTo(a));
    first = std::move(second);  // destroys what it had
    BOOST_CHECK(first.get() == handle);
    Stream& same = first;
    first = std::move(same);
    BOOST_CHECK(first.get() == handle);
    if (Sim::IsActive()) BOOST_TEST(LiveStreams() == before + 1);
  }
  BOOST_TEST(LiveStreams() == before);
}

BOOST_AUTO_TEST_CASE(it_is_released_leaked_and_adopted) {
  const OwnContext a;
  const size_t before = LiveStreams();
  Stream stream = MakeStream(RefTo(a));
  OK(Said(stream.Release()));
  BOOST_CHECK(stream.get() == nullptr);
  OK(Said(stream.Release()));
  stream = MakeStream(RefTo(a));
  const CUstream handle = stream.Leak();
  BOOST_CHECK(stream.get() == nullptr);
  {
    const Stream adopted = Stream::Adopt(handle, RefTo(a)).value();
    BOOST_CHECK(adopted.get() == handle);
    CheckWorks(adopted.ref(), {});
  }
  BOOST_TEST(LiveStreams() == before);
}

BOOST_AUTO_TEST_CASE(what_nobody_owns_is_not_adopted) {
  const OwnContext a;
  for (const CUstream special : kSpecial) {
    const absl::Status status = Stream::Adopt(special, RefTo(a)).status();
    BOOST_TEST((status.code() == absl::StatusCode::kInvalidArgument));
    BOOST_TEST(Mentions(status, "nobody owns it"));
  }
  const Stream stream = MakeStream(RefTo(a));
  const absl::Status status = Stream::Adopt(stream.get(), ContextRef()).status();
  BOOST_TEST((status.code() == absl::StatusCode::kInvalidArgument));
  OK(Said(stream.ref().Synchronize()));
}

BOOST_AUTO_TEST_CASE(it_goes_with_its_context) {
  Mortal context;
  Stream stream = MakeStream(context.ref());
  const Stream destructed = MakeStream(context.ref());
  context.Die();
  IS(Said(stream.Release()), CONTEXT_IS_DESTROYED);
  BOOST_CHECK(stream.get() == nullptr);
  OK(Said(stream.Release()));
}

BOOST_AUTO_TEST_CASE(
    it_goes_with_the_primary_context,
    *cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  Stream stream = MakeStream(primary.context());
  Stream assigned = MakeStream(primary.context());
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  const PrimaryContext revived = PrimaryContext::Retain(Device::Borrow(0));
  assigned = MakeStream(revived.context());
  IS(Said(stream.Release()), CONTEXT_IS_DESTROYED);
  static_cast<void>(primary.Leak());
}

BOOST_AUTO_TEST_CASE(it_is_destroyed_with_another_context_current_or_none_and_elsewhere) {
  const OwnContext a;
  const OwnContext b;
  const size_t before = LiveStreams();
  for (const Entries& stack : {Entries{}, Entries{b.get()}, Entries{a.get()}}) {
    SetStack(stack);
    { const Stream stream = MakeStream(RefTo(a)); }
    auto elsewhere = std::make_unique<Stream>(MakeStream(RefTo(a)));
    OnAnotherThread([&] { elsewhere.reset(); });
    BOOST_TEST(GetStack() == stack);
  }
  SetStack({});
  BOOST_TEST(LiveStreams() == before);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE_END()

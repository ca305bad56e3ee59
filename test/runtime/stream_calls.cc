// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The calls of stream.h and stream_protocol.h.

#include "cuguest/objects/stream.h"
#include "cuguest/objects/stream_protocol.h"
#include "test/runtime/calls.h"

namespace cuguest_runtime_test {
namespace {

using absl::StatusCode;
using cuguest::Event;
using cuguest::Stream;
using cuguest::StreamRef;

constexpr unsigned kForProcesses = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;

std::vector<Call> Streams() {
  return {
      {"StreamRef StreamRef::Borrow StreamRef::get StreamRef::context", kOk,
       [](const Things& t) {
         const auto ref = StreamRef::Borrow(t.stream.get());
         if (!ref.ok()) return ref.status();
         return Holds(ref->get() == t.stream.get() && ref->context() == t.home.ref());
       }},
      {"StreamRef::Borrow: stream 0", kDepends,
       [](const Things&) { return StreamRef::Borrow(nullptr); }},
      {"StreamRef::Borrow: stream 0 of a context", kOk,
       [](const Things& t) { return StreamRef::Borrow(nullptr, t.home.ref()).IsDone(); }},
      {"StreamRef::device", kOk, [](const Things& t) { return t.stream.ref().device(); }},
      {"StreamRef::device: no stream", kRefused,
       [](const Things&) { return StreamRef().device(); }},
      {"StreamRef::capture_status", kOk,
       [](const Things& t) {
         return Holds(t.stream.ref().capture_status() == CU_STREAM_CAPTURE_STATUS_NONE);
       }},
      {"StreamRef::Synchronize", kOk, [](const Things& t) { return t.stream.ref().Synchronize(); }},
      {"StreamRef::Synchronize: in a capture", kOver,
       [](const Things& t) { return t.capturing.ref().Synchronize(); }},
      {"StreamRef::Synchronize: no stream", kRefused,
       [](const Things&) { return StreamRef().Synchronize(); }},
      {"StreamRef::IsDone", kOk, [](const Things& t) { return t.stream.ref().IsDone(); }},
      {"StreamRef::IsDone: a destroyed context", kOver,
       [](const Things& t) { return StreamRef::Borrow(nullptr, t.ended).IsDone(); }},
      {"StreamRef::WaitFor", kOk,
       [](const Things& t) { return t.stream.ref().WaitFor(t.others_event); }},
      {"StreamRef::WaitFor: no event", kRefused,
       [](const Things& t) { return t.stream.ref().WaitFor(Event()); }},
      {"StreamRef::WaitFor: a destroyed context", kOver,
       [](const Things& t) { return t.stream.ref().WaitFor(t.ended_event); }},
      {"StreamOfDlpack StreamOfArrayInterface StreamNumber", kOk,
       [](const Things& t) -> absl::Status {
         const auto number = cuguest::StreamNumber(t.stream);
         if (!number.ok()) return number.status();
         const auto dlpack = cuguest::StreamOfDlpack(*number, t.home.ref());
         const auto interface = cuguest::StreamOfArrayInterface(*number, t.home.ref());
         if (!dlpack.ok()) return dlpack.status();
         if (!interface.ok()) return interface.status();
         return Holds(*dlpack == t.stream.ref() && *interface == t.stream.ref());
       }},
      {"StreamOfDlpack: 0", kRefused,
       [](const Things& t) { return cuguest::StreamOfDlpack(0, t.home.ref()); }},
      {"StreamOfCudaStream", kOk,
       [](const Things& t) { return cuguest::StreamOfCudaStream(0, 0, t.home.ref()); }},
      {"StreamNumber: no stream", kRefused,
       [](const Things&) { return cuguest::StreamNumber(StreamRef()); }},
      {"Stream::Create", kOk, [](const Things& t) { return Stream::Create(t.home.ref()); }},
      {"Stream::Create: a destroyed context", kOver,
       [](const Things& t) { return Stream::Create(t.ended); }},
      {"Stream::Create: other flags", kRefused,
       [](const Things& t) { return Stream::Create(t.home.ref(), 4711); }},
      {"Stream::Adopt Stream::Leak", kOk,
       [](const Things& t) {
         absl::StatusOr<Stream> stream = Stream::Adopt(t.home.stream(), t.home.ref());
         return stream.ok() ? Holds(stream->Leak() == t.home.stream()) : stream.status();
       }},
      {"Stream::Adopt: stream 0", kRefused,
       [](const Things& t) { return Stream::Adopt(nullptr, t.home.ref()); }},
      {"Stream::Release", kOk,
       [](const Things& t) {
         absl::StatusOr<Stream> stream = Stream::Create(t.home.ref());
         return stream.ok() ? stream->Release() : stream.status();
       }},
      {"Stream Stream::ref Stream::get Stream::context", kOk,
       [](const Things&) {
         const Stream empty;
         return Holds(empty.ref() == StreamRef() && empty.get() == nullptr &&
                      empty.context() == ContextRef());
       }},
  };
}

std::vector<Call> Events() {
  return {
      {"Event::Create", kOk, [](const Things& t) { return Event::Create(t.home.ref()); }},
      {"Event::Create: a destroyed context", kOver,
       [](const Things& t) { return Event::Create(t.ended); }},
      {"Event::Create: for other processes", kOk,
       [](const Things& t) { return Event::Create(t.home.ref(), kForProcesses); }},
      {"Event::Adopt", kOk,
       [](const Things& t) {
         absl::StatusOr<Event> event = Event::Adopt(t.event.get(), t.home.ref(), CU_EVENT_DEFAULT);
         return event.ok() ? Holds(event->Leak() == t.event.get()) : event.status();
       }},
      {"Event::Adopt: no event", kRefused,
       [](const Things& t) { return Event::Adopt(nullptr, t.home.ref(), CU_EVENT_DEFAULT); }},
      {"Event::Export", kOk,
       [](const Things& t) -> Outcome {
         absl::StatusOr<Event> event = Event::Create(t.home.ref(), kForProcesses);
         if (!event.ok()) return event.status();
         const absl::Status status = event->Export().status();
         return {status, std::make_shared<Event>(*std::move(event))};
       }},
      {"Event::Export: made for this process", kRefused,
       [](const Things& t) { return t.event.Export().status(); }},
      {"Event::Import: bytes that are no handle", kDepends,
       [](const Things& t) { return Event::Import(t.home.ref(), CUipcEventHandle{}); }},
      {"Event::Import: a destroyed context", kOver,
       [](const Things& t) { return Event::Import(t.ended, CUipcEventHandle{}); }},
      {"Event::Record", kOk,
       [](const Things& t) -> Outcome {
         absl::StatusOr<Event> event = Event::Create(t.home.ref());
         if (!event.ok()) return event.status();
         const absl::Status status = event->Record(t.stream.ref());
         return {status, std::make_shared<Event>(*std::move(event))};
       }},
      {"Event::Release", kOk,
       [](const Things& t) {
         absl::StatusOr<Event> event = Event::Create(t.home.ref());
         return event.ok() ? event->Release() : event.status();
       }},
      {"Event::Record: of another context", kRefused,
       [](const Things& t) -> Outcome {
         absl::StatusOr<Event> event = Event::Create(t.other.ref());
         if (!event.ok()) return event.status();
         const absl::Status status = event->Record(t.stream.ref());
         return {status, std::make_shared<Event>(*std::move(event))};
       }},
      {"Event::IsDone", kOk, [](const Things& t) { return t.event.IsDone(); }},
      {"Event::IsDone: a destroyed context", kOver,
       [](const Things& t) { return t.ended_event.IsDone(); }},
      {"Event::Synchronize", kOk, [](const Things& t) { return t.event.Synchronize(); }},
      {"Event::Synchronize: no event", kRefused,
       [](const Things&) { return Event().Synchronize(); }},
      {"Event::ElapsedMilliseconds", kOk,
       [](const Things& t) { return Event::ElapsedMilliseconds(t.event, t.event); }},
      {"Event::ElapsedMilliseconds: of two contexts", kRefused,
       [](const Things& t) { return Event::ElapsedMilliseconds(t.event, t.others_event); }},
      {"Event Event::get Event::context Event::Leak", kOk,
       [](const Things&) {
         Event empty;
         return Holds(empty.get() == nullptr && empty.context() == ContextRef() &&
                      empty.Leak() == nullptr);
       }},
  };
}

}  // namespace

std::vector<Call> StreamCalls() { return Joined({Streams(), Events()}); }

}  // namespace cuguest_runtime_test

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In which context does a library work when it is handed a stream or a pointer?
//
// A stream and an allocation each belong to a context, and AcquireFromStream and
// AcquireFromPointer ask the driver for it. The current context need not be that one, and the
// primary one may be inactive. Where there is nothing to ask (stream 0, pool memory) the current
// context is used, if it is on the right device.
//
//      given, the host's stack       works in        named by
//      a stream of A, [X]<           [X] [A]<        the stream
//      a stream of A, (empty)        [A]<            the stream

#include <functional>

#include "cuguest/acquire.h"
#include "cuguest/acquired_guard.h"
#include "examples/guest/saxpy.h"
#include "examples/support/stage.h"

using cuguest::Acquired;
using cuguest::AcquiredGuard;

// The library, which doubles numbers. It links no CUDA library, and has no context of its own.
namespace guest {

using Trace = std::function<void(const Acquired& context)>;  // for the pictures

absl::Status DoubleHere(const cuguest::StreamRef& stream, CUdeviceptr numbers, std::size_t count) {
  CUGUEST_ASSIGN_OR_RETURN(const auto view, cuguest::DeviceView<float>::Borrow(numbers, count));
  CUGUEST_RETURN_IF_ERROR(LaunchSaxpy(stream, 1.0F, view, view));
  return stream.Synchronize();
}

absl::Status DoubleOn(CUstream stream, CUdeviceptr numbers, std::size_t count, const Trace& trace) {
  const AcquiredGuard guard(stream);
  CUGUEST_RETURN_IF_ERROR(guard);
  trace(guard.acquired());
  return DoubleHere(cuguest::StreamRef::Borrow(stream, guard), numbers, count);
}

absl::Status Double(CUdeviceptr numbers, std::size_t count, const Trace& trace) {
  const AcquiredGuard guard(numbers);
  CUGUEST_RETURN_IF_ERROR(guard);
  trace(guard.acquired());
  CUGUEST_ASSIGN_OR_RETURN(const auto stream, cuguest::Stream::Create(guard));
  return DoubleHere(stream, numbers, count);
}

// The host's numbers, on a device that may have no context yet.
absl::StatusOr<Signal> Doubled(cuguest::Device device, const Signal& numbers,
                               cuguest::IfInactive if_inactive, const Trace& trace) {
  const AcquiredGuard guard(device, if_inactive);
  CUGUEST_RETURN_IF_ERROR(guard);
  trace(guard.acquired());
  CUGUEST_ASSIGN_OR_RETURN(const auto stream, cuguest::Stream::Create(guard));
  return Saxpy(stream, 1.0F, numbers, numbers);
}

}  // namespace guest

// A program with a context A, in which it makes the stream and the memory, and a context X.
namespace host {

using cuguest::IfInactive;
using support::IsRefused;
using support::Ramp;
using Buffer = cuguest::DeviceBuffer<float>;
using Source = Acquired::Source;

absl::Status Demonstrate(const cuguest::ObjectDriver& driver, cuguest::Device device) {
  support::Stage stage(driver, device, {"X", "A", "P"});
  const auto a = cuguest::ContextRef::Borrow(stage["A"]);
  CUGUEST_ASSIGN_OR_RETURN(const auto stream, cuguest::Stream::Create(a));
  CUGUEST_ASSIGN_OR_RETURN(Buffer memory, Buffer::CopyOf(a, Ramp(1)));
  CUGUEST_ASSIGN_OR_RETURN(Buffer pool, Buffer::AllocateAsync(stream, memory.size()));
  CUGUEST_RETURN_IF_ERROR(stream.ref().Synchronize());
  const std::size_t count = memory.size();
  const auto expect = [&stage](const char* given, const char* inside, Source source) {
    return [=, &stage](const Acquired& context) {
      CHECK(stage.Shows(given, inside, Name(context.source())));
      CHECK(context.source() == source);
    };
  };

  support::PrintScene("The host has X current");
  stage.Set({"X"});
  {
    const support::Undisturbed undisturbed;
    CHECK_OK(guest::DoubleOn(stream.get(), memory.get(), count,
                             expect("a stream of A", "[X] [A]<", Source::kStream)));
    CHECK_OK(
        guest::Double(memory.get(), count, expect("memory of A", "[X] [A]<", Source::kPointer)));
    CHECK_OK(guest::Double(memory.get() + 400, count - 100,
                           expect("memory of A + 400", "[X] [A]<", Source::kPointer)));
    CHECK_OK(guest::Double(pool.get(), count,
                           expect("pool memory of the device", "[X]<", Source::kCurrent)));
    CHECK_OK(
        guest::DoubleOn(nullptr, pool.get(), count, expect("stream 0", "[X]<", Source::kCurrent)));
    CHECK(IsRefused("plain host memory",
                    guest::Double(reinterpret_cast<CUdeviceptr>(&count), count, nullptr),
                    absl::StatusCode::kInvalidArgument));
  }

  support::PrintScene("The host has nothing current");
  stage.Set({});
  const support::Undisturbed undisturbed;
  CHECK_OK(guest::DoubleOn(stream.get(), memory.get(), count,
                           expect("a stream of A", "[A]<", Source::kStream)));
  CHECK_OK(guest::Double(memory.get(), count, expect("memory of A", "[A]<", Source::kPointer)));
  CHECK(IsRefused("stream 0", guest::DoubleOn(nullptr, memory.get(), count, nullptr),
                  absl::StatusCode::kFailedPrecondition));
  CHECK(IsRefused("pool memory of the device", guest::Double(pool.get(), count, nullptr),
                  absl::StatusCode::kFailedPrecondition));

  // The first 100 numbers were doubled by four of five calls.
  guest::Signal expected = Ramp(32);
  for (std::size_t i = 0; i < 100; ++i) expected[i] /= 2;
  CHECK(support::Has(cuguest::Download(memory.view()), expected));

  support::PrintScene("Numbers of the host's, and a device without a context");
  CHECK(IsRefused("IfInactive::kRefuse",
                  guest::Doubled(device, Ramp(1), IfInactive::kRefuse, nullptr).status(),
                  absl::StatusCode::kFailedPrecondition));
  CHECK(!support::IsActive(device));
  CHECK(support::Has(guest::Doubled(device, Ramp(1), IfInactive::kCreate,
                                    expect("IfInactive::kCreate", "[P]<", Source::kCreated)),
                     Ramp(2)));
  CHECK(!support::IsActive(device));  // created for the call
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample(
      "In which context does a library work when it is handed a stream or a pointer?",
      &host::Demonstrate);
}

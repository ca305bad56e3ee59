// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/acquire.h"
#include "cuguest/acquired_guard.h"

#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/status.h"
#include "test/acquire/acquired.h"
#include "test/objects/memory/memories.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(acquire)

namespace {

using cudasim::Sim;
using cuguest::AcquireCurrent;
using cuguest::Acquired;
using cuguest::AcquireFromPointer;
using cuguest::AcquireFromStream;
using cuguest::AcquireOn;
using cuguest::ContextGuard;
using cuguest::Device;
using cuguest::IfInactive;
using cuguest::PrimaryContext;
using cuguest_test::BeginCount;
using cuguest_test::DeviceOf;
using cuguest_test::GetStack;
using cuguest_test::NeedsDevices;
using cuguest_test::NeedsDriver;
using cuguest_test::OnlySim;
using cuguest_test::OwnContext;
using cuguest_test::Result;
using cuguest_test::SetStack;
using cuguest_test::Source;
using Stack = std::vector<CUcontext>;

const Device kFirst = Device::Borrow(0);
const Device kSecond = Device::Borrow(1);

bool IsActive(Device device) { return PrimaryContext::Query(device).active; }

// A stream of its own in the current context.
class OwnStream {
 public:
  explicit OwnStream(unsigned flags = CU_STREAM_NON_BLOCKING) {
    BOOST_TEST(RAW(cuStreamCreate)(&stream_, flags) == CUDA_SUCCESS);
  }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  ~OwnStream() { BOOST_TEST(RAW(cuStreamDestroy)(stream_) == CUDA_SUCCESS); }
  CUstream get() const { return stream_; }

 private:
  CUstream stream_ = nullptr;
};

}  // namespace

BOOST_AUTO_TEST_CASE(every_source_has_its_own_name) {
  std::set<std::string> names;
  for (int source = 0; source <= static_cast<int>(Source::kCreated); ++source) {
    names.insert(cuguest::Name(static_cast<Source>(source)));
  }
  BOOST_TEST(names.size() == 5u);
  BOOST_TEST(names.count("the pointer") == 1u);
  BOOST_TEST(names.count("nowhere") == 0u);
}

BOOST_AUTO_TEST_CASE(from_a_stream_whatever_is_current) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  const OwnStream stream;
  for (const Stack& stack : {Stack{a.get()}, Stack{a.get(), b.get()}, Stack{}}) {
    SetStack(stack);
    ACQUIRES(AcquireFromStream(stream.get()), a.get(), Source::kStream);
    BOOST_TEST(GetStack() == stack);
  }
  BOOST_TEST(!IsActive(kFirst));
}

BOOST_AUTO_TEST_CASE(a_special_stream_means_the_current_context) {
  const OwnContext a;
  for (const CUstream stream : {CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    REFUSES(ToStatus(AcquireFromStream(stream)), kFailedPrecondition, "means the current one",
            "stream");
    SetStack({a.get()});
    ACQUIRES(AcquireFromStream(stream), a.get(), Source::kCurrent);
    SetStack({});
  }
  BOOST_TEST(!IsActive(kFirst));
}

// Not of a created stream: its handle dies with its context.
BOOST_AUTO_TEST_CASE(a_special_stream_where_the_current_context_is_gone) {
  OwnContext a;
  SetStack({a.get(), a.get()});  // its memory stays
  BOOST_TEST(RAW(cuCtxDestroy)(a.release()) == CUDA_SUCCESS);
  for (const CUstream stream : {CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    REFUSES(ToStatus(AcquireFromStream(stream)), kFailedPrecondition, "CONTEXT_IS_DESTROYED",
            "means the current one");
  }
  CUcontext popped = nullptr;
  BOOST_TEST(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(from_a_pointer_whatever_is_current) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  CUdeviceptr device = 0;
  CUdeviceptr managed = 0;
  void* host = nullptr;
  BOOST_TEST(RAW(cuMemAlloc)(&device, 4096) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuMemAllocManaged)(&managed, 4096, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuMemAllocHost)(&host, 4096) == CUDA_SUCCESS);
  for (const Stack& stack : {Stack{a.get()}, Stack{a.get(), b.get()}, Stack{}}) {
    SetStack(stack);
    ACQUIRES(AcquireFromPointer(device), a.get(), Source::kPointer);
    ACQUIRES(AcquireFromPointer(device + 4095), a.get(), Source::kPointer);
    ACQUIRES(AcquireFromPointer(managed + 100), a.get(), Source::kPointer);
    ACQUIRES(AcquireFromPointer(static_cast<char*>(host) + 100), a.get(), Source::kPointer);
    BOOST_TEST(GetStack() == stack);
  }
  BOOST_TEST(RAW(cuMemFree)(device) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuMemFree)(managed) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuMemFreeHost)(host) == CUDA_SUCCESS);
  REFUSES(ToStatus(AcquireFromPointer(device)), kInvalidArgument, "not memory that CUDA knows");
  BOOST_TEST(!IsActive(kFirst));
}

BOOST_AUTO_TEST_CASE(a_pointer_that_cuda_does_not_know) {
  const OwnContext a;
  static int plain = 0;
  for (const Stack& stack : {Stack{}, Stack{a.get()}}) {
    SetStack(stack);
    REFUSES(ToStatus(AcquireFromPointer(&plain)), kInvalidArgument, "pointer 0x",
            "not memory that CUDA knows");
    REFUSES(ToStatus(AcquireFromPointer(nullptr)), kInvalidArgument, "pointer 0x0");
    REFUSES(ToStatus(AcquireFromPointer(CUdeviceptr{8})), kInvalidArgument, "pointer 0x8");
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(the_current_context_if_it_is_on_the_device) {
  const OwnContext a;
  REFUSES(ToStatus(AcquireCurrent(kFirst)), kFailedPrecondition, "device 0",
          "no context is current");
  SetStack({a.get()});
  ACQUIRES(AcquireCurrent(kFirst), a.get(), Source::kCurrent);
  ACQUIRES(AcquireOn(kFirst), a.get(), Source::kCurrent);
  ACQUIRES(AcquireOn(kFirst, IfInactive::kCreate), a.get(), Source::kCurrent);
  SetStack({});
  BOOST_TEST(!IsActive(kFirst));
}

BOOST_AUTO_TEST_CASE(a_dead_current_context_is_not_taken) {
  OwnContext a;
  SetStack({a.get(), a.get()});
  BOOST_TEST(RAW(cuCtxDestroy)(a.release()) == CUDA_SUCCESS);
  REFUSES(ToStatus(AcquireCurrent(kFirst)), kFailedPrecondition, "CONTEXT_IS_DESTROYED");
  REFUSES(ToStatus(AcquireOn(kFirst)), kFailedPrecondition, "not active");
  {
    const PrimaryContext primary = PrimaryContext::Retain(kFirst);
    ACQUIRES(AcquireOn(kFirst), primary.get(), Source::kPrimary);
  }
  CUcontext popped = nullptr;
  BOOST_TEST(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(the_wrong_device_is_an_error_that_names_both, *NeedsDevices(2)) {
  const OwnContext first(0);
  const OwnContext second(1);
  SetStack({first.get()});
  REFUSES(ToStatus(AcquireCurrent(kSecond)), kFailedPrecondition, "device 1", "is on device 0");
  REFUSES(ToStatus(AcquireOn(kSecond)), kFailedPrecondition, "acquire a context, device 1",
          "is on device 0", "not active");
  REFUSES(ToStatus(AcquireCurrent(kSecond)), kFailedPrecondition,
          "is on device 0");  // which was seen there
  SetStack({first.get(), second.get()});
  ACQUIRES(AcquireOn(kSecond), second.get(), Source::kCurrent);
  REFUSES(ToStatus(AcquireCurrent(kFirst)), kFailedPrecondition, "device 0", "is on device 1");
  {
    const PrimaryContext primary = PrimaryContext::Retain(kFirst);
    ACQUIRES(AcquireOn(kFirst), primary.get(), Source::kPrimary);
  }
  BOOST_TEST(GetStack() == (Stack{first.get(), second.get()}));
  SetStack({});
  BOOST_TEST(!IsActive(kFirst));
  BOOST_TEST(!IsActive(kSecond));
}

BOOST_AUTO_TEST_CASE(the_primary_is_kept_alive_and_created_only_when_asked) {
  REFUSES(ToStatus(AcquireOn(kFirst)), kFailedPrecondition, "no context is current", "not active",
          "kCreate");
  BOOST_TEST(!IsActive(kFirst));
  {
    const Result created = AcquireOn(kFirst, IfInactive::kCreate);
    BOOST_TEST_REQUIRE(created.ok());
    BOOST_TEST((created.source() == Source::kCreated));
    BOOST_TEST(IsActive(kFirst));
    const Result active = AcquireOn(kFirst, IfInactive::kCreate);
    ACQUIRES(active, created.get(), Source::kPrimary);
    const ContextGuard guard(active.context());
    BOOST_TEST(guard.ok());
  }
  BOOST_TEST(!IsActive(kFirst));
  BOOST_TEST(GetStack().empty());
}

BOOST_AUTO_TEST_CASE(what_is_made_of_a_primary_keeps_it) {
  {
    const Acquired acquired(PrimaryContext::Retain(kFirst), Source::kPrimary);
    BOOST_TEST(IsActive(kFirst));
    BOOST_TEST(acquired.context().IsAlive());
    BOOST_TEST((acquired.source() == Source::kPrimary));
    BOOST_TEST(DeviceOf(acquired) == 0);
  }
  BOOST_TEST(!IsActive(kFirst));
}

BOOST_AUTO_TEST_CASE(pool_memory_creates_the_primary_when_asked) {
  CUdeviceptr pooled = 0;
  {
    const OwnContext a;
    SetStack({a.get()});
    BOOST_TEST_REQUIRE(RAW(cuMemAllocAsync)(&pooled, 64, nullptr) == CUDA_SUCCESS);
    BOOST_TEST(RAW(cuStreamSynchronize)(nullptr) == CUDA_SUCCESS);
    SetStack({});
    REFUSES(ToStatus(AcquireFromPointer(pooled)), kFailedPrecondition, "memory of device 0",
            "kCreate");
    BOOST_TEST(!IsActive(kFirst));
    {
      const Result created = AcquireFromPointer(pooled, IfInactive::kCreate);
      BOOST_TEST_REQUIRE(created.ok());
      BOOST_TEST((created.source() == Source::kCreated));
      BOOST_TEST(DeviceOf(created) == 0);
      BOOST_TEST(IsActive(kFirst));
    }
    BOOST_TEST(!IsActive(kFirst));
    SetStack({a.get()});
    ACQUIRES(AcquireFromPointer(reinterpret_cast<const void*>(pooled), IfInactive::kCreate),
             a.get(), Source::kCurrent);
    BOOST_TEST(!IsActive(kFirst));
    BOOST_TEST(RAW(cuMemFree)(pooled) == CUDA_SUCCESS);
  }
}

BOOST_AUTO_TEST_CASE(a_special_stream_of_a_device) {
  for (CUstream special : {CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    REFUSES(ToStatus(AcquireFromStream(special, kFirst)), kFailedPrecondition, "not active",
            "kCreate");
    BOOST_TEST(!IsActive(kFirst));
    const Result created = AcquireFromStream(special, kFirst, IfInactive::kCreate);
    BOOST_TEST_REQUIRE(created.ok());
    BOOST_TEST((created.source() == Source::kCreated));
    ACQUIRES(AcquireFromStream(special, kFirst), created.get(), Source::kPrimary);
  }
  BOOST_TEST(!IsActive(kFirst));
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  const OwnStream stream;
  ACQUIRES(AcquireFromStream(nullptr, kFirst), a.get(), Source::kCurrent);
  SetStack({a.get(), b.get()});
  ACQUIRES(AcquireFromStream(stream.get(), kFirst, IfInactive::kCreate), a.get(), Source::kStream);
  ACQUIRES(AcquireFromStream(stream.get(), Device::Borrow(99)), a.get(), Source::kStream);
  BOOST_TEST(!IsActive(kFirst));
}

BOOST_AUTO_TEST_CASE(it_names_its_device, *NeedsDevices(2)) {
  const OwnContext a;
  const OwnContext other(1);
  for (const Stack& stack : {Stack{a.get()}, Stack{other.get()}}) {
    SetStack({other.get()});
    const OwnStream stream;
    CUdeviceptr memory = 0;
    BOOST_TEST(RAW(cuMemAlloc)(&memory, 64) == CUDA_SUCCESS);
    SetStack(stack);
    BOOST_TEST(DeviceOf(AcquireFromStream(stream.get())) == 1);
    BOOST_TEST(DeviceOf(AcquireFromPointer(memory)) == 1);
    BOOST_TEST(DeviceOf(AcquireFromStream(nullptr)) == (stack[0] == a.get() ? 0 : 1));
    BOOST_TEST(DeviceOf(AcquireOn(kSecond, IfInactive::kCreate)) == 1);
    BOOST_TEST(GetStack() == stack);
    SetStack({other.get()});
    BOOST_TEST(RAW(cuMemFree)(memory) == CUDA_SUCCESS);
  }
}

BOOST_AUTO_TEST_CASE(a_destroyed_context_has_no_device_to_ask) {
  auto a = std::make_unique<OwnContext>();
  SetStack({a->get()});
  CUstream stream = nullptr;
  BOOST_TEST(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  SetStack({});
  const Result acquired = AcquireFromStream(stream);
  BOOST_TEST_REQUIRE(acquired.ok());
  a.reset();
  OwnContext::DestroyIdle();
  Device device = kFirst;
  BOOST_TEST(acquired.GetDevice(&device) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

BOOST_AUTO_TEST_CASE(no_such_device) {
  BOOST_TEST((ToStatus(AcquireOn(Device::Borrow(99))).code() != absl::StatusCode::kOk));
  REFUSES(ToStatus(AcquireCurrent(Device::Borrow(99))), kFailedPrecondition, "device 99");
}

// Whatever this thread remembers: stream 0 leaves it a context whose device was not asked for.
BOOST_AUTO_TEST_CASE(a_number_that_is_no_device) {
  const OwnContext a;
  for (const int number :
       {-1, -2, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()}) {
    const Device none = Device::Borrow(number);
    std::thread([&] {
      SetStack({a.get()});
      BOOST_TEST(AcquireFromStream(nullptr).ok());
      BOOST_TEST(!AcquireOn(none).ok());
      BOOST_TEST(!AcquireOn(none, IfInactive::kCreate).ok());
      BOOST_TEST(!AcquireCurrent(none).ok());
      BOOST_TEST(!cuguest::AcquiredGuard(none).ok());
      BOOST_TEST(GetStack() == Stack{a.get()});
      SetStack({});
    }).join();
  }
}

BOOST_AUTO_TEST_CASE(the_calls_of_the_header, *OnlySim()) {
  const OwnContext a;
  SetStack({a.get()});
  const OwnStream stream;
  CUdeviceptr device = 0;
  BOOST_TEST(RAW(cuMemAlloc)(&device, 64) == CUDA_SUCCESS);
  const auto calls = [](const auto& acquire) {
    BeginCount();
    BOOST_TEST(acquire().ok());
    return Sim::TotalCalls();
  };
  const auto calls_of_device = [](const Result& acquired) {
    BeginCount();
    BOOST_TEST(DeviceOf(acquired) == 0);
    return Sim::TotalCalls();
  };
  BOOST_TEST(calls([&] { return AcquireFromStream(stream.get()); }) == 2u);
  BOOST_TEST(calls([&] { return AcquireFromStream(nullptr); }) == 2u);
  BOOST_TEST(calls([&] { return AcquireFromPointer(device); }) == 2u);
  BOOST_TEST(calls([&] { return AcquireCurrent(kFirst); }) == 3u);
  BOOST_TEST(calls([&] { return AcquireOn(kFirst); }) == 3u);
  BOOST_TEST(RAW(cuMemFree)(device) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuMemAllocAsync)(&device, 64, stream.get()) == CUDA_SUCCESS);
  BOOST_TEST(calls([&] { return AcquireFromPointer(device); }) == 6u);
  BOOST_TEST(RAW(cuMemFreeAsync)(device, stream.get()) == CUDA_SUCCESS);
  const Result of_stream = AcquireFromStream(stream.get());
  const bool names_context = cuguest_test::HasDriver(13000);  // cuCtxGetDevice takes it
  BOOST_TEST(calls_of_device(of_stream) == (names_context ? 2u : 4u));
  const Result current = AcquireCurrent(kFirst);
  BOOST_TEST(calls_of_device(current) == 0u);
  SetStack({});
  BOOST_TEST(calls_of_device(of_stream) == (names_context ? 2u : 6u));
  const PrimaryContext primary = PrimaryContext::Retain(kFirst);
  const Result on_device = AcquireOn(kFirst);
  BOOST_TEST(calls_of_device(on_device) == 0u);
  BOOST_TEST(calls([&] { return AcquireOn(kFirst); }) == 5u);  // the last of them to release it
}

BOOST_AUTO_TEST_CASE(a_context_that_was_seen_current_is_two_calls,
                     *OnlySim() * NeedsDriver(12000, "cuCtxGetId")) {
  const OwnContext a;
  const OwnContext b;
  const std::pair<const char*, std::function<Result()>> paths[] = {
      {"AcquireOn", [] { return AcquireOn(kFirst); }},
      {"AcquireOn, kCreate", [] { return AcquireOn(kFirst, IfInactive::kCreate); }},
      {"AcquireCurrent", [] { return AcquireCurrent(kFirst); }},
      {"AcquireFromStream", [] { return AcquireFromStream(nullptr); }},
  };
  for (const auto& [name, path] : paths) {
    SetStack({a.get()});
    ACQUIRES(path(), a.get(), Source::kCurrent);
    Sim::ResetCalls();
    const Result seen = path();
    BOOST_TEST(Sim::Calls("cuCtxGetId") == 1u, name);
    BOOST_TEST(Sim::TotalCalls() == 2u, name);
    ACQUIRES(seen, a.get(), Source::kCurrent);
    SetStack({b.get()});
    ACQUIRES(path(), b.get(), Source::kCurrent);
  }
  // A stream does not need the device: it is asked for later.
  BeginCount();
  BOOST_TEST(AcquireFromStream(nullptr).ok());
  BOOST_TEST(Sim::Calls("cuCtxGetDevice") == 0u);
  ACQUIRES(AcquireOn(kFirst), b.get(), Source::kCurrent);
  BOOST_TEST(Sim::Calls("cuCtxGetDevice") == 1u);
  Sim::ResetCalls();
  const Result elsewhere = AcquireCurrent(Device::Borrow(7));
  BOOST_TEST(Sim::TotalCalls() == 2u);
  REFUSES(cuguest::ToStatus(elsewhere), kFailedPrecondition, "device 7", "is on device 0");
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_seen_context_that_was_reset_is_not_taken) {
  PrimaryContext old = PrimaryContext::Retain(kFirst);
  SetStack({old.get()});
  const auto seen = AcquireOn(kFirst);
  ACQUIRES(seen, old.get(), Source::kCurrent);
  BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(kFirst.get()) == CUDA_SUCCESS);
  REFUSES(ToStatus(AcquireCurrent(kFirst)), kFailedPrecondition, "CONTEXT_IS_DESTROYED");
  REFUSES(ToStatus(AcquireFromStream(nullptr)), kFailedPrecondition, "CONTEXT_IS_DESTROYED");
  const PrimaryContext renewed = PrimaryContext::Retain(kFirst);
  BOOST_TEST_REQUIRE(renewed.get() == old.get());
  const auto again = AcquireOn(kFirst);
  ACQUIRES(again, renewed.get(), Source::kCurrent);
  BOOST_TEST((again.context() == renewed.context()));
  SetStack({});
  BOOST_TEST(old.Release().ok());
}

BOOST_AUTO_TEST_CASE(each_thread_has_seen_its_own_context) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  ACQUIRES(AcquireOn(kFirst), a.get(), Source::kCurrent);
  std::thread([&b] {
    BOOST_TEST(!AcquireCurrent(kFirst).ok());
    SetStack({b.get()});
    for (int i = 0; i < 2; ++i) ACQUIRES(AcquireOn(kFirst), b.get(), Source::kCurrent);
    SetStack({});
    BOOST_TEST(!AcquireCurrent(kFirst).ok());
  }).join();
  ACQUIRES(AcquireOn(kFirst), a.get(), Source::kCurrent);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(any_driver_call_fails, *OnlySim()) {
  const OwnContext a;
  SetStack({a.get()});
  const OwnStream stream;
  CUdeviceptr device = 0;
  BOOST_TEST(RAW(cuMemAlloc)(&device, 64) == CUDA_SUCCESS);
  const auto live = Sim::Live();
  struct Path {
    std::function<Result()> acquire;
    Stack stack;
    int least;  // how many failures are errors: what cuCtxGetId did not say is asked again
  };
  const std::vector<Path> paths = {
      {[&] { return AcquireFromStream(stream.get()); }, {a.get()}, 2},
      {[&] { return AcquireFromStream(nullptr); }, {a.get()}, 1},
      {[&] { return AcquireFromPointer(device); }, {a.get()}, 2},
      {[&] { return AcquireCurrent(kFirst); }, {a.get()}, 2},
      {[&] { return AcquireOn(kFirst); }, {a.get()}, 2},
      {[&] { return AcquireOn(kFirst, IfInactive::kCreate); }, {}, 2},
  };
  for (const auto& [path, stack, least] : paths) {
    SetStack(stack);
    BOOST_TEST(path().ok());
    int failures = 0;
    for (size_t i = 0; Sim::EntryName(i) != nullptr; ++i) {
      for (unsigned nth = 1; nth <= 2; ++nth) {
        BeginCount();
        Sim::FailCall(Sim::EntryName(i), nth, CUDA_ERROR_OPERATING_SYSTEM);
        {
          const Result result = path();
          if (!result.ok()) {
            ++failures;
            BOOST_TEST(cuguest::CodeOf(cuguest::ToStatus(result)).has_value(),
                       cuguest::ToStatus(result).ToString());
          }
          Sim::ClearFaults();
        }
        BOOST_TEST(GetStack() == stack);
        BOOST_TEST((Sim::Live() == live), Sim::EntryName(i) << " leaked");
      }
    }
    BOOST_TEST(failures >= least);
  }
  SetStack({});
  BOOST_TEST(RAW(cuMemFree)(device) == CUDA_SUCCESS);
}

BOOST_AUTO_TEST_SUITE_END()

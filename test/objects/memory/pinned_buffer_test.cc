// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/pinned_buffer.h"

#include <limits>
#include <thread>
#include <utility>

#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/memory.h"
#include "test/objects/memory/memories.h"

BOOST_AUTO_TEST_SUITE(pinned_buffer)

namespace {

using cudasim::Sim;
using cuguest::ContextRef;
using cuguest::Describe;
using cuguest::Device;
using cuguest::DeviceBuffer;
using cuguest::HostSpan;
using cuguest::MemoryDescription;
using cuguest::PinnedBuffer;
using namespace cuguest_test;
using Buffer = PinnedBuffer<int>;

constexpr size_t kInts = kBytes / sizeof(int);

static_assert(!std::is_copy_constructible_v<Buffer> && !std::is_copy_assignable_v<Buffer>);
static_assert(std::is_nothrow_move_constructible_v<Buffer>);
static_assert(std::is_nothrow_move_assignable_v<Buffer>);

bool IsThere(const void* pointer) {
  return Describe(pointer).value().kind != MemoryDescription::Kind::kUnregistered;
}

Buffer Allocated(const Owner& owner, unsigned flags = 0) {
  absl::StatusOr<Buffer> buffer = Buffer::Allocate(owner.ref(), kInts, flags);
  BOOST_TEST_REQUIRE(buffer.ok(), buffer.status().ToString());
  return *std::move(buffer);
}

}  // namespace

BOOST_AUTO_TEST_CASE(in_its_context_whatever_is_current) {
  const Owner owner;
  const OwnContext other;
  for (const Stack& stack : {Stack{}, Stack{owner.get()}, Stack{owner.get(), other.get()}}) {
    SetStack(stack);
    const Undisturbed undisturbed;
    Buffer buffer = Allocated(owner);
    BOOST_TEST(buffer.size() == kInts);
    BOOST_TEST(buffer.size_bytes() == kBytes);
    BOOST_TEST((buffer.context() == owner.ref()));
    BOOST_TEST((buffer.device() == Device::Borrow(0)));
    BOOST_TEST((Describe(buffer.data())->kind == MemoryDescription::Kind::kPinnedHost));
    BOOST_TEST((Describe(buffer.data())->context == owner.ref()));
    buffer.data()[kInts - 1] = 7;
    absl::StatusOr<DeviceBuffer<int>> there =
        DeviceBuffer<int>::CopyOf(owner.ref(), std::as_const(buffer).span());
    BOOST_TEST_REQUIRE(there.ok());
    buffer.data()[kInts - 1] = 0;
    SUCCEEDS(Download(there->view(), buffer.span()));
    BOOST_TEST(buffer.data()[kInts - 1] == 7);
    const int* const pointer = buffer.data();
    SUCCEEDS(buffer.Release());
    BOOST_TEST(buffer.empty());
    BOOST_TEST(buffer.data() == nullptr);
    BOOST_TEST(!IsThere(pointer));
    SUCCEEDS(buffer.Release());
  }
}

BOOST_AUTO_TEST_CASE(flags_are_those_of_the_driver) {
  const Owner owner;
  for (const unsigned flags : {CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_DEVICEMAP,
                               CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_WRITECOMBINED}) {
    const Undisturbed undisturbed;
    Buffer buffer = Allocated(owner, flags);
    unsigned got = 0;
    SetStack({owner.get()});
    OK(RAW(cuMemHostGetFlags)(&got, buffer.data()));
    SetStack({});
    BOOST_TEST((got & flags) == flags);
  }
  const Undisturbed undisturbed;
  REFUSES(Buffer::Allocate(owner.ref(), 1, 0x100).status(), kInvalidArgument, "flags 256");
}

BOOST_AUTO_TEST_CASE(freed_on_another_thread_with_another_context_current) {
  const Owner owner;
  const Owner other;
  const Undisturbed undisturbed;
  Buffer buffer = Allocated(owner);
  const int* const pointer = buffer.data();
  std::thread([moved = std::move(buffer), &other]() mutable {
    SetStack({other.get()});
    moved = Buffer();
    BOOST_TEST((GetStack() == Stack{other.get()}));
    SetStack({});
  }).join();
  BOOST_TEST(!IsThere(pointer));
}

BOOST_AUTO_TEST_CASE(no_elements_and_too_many) {
  const Owner owner;
  const Undisturbed undisturbed;
  BOOST_TEST(Buffer::Allocate(owner.ref(), 0)->empty());
  BOOST_TEST(Buffer().span().size() == 0u);
  const size_t most = std::numeric_limits<size_t>::max();
  REFUSES(Buffer::Allocate(owner.ref(), most / 4 + 1).status(), kInvalidArgument,
          "elements of 4 bytes");
}

BOOST_AUTO_TEST_CASE(after_the_end_of_its_context_no_driver_is_called) {
  Buffer buffer;
  Buffer destroyed_silently;
  ContextRef dead;
  {
    const Owner owner;
    dead = owner.ref();
    buffer = Allocated(owner);
    destroyed_silently = Allocated(owner);
  }
  OwnContext::DestroyIdle();
  Sim::ResetCalls();
  REFUSES(buffer.Release(), kFailedPrecondition, "CONTEXT_IS_DESTROYED", "gone with its context");
  BOOST_TEST(buffer.empty());
  destroyed_silently = Buffer();
  BOOST_TEST(Sim::Calls("cuMemFreeHost") == 0u);
  REFUSES(Buffer::Allocate(dead, 1).status(), kFailedPrecondition, "CONTEXT_IS_DESTROYED");
  REFUSES(Buffer::Allocate(ContextRef(), 1).status(), kFailedPrecondition, "allocate 4 bytes");
}

BOOST_AUTO_TEST_CASE(moves_and_leaks) {
  const Owner owner;
  const Undisturbed undisturbed;
  Buffer buffer = Allocated(owner);
  const int* const pointer = buffer.data();
  Buffer other(std::move(buffer));
  BOOST_TEST(buffer.empty());  // NOLINT(bugprone-use-after-move)
  BOOST_TEST(other.data() == pointer);
  buffer = Allocated(owner);
  std::swap(buffer, other);
  BOOST_TEST(buffer.data() == pointer);
  const HostSpan<int> leaked = buffer.Leak();
  BOOST_TEST(buffer.empty());
  BOOST_TEST(leaked.data() == pointer);
  BOOST_TEST(leaked.size() == kInts);
  BOOST_TEST(IsThere(pointer));
  SetStack({owner.get()});
  OK(RAW(cuMemFreeHost)(leaked.data()));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(invalidates_no_capture) {
  const Owner owner;
  const Owner other;
  for (const CUstreamCaptureMode mode : kCaptureModes) {
    const Capture capture(owner.stream(), mode);
    for (const Owner* home : {&owner, &other}) {
      Buffer buffer = Allocated(*home);
      SUCCEEDS(buffer.Release());
      std::thread([home] { const Buffer elsewhere = Allocated(*home); }).join();
    }
  }
}

BOOST_AUTO_TEST_CASE(a_failed_free_loses_nothing, *OnlySim()) {
  const Owner owner;
  const Undisturbed undisturbed;
  Buffer buffer = Allocated(owner);
  const int* const pointer = buffer.data();
  for (const char* entry :
       {"cuMemFreeHost", "cuCtxPushCurrent", "cuThreadExchangeStreamCaptureMode"}) {
    Sim::FailCall(entry, 1, CUDA_ERROR_OPERATING_SYSTEM);
    REFUSES(buffer.Release(), kInternal, "free 4096 bytes at 0x", "OPERATING_SYSTEM");
    BOOST_TEST(buffer.data() == pointer);
    Sim::ClearFaults();
  }
  SUCCEEDS(buffer.Release());
}

BOOST_AUTO_TEST_CASE(every_call_of_an_allocation_fails_once, *OnlySim()) {
  const Owner owner;
  const ContextRef context = owner.ref();
  FailEachCall({"cuCtxGetId", "cuCtxPushCurrent", "cuMemHostAlloc", "cuPointerGetAttributes"},
               [&] { return Buffer::Allocate(context, kInts); });
}

BOOST_AUTO_TEST_CASE(it_costs_what_it_says, *OnlySim()) {
  const Owner owner;
  const ContextRef context = owner.ref();
  for (const unsigned switched : {0u, 2u}) {
    SetStack(switched == 0 ? Stack{owner.get()} : Stack{});
    cuguest_test::BeginCount();
    Buffer buffer = Buffer::Allocate(context, kInts).value();
    BOOST_TEST(Sim::TotalCalls() == 8 + switched);
    cuguest_test::BeginCount();
    SUCCEEDS(buffer.Release());
    BOOST_TEST(Sim::TotalCalls() == 6 + switched);
  }
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()

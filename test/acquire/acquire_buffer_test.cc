// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuguest/acquire.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/pinned_buffer.h"
#include "cuguest/status.h"
#include "test/acquire/acquired.h"
#include "test/objects/memory/memories.h"

BOOST_AUTO_TEST_SUITE(acquire_buffer)

namespace {

using cudasim::Sim;
using cuguest::Acquired;
using cuguest::AcquireFromBuffer;
using cuguest::Device;
using cuguest::DeviceBuffer;
using cuguest::DeviceView;
using cuguest::IfInactive;
using cuguest::PinnedBuffer;
using cuguest::PrimaryContext;
using cuguest::StreamRef;
using namespace cuguest_test;

constexpr size_t kMost = std::numeric_limits<size_t>::max();

}  // namespace

BOOST_AUTO_TEST_CASE(every_kind_from_its_first_byte_to_its_last) {
  const Owner owner;
  const OwnContext other;
  const Memories all(owner);
  for (const Stack& stack : {Stack{}, Stack{owner.get()}, Stack{owner.get(), other.get()}}) {
    SetStack(stack);
    const Undisturbed undisturbed;
    for (const CUdeviceptr pointer : {all.device, all.managed, all.pinned, all.registered}) {
      ACQUIRES(AcquireFromBuffer(pointer, kBytes), owner.get(), Source::kPointer);
      ACQUIRES(AcquireFromBuffer(pointer + kBytes - 1, 1), owner.get(), Source::kPointer);
      ACQUIRES(AcquireFromBuffer(reinterpret_cast<const void*>(pointer + 16), kBytes - 16),
               owner.get(), Source::kPointer);
      REFUSES(ToStatus(AcquireFromBuffer(pointer, kBytes + 1)), kInvalidArgument,
              "acquire a context, 4097 bytes at 0x", "only 4096 of them", "which is 4096 bytes at");
      REFUSES(ToStatus(AcquireFromBuffer(pointer + 16, kBytes)), kInvalidArgument,
              "only 4080 of them", absl::StrCat("0x", absl::Hex(pointer + 16)),
              absl::StrCat("4096 bytes at 0x", absl::Hex(pointer)));
    }
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(memory_that_no_context_owns) {
  const Owner owner;
  const Memories all(owner);
  const std::pair<CUdeviceptr, size_t> pieces[] = {{all.pool, kBytes}, {all.virtual_memory, kUnit}};
  for (const auto& [pointer, bytes] : pieces) {
    const Undisturbed undisturbed;
    REFUSES(ToStatus(AcquireFromBuffer(pointer, bytes)), kFailedPrecondition,
            "memory of device 0 that no context owns", "not active");
    {
      const Result created = AcquireFromBuffer(pointer, bytes, IfInactive::kCreate);
      BOOST_TEST_REQUIRE(created.ok());
      BOOST_TEST((created.source() == Source::kCreated));
    }
    owner.Enter();
    ACQUIRES(AcquireFromBuffer(pointer, bytes), owner.get(), Source::kCurrent);
    REFUSES(ToStatus(AcquireFromBuffer(pointer, bytes + 1, IfInactive::kCreate)), kInvalidArgument,
            absl::StrCat("only ", bytes, " of them"));
    SetStack({});
  }
}

BOOST_AUTO_TEST_CASE(no_range_at_all) {
  const Owner owner;
  const CUdeviceptr memory = owner.Allocate();
  const Undisturbed undisturbed;
  Sim::ResetCalls();
  REFUSES(ToStatus(AcquireFromBuffer(memory, 0)), kInvalidArgument, "0 bytes at 0x", "nothing");
  REFUSES(ToStatus(AcquireFromBuffer(memory, kMost)), kInvalidArgument,
          "18446744073709551615 bytes at 0x", "more than there are addresses");
  BOOST_TEST(Sim::TotalCalls() == 0u);
  REFUSES(ToStatus(AcquireFromBuffer(memory, kMost - memory)), kInvalidArgument, "only 4096");
  static int plain = 0;
  REFUSES(ToStatus(AcquireFromBuffer(&plain, 4)), kInvalidArgument, "not memory that CUDA knows");
  REFUSES(ToStatus(AcquireFromBuffer(nullptr, 4)), kInvalidArgument, "pointer 0x0");
}

BOOST_AUTO_TEST_CASE(mappings_side_by_side_are_one_piece) {
  const Owner owner;
  owner.Enter();
  const Virtual range(4);
  range.Map(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  range.Map(1, CU_MEM_ACCESS_FLAGS_PROT_READ);
  range.Map(3, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  ACQUIRES(AcquireFromBuffer(range.At(0) + 1, 2 * kUnit - 1), owner.get(), Source::kCurrent);
  ACQUIRES(AcquireFromBuffer(range.At(1), kUnit), owner.get(), Source::kCurrent);
  REFUSES(ToStatus(AcquireFromBuffer(range.At(0), 2 * kUnit + 1)), kInvalidArgument,
          "only 4194304 of them", "which is 4194304 bytes at");
  REFUSES(ToStatus(AcquireFromBuffer(range.At(2), 1)), kInvalidArgument, "not memory that CUDA");
  REFUSES(ToStatus(AcquireFromBuffer(range.At(3), kUnit + 1)), kInvalidArgument, "only 2097152");
  SetStack({});
}

BOOST_AUTO_TEST_CASE(mappings_of_two_devices_are_two_pieces, *NeedsDevices(2)) {
  const Owner owner;
  owner.Enter();
  const Virtual range(2);
  range.Map(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  range.Map(1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 1);
  ACQUIRES(AcquireFromBuffer(range.At(0), kUnit), owner.get(), Source::kCurrent);
  REFUSES(ToStatus(AcquireFromBuffer(range.At(0), 2 * kUnit)), kInvalidArgument, "only 2097152");
  REFUSES(ToStatus(AcquireFromBuffer(range.At(1), kUnit)), kFailedPrecondition,
          "memory of device 1 that no context owns");
  SetStack({});
}

BOOST_AUTO_TEST_CASE(buffers_and_views_know_their_context) {
  const Owner owner;
  const OwnContext other;
  const auto memory = DeviceBuffer<int>::Allocate(owner.ref(), 16).value();
  const auto pinned = PinnedBuffer<int>::Allocate(owner.ref(), 16).value();
  const DeviceView<const int> view = memory.view();
  for (const Stack& stack : {Stack{}, Stack{other.get()}}) {
    SetStack(stack);
    const Undisturbed undisturbed;
    BeginCount();
    ACQUIRES(AcquireFromBuffer(memory), owner.get(), Source::kPointer);
    BOOST_TEST(Sim::TotalCalls() <= 2u);  // one is the test's
    ACQUIRES(AcquireFromBuffer(view), owner.get(), Source::kPointer);
    ACQUIRES(AcquireFromBuffer(memory.view(), IfInactive::kCreate), owner.get(), Source::kPointer);
    ACQUIRES(AcquireFromBuffer(pinned), owner.get(), Source::kPointer);
    const Result acquired = AcquireFromBuffer(pinned);
    BOOST_TEST(cuguest_test::DeviceOf(acquired) == 0);
  }
  SetStack({});
  REFUSES(ToStatus(AcquireFromBuffer(DeviceBuffer<int>())), kInvalidArgument,
          "of a buffer: it is null or empty");
  REFUSES(ToStatus(AcquireFromBuffer(PinnedBuffer<int>())), kInvalidArgument,
          "of a buffer: it is null or empty");
  REFUSES(ToStatus(AcquireFromBuffer(DeviceView<int>())), kInvalidArgument,
          "of a buffer: it is null or empty");
}

BOOST_AUTO_TEST_CASE(a_buffer_of_a_pool_names_its_device) {
  const Owner owner;
  const StreamRef stream = StreamRef::Borrow(owner.stream(), owner.ref());
  auto pooled = DeviceBuffer<int>::AllocateAsync(stream, 16).value();
  {
    const Undisturbed undisturbed;
    REFUSES(ToStatus(AcquireFromBuffer(pooled)), kFailedPrecondition, "device 0", "not active");
    const Result created = AcquireFromBuffer(pooled, IfInactive::kCreate);
    BOOST_TEST_REQUIRE(created.ok());
    BOOST_TEST((created.source() == Source::kCreated));
    ACQUIRES(AcquireFromBuffer(pooled.view()), created.get(), Source::kPrimary);
  }
  owner.Enter();
  ACQUIRES(AcquireFromBuffer(pooled), owner.get(), Source::kCurrent);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_buffer_whose_context_was_reset_or_destroyed) {
  PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  DeviceBuffer<int> reset = DeviceBuffer<int>::Allocate(primary.context(), 16).value();
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  const PrimaryContext again = PrimaryContext::Retain(Device::Borrow(0));
  if (HasDriver(12000)) {
    REFUSES(ToStatus(AcquireFromBuffer(reset)), kFailedPrecondition, "CONTEXT_IS_DESTROYED",
            "acquire a context, memory of context 0x");
  }
  static_cast<void>(reset.Leak());
  SUCCEEDS(ToStatus(primary.Release()));
  DeviceBuffer<int> destroyed;
  {
    const Owner owner;
    destroyed = DeviceBuffer<int>::Allocate(owner.ref(), 16).value();
  }
  OwnContext::DestroyIdle();
  REFUSES(ToStatus(AcquireFromBuffer(destroyed)), kFailedPrecondition, "CONTEXT_IS_DESTROYED");
}

// Below CUDA 11.3 virtual memory has no known mapping; below 10.2 there are no ranges.
BOOST_AUTO_TEST_CASE(a_driver_that_does_not_know_the_newer_attributes, *OnlySim()) {
  const Owner owner;
  const CUdeviceptr memory = owner.Allocate();
  Sim::FailCall("cuPointerGetAttributes", 1, CUDA_ERROR_INVALID_VALUE);
  REFUSES(ToStatus(AcquireFromBuffer(memory, kBytes + 1)), kInvalidArgument, "only 4096");
  Sim::FailCall("cuPointerGetAttributes", 1, CUDA_ERROR_INVALID_VALUE);
  ACQUIRES(AcquireFromBuffer(memory, kBytes), owner.get(), Source::kPointer);
  for (const unsigned nth : {1u, 2u}) {
    Sim::FailCall("cuPointerGetAttributes", nth, CUDA_ERROR_INVALID_VALUE);
  }
  ACQUIRES(AcquireFromBuffer(memory, kBytes + 1), owner.get(), Source::kPointer);
  Sim::ClearFaults();
}

BOOST_AUTO_TEST_CASE(it_costs_what_it_says, *OnlySim()) {
  const Owner owner;
  const Memories all(owner);
  const Virtual range(3);
  for (const size_t unit : {0, 1, 2}) range.Map(unit, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  const auto cost = [](CUdeviceptr pointer, size_t bytes) {
    BeginCount();
    BOOST_TEST(AcquireFromBuffer(pointer, bytes).ok());
    return Sim::TotalCalls();
  };
  BOOST_TEST(cost(all.device, kBytes) == 2u);
  BOOST_TEST(cost(all.pinned, kBytes) == 2u);
  owner.Enter();
  BOOST_TEST(cost(all.pool, kBytes) == 5u);
  BOOST_TEST(cost(range.At(0), kUnit) == 5u);
  BOOST_TEST(cost(range.At(0), 3 * kUnit) == 7u);
  SetStack({});
  const PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  BOOST_TEST(cost(all.pool, kBytes) <= 9u);  // with one that releases it
  const auto buffer = DeviceBuffer<int>::Allocate(owner.ref(), 16).value();
  BeginCount();
  BOOST_TEST(AcquireFromBuffer(buffer).ok());
  BOOST_TEST(Sim::TotalCalls() == 1u);
}

BOOST_AUTO_TEST_CASE(every_call_fails_once, *OnlySim()) {
  const Owner owner;
  const Memories all(owner);
  const PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  const auto buffer = DeviceBuffer<int>::Allocate(owner.ref(), 16).value();
  FailEachCall({"cuPointerGetAttributes", "cuCtxGetId"},
               [&] { return AcquireFromBuffer(all.device, kBytes); });
  FailEachCall({"cuPointerGetAttributes", "cuDeviceGet", "cuDevicePrimaryCtxRetain"},
               [&] { return AcquireFromBuffer(all.virtual_memory, kBytes); });
  FailEachCall({"cuCtxGetId"}, [&] { return AcquireFromBuffer(buffer); });
}

BOOST_AUTO_TEST_SUITE_END()

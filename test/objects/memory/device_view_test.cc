// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/device_view.h"

#include <limits>

#include "test/objects/memory/memories.h"

BOOST_AUTO_TEST_SUITE(device_view)

namespace {

using cudasim::Sim;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::DeviceView;
using namespace cuguest_test;
using View = DeviceView<int>;

constexpr size_t kInts = kBytes / sizeof(int);

static_assert(std::is_convertible_v<DeviceView<int>, DeviceView<const int>>);
static_assert(!std::is_convertible_v<DeviceView<const int>, DeviceView<int>>);
static_assert(!std::is_convertible_v<DeviceView<int>, DeviceView<const unsigned>>);

View Borrowed(CUdeviceptr pointer, size_t count) {
  const absl::StatusOr<View> view = View::Borrow(pointer, count);
  BOOST_TEST(view.ok(), view.status().ToString());
  return view.ok() ? *view : View();
}

}  // namespace

BOOST_AUTO_TEST_CASE(of_every_kind_of_memory_whatever_is_current) {
  const Owner owner;
  const OwnContext other;
  const Memories all(owner);
  for (const Stack& stack : {Stack{}, Stack{owner.get()}, Stack{other.get()}}) {
    SetStack(stack);
    const Undisturbed undisturbed;
    for (const CUdeviceptr pointer : all.All()) {
      const View view = Borrowed(pointer + 4, kInts - 1);
      BOOST_TEST(view.get() == pointer + 4);
      BOOST_TEST(AddressOf(view.data()) == pointer + 4);
      BOOST_TEST(view.size() == kInts - 1);
      BOOST_TEST(view.size_bytes() == kBytes - 4);
      BOOST_TEST(!view.empty());
      BOOST_TEST((view.device() == Device::Borrow(0)));
      const bool is_owned = pointer != all.pool && pointer != all.virtual_memory;
      BOOST_TEST((view.context() == (is_owned ? owner.ref() : ContextRef())));
    }
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_view_of_const_of_a_typed_pointer) {
  const Owner owner;
  const CUdeviceptr pointer = owner.Allocate();
  const auto view = DeviceView<const int>::Borrow(reinterpret_cast<const int*>(pointer), kInts);
  BOOST_TEST_REQUIRE(view.ok());
  const DeviceView<const int> converted = Borrowed(pointer, kInts);
  BOOST_TEST(converted.get() == view->get());
  BOOST_TEST(converted.size() == view->size());
  BOOST_TEST((converted.context() == owner.ref()));
}

BOOST_AUTO_TEST_CASE(of_no_elements) {
  const Undisturbed undisturbed;
  for (const CUdeviceptr pointer : {CUdeviceptr{0}, CUdeviceptr{3}}) {
    const View view = Borrowed(pointer, 0);
    BOOST_TEST(view.empty());
    BOOST_TEST(view.get() == 0u);
    BOOST_TEST(view.data() == nullptr);
  }
}

BOOST_AUTO_TEST_CASE(memory_that_cuda_does_not_know) {
  const Owner owner;
  const CUdeviceptr freed = owner.Allocate();
  OK(RAW(cuMemFree)(freed));
  int local[4] = {};
  const Undisturbed undisturbed;
  for (const CUdeviceptr pointer : {CUdeviceptr{0}, freed, AddressOf(local), CUdeviceptr{64}}) {
    REFUSES(View::Borrow(pointer, 4).status(), kInvalidArgument, "borrow 16 bytes", "does not know",
            "freed");
  }
  REFUSES(View::Borrow(nullptr, 1).status(), kInvalidArgument, "0x0");
}

BOOST_AUTO_TEST_CASE(memory_that_ends_too_early) {
  const Owner owner;
  const Memories all(owner);
  for (const CUdeviceptr pointer :
       {all.device, all.managed, all.pinned, all.registered, all.pool}) {
    Borrowed(pointer, kInts);
    REFUSES(View::Borrow(pointer, kInts + 1).status(), kInvalidArgument, "only 4096 are there");
    REFUSES(View::Borrow(pointer + kBytes - 4, 2).status(), kInvalidArgument, "only 4 are there");
  }
  REFUSES(View::Borrow(all.virtual_memory, kUnit).status(), kInvalidArgument,
          "only 2097152 are there");
}

BOOST_AUTO_TEST_CASE(memory_that_is_not_aligned) {
  const Owner owner;
  const CUdeviceptr pointer = owner.Allocate();
  REFUSES(View::Borrow(pointer + 2, 1).status(), kInvalidArgument, "not aligned to 4 bytes");
  BOOST_TEST(DeviceView<char>::Borrow(pointer + 1, 1).ok());
  BOOST_TEST(DeviceView<short>::Borrow(pointer + 2, 1).ok());
}

BOOST_AUTO_TEST_CASE(more_bytes_than_there_are_numbers_for) {
  const Owner owner;
  const CUdeviceptr pointer = owner.Allocate();
  const size_t most = std::numeric_limits<size_t>::max();
  REFUSES(View::Borrow(pointer, most / 4 + 1).status(), kInvalidArgument, "of 4 bytes",
          "more than there are addresses");
  REFUSES(View::Borrow(pointer, most / 4).status(), kInvalidArgument, "only 4096 are there");
}

BOOST_AUTO_TEST_CASE(mappings_side_by_side_are_one_range) {
  const Virtual range(4);
  range.Map(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  range.Map(1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  range.Map(2, CU_MEM_ACCESS_FLAGS_PROT_READ);
  constexpr size_t kUnitInts = kUnit / sizeof(int);
  const View view = Borrowed(range.At(0) + 4, 2 * kUnitInts - 1);
  BOOST_TEST(view.get() == range.At(0) + 4);
  BOOST_TEST(view.size() == 2 * kUnitInts - 1);
  using ConstView = DeviceView<const int>;
  BOOST_TEST(ConstView::Borrow(range.At(0), 3 * kUnitInts).ok());
  REFUSES(View::Borrow(range.At(0), 3 * kUnitInts).status(), kFailedPrecondition, "read-only",
          "cuMemSetAccess");
  REFUSES(ConstView::Borrow(range.At(0), 3 * kUnitInts + 1).status(), kInvalidArgument,
          "only 6291456 are there");
}

// A buffer of several allocations, mapped one behind the other (openucx/ucx#11461), of which each
// was lent to other devices (openucx/ucx#11265).
BOOST_AUTO_TEST_CASE(mappings_of_two_devices, *NeedsDevices(2)) {
  using ConstView = DeviceView<const int>;
  constexpr size_t kUnitInts = kUnit / sizeof(int);
  const Virtual range(3);
  range.Map(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 0);
  range.Map(1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 1);
  range.Map(2, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 0);
  for (const size_t units : {size_t{2}, size_t{3}}) {
    REFUSES(View::Borrow(range.At(0), units * kUnitInts).status(), kFailedPrecondition,
            "memory of device 1", "no access", "device 0 may not use it", "cuMemSetAccess");
    REFUSES(ConstView::Borrow(range.At(0), units * kUnitInts).status(), kFailedPrecondition,
            "memory of device 1", "device 0 may not use it");
  }
  REFUSES(View::Borrow(range.At(1), 2 * kUnitInts).status(), kFailedPrecondition,
          "memory of device 0", "device 1 may not use it");
  BOOST_TEST((Borrowed(range.At(1), kUnitInts).device() == Device::Borrow(1)));
  range.Allow(1, 0, CU_MEM_ACCESS_FLAGS_PROT_READ);
  REFUSES(View::Borrow(range.At(0), 3 * kUnitInts).status(), kFailedPrecondition, "read-only",
          "device 0 may not use it so");
  BOOST_TEST(ConstView::Borrow(range.At(0), 3 * kUnitInts).ok());
  range.Allow(1, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  const View view = Borrowed(range.At(0), 3 * kUnitInts);
  BOOST_TEST(view.size() == 3 * kUnitInts);
  BOOST_TEST((view.device() == Device::Borrow(0)));
  REFUSES(View::Borrow(range.At(1), 2 * kUnitInts).status(), kFailedPrecondition,
          "device 1 may not use it");
}

BOOST_AUTO_TEST_CASE(each_further_mapping_costs_two_calls, *OnlySim()) {
  const Virtual range(3);
  for (const size_t unit : {0, 1, 2}) range.Map(unit, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  const auto cost = [&range](size_t bytes) {
    Sim::ResetCalls();
    BOOST_TEST(DeviceView<char>::Borrow(range.At(0), bytes).ok());
    return Sim::TotalCalls();
  };
  BOOST_TEST(cost(kUnit) == 2u);
  BOOST_TEST(cost(kUnit + 1) == 4u);
  BOOST_TEST(cost(3 * kUnit) == 6u);
}

BOOST_AUTO_TEST_CASE(another_devices_mapping_costs_one_more, *OnlySim() * NeedsDevices(2)) {
  const Virtual range(2);
  range.Map(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 0);
  range.Map(1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 1);
  range.Allow(1, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  Sim::ResetCalls();
  Borrowed(range.At(0), 2 * kUnit / sizeof(int));
  BOOST_TEST(Sim::TotalCalls() == 5u);
  FailEachCall({"cuPointerGetAttributes", "cuMemGetAccess"},
               [&] { return View::Borrow(range.At(0), 2 * kUnit / sizeof(int)); });
}

// Of which NVIDIA/cuda-python#2795 asks for those on a NUMA node.
BOOST_AUTO_TEST_CASE(host_pool_allocations_are_one_range, *NeedsHostPools()) {
  const Owner owner;
  const HostPool pool;
  const CUdeviceptr pointers[] = {pool.Allocate(owner), pool.Allocate(owner)};
  for (const CUdeviceptr pointer : pointers) {
    const Undisturbed undisturbed;
    Borrowed(pointer, kInts);
    Borrowed(pointer + 256, kInts - 64);
    REFUSES(View::Borrow(pointer, kInts + 1).status(), kInvalidArgument, "borrow 4100 bytes",
            "the allocation has 4096 in all");
    REFUSES(View::Borrow(pointer, size_t{1} << 40).status(), kInvalidArgument,
            "the allocation has 4096 in all");
    REFUSES(View::Borrow(pointer + 256, kInts).status(), kInvalidArgument,
            "the allocation has 4096 in all, and ends before that");
    REFUSES(View::Borrow(pointer + kBytes - 4, 2).status(), kInvalidArgument, "ends before that");
  }
  FailEachCall({"cuPointerGetAttributes"}, [&] { return View::Borrow(pointers[0], kInts); });
  for (const CUdeviceptr pointer : pointers) OK(RAW(cuMemFree)(pointer));
}

BOOST_AUTO_TEST_CASE(virtual_memory_that_the_device_may_not_use) {
  const Virtual range(1);
  range.Map(0, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  REFUSES(View::Borrow(range.At(0), 1).status(), kFailedPrecondition, "no access");
  REFUSES(DeviceView<const int>::Borrow(range.At(0), 1).status(), kFailedPrecondition, "no access");
}

BOOST_AUTO_TEST_CASE(a_part_of_a_view) {
  const Owner owner;
  const CUdeviceptr pointer = owner.Allocate();
  const View view = Borrowed(pointer, 10);
  const View part = view.Subview(2, 3).value();
  BOOST_TEST(part.get() == pointer + 8);
  BOOST_TEST(part.size() == 3u);
  BOOST_TEST((part.context() == owner.ref()));
  BOOST_TEST(view.Subview(0, 10)->get() == pointer);
  BOOST_TEST(view.Subview(10, 0)->empty());
  REFUSES(view.Subview(11, 0).status(), kOutOfRange, "0 elements", "element 11", "view of 10");
  REFUSES(view.Subview(2, 9).status(), kOutOfRange, "9 elements", "element 2");
  REFUSES(view.Subview(1, std::numeric_limits<size_t>::max()).status(), kOutOfRange, "view of 10");
  REFUSES(View().Subview(0, 1).status(), kOutOfRange, "view of 0");
}

BOOST_AUTO_TEST_CASE(of_the_second_device, *NeedsDevices(2)) {
  const Owner owner(1);
  const View view = Borrowed(owner.Allocate(), kInts);
  BOOST_TEST((view.device() == Device::Borrow(1)));
  BOOST_TEST((view.context() == owner.ref()));
}

BOOST_AUTO_TEST_CASE(every_call_fails_once, *OnlySim()) {
  const Owner owner;
  const Memories all(owner);
  for (const CUdeviceptr pointer : all.All()) {
    FailEachCall({"cuPointerGetAttributes", "cuCtxGetId", "cuMemGetAccess"},
                 [pointer] { return View::Borrow(pointer, kInts); });
  }
  const Virtual range(2);
  range.Map(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  range.Map(1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  FailEachCall({"cuPointerGetAttributes", "cuMemGetAccess"},
               [&] { return View::Borrow(range.At(0), 2 * kUnit / sizeof(int)); });
}

BOOST_AUTO_TEST_CASE(a_driver_that_does_not_know_the_size, *OnlySim()) {
  const Owner owner;
  const CUdeviceptr pointer = owner.Allocate();
  for (const unsigned nth : {1u, 2u}) {
    Sim::FailCall("cuPointerGetAttributes", nth, CUDA_ERROR_INVALID_VALUE);
  }
  BOOST_TEST(Borrowed(pointer, kInts).size() == kInts);
  Sim::ClearFaults();
}

BOOST_AUTO_TEST_SUITE_END()

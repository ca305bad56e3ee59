// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Advice about managed memory, and prefetches of it.

#include <vector>

#include "test/busy.h"
#include "test/capture.h"
#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(advice_facts)

using namespace cudasim_facts;

namespace {

constexpr size_t kPageSize = 4096;
constexpr size_t kSize = 8 * kPageSize;

CUmemLocation On(CUmemLocationType type, int id = 0) {
  CUmemLocation location = {};
  location.type = type;
  location.id = id;
  return location;
}
CUmemLocation OnHost() { return On(CU_MEM_LOCATION_TYPE_HOST); }
CUmemLocation OnDevice(int id = 0) { return On(CU_MEM_LOCATION_TYPE_DEVICE, id); }

struct Managed {
  Managed() {
    SetStack({context.get()});
    OK(RAW(cuMemAllocManaged)(&address, kSize, CU_MEM_ATTACH_GLOBAL));
    OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  }
  ~Managed() {
    OK(RAW(cuStreamDestroy)(stream));
    if (address != 0) OK(RAW(cuMemFree)(address));
    SetStack({});
  }
  Managed(const Managed&) = delete;
  Managed& operator=(const Managed&) = delete;

  CUresult Advise(CUmem_advise advice, CUmemLocation location, size_t at = 0,
                  size_t bytes = kSize) const {
    return RAW_AS(decltype(&cuMemAdvise), "cuMemAdvise_v2")(address + at, bytes, advice, location);
  }
  CUresult Prefetch(CUmemLocation location, size_t at = 0, size_t bytes = kSize,
                    unsigned flags = 0) const {
    return RAW_AS(decltype(&cuMemPrefetchAsync), "cuMemPrefetchAsync_v2")(address + at, bytes,
                                                                          location, flags, stream);
  }
  int Get(CUmem_range_attribute attribute, size_t at = 0, size_t bytes = kSize) const {
    int value = 77;
    OK(RAW(cuMemRangeGetAttribute)(&value, sizeof(value), attribute, address + at, bytes));
    return value;
  }
  std::vector<int> AccessedBy(size_t places, size_t at = 0, size_t bytes = kSize) const {
    std::vector<int> values(places, 77);
    OK(RAW(cuMemRangeGetAttribute)(values.data(), places * sizeof(int),
                                   CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, address + at, bytes));
    return values;
  }

  OwnContext context;
  CUdeviceptr address = 0;
  CUstream stream = nullptr;
};

bool Is(const std::vector<int>& values, const std::vector<int>& expected) {
  return values == expected;
}

}  // namespace

BOOST_AUTO_TEST_CASE(memory_begins_without_advice) {
  const Managed memory;
  BOOST_TEST(memory.Get(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 0);
  BOOST_TEST(memory.Get(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == CU_DEVICE_INVALID);
  BOOST_TEST(memory.Get(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) == CU_DEVICE_INVALID);
  BOOST_TEST(memory.Get(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE) ==
             CU_MEM_LOCATION_TYPE_INVALID);
  BOOST_TEST(Is(memory.AccessedBy(2), {CU_DEVICE_INVALID, CU_DEVICE_INVALID}));
}

// The whole pages around what is advised; a range has what all its pages have.
BOOST_AUTO_TEST_CASE(advice_is_of_whole_pages) {
  const Managed memory;
  const auto is_set = [&](size_t at, size_t bytes) {
    return memory.Get(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, at, bytes) == 1;
  };
  OK(memory.Advise(CU_MEM_ADVISE_SET_READ_MOSTLY, OnHost(), kPageSize + 1, 1));
  BOOST_TEST(is_set(kPageSize, kPageSize));
  BOOST_TEST(is_set(2 * kPageSize - 1, 1));
  BOOST_TEST(!is_set(kPageSize - 1, 1));
  BOOST_TEST(!is_set(2 * kPageSize, 1));
  BOOST_TEST(!is_set(kPageSize, kPageSize + 1));
  OK(memory.Advise(CU_MEM_ADVISE_SET_READ_MOSTLY, OnHost(), 2 * kPageSize, 6 * kPageSize));
  BOOST_TEST(is_set(kPageSize, 7 * kPageSize));
  BOOST_TEST(!is_set(0, kSize));
  OK(memory.Advise(CU_MEM_ADVISE_UNSET_READ_MOSTLY, OnHost(), 3 * kPageSize, kPageSize));
  BOOST_TEST(is_set(kPageSize, 2 * kPageSize));
  BOOST_TEST(!is_set(kPageSize, 3 * kPageSize));
  BOOST_TEST(is_set(4 * kPageSize, 4 * kPageSize));
}

BOOST_AUTO_TEST_CASE(a_location_is_preferred) {
  const Managed memory;
  constexpr auto kPreferred = CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION;
  constexpr auto kType = CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE;
  OK(memory.Advise(CU_MEM_ADVISE_SET_PREFERRED_LOCATION, OnDevice()));
  BOOST_TEST(memory.Get(kPreferred) == 0);
  BOOST_TEST(memory.Get(kType) == CU_MEM_LOCATION_TYPE_DEVICE);
  BOOST_TEST(memory.Get(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID) == 0);
  OK(memory.Advise(CU_MEM_ADVISE_SET_PREFERRED_LOCATION, OnHost(), 0, kPageSize));
  BOOST_TEST(memory.Get(kPreferred) == CU_DEVICE_INVALID);  // not all the same
  BOOST_TEST(memory.Get(kType) == CU_MEM_LOCATION_TYPE_INVALID);
  BOOST_TEST(memory.Get(kPreferred, 0, kPageSize) == CU_DEVICE_CPU);
  BOOST_TEST(memory.Get(kType, 0, kPageSize) == CU_MEM_LOCATION_TYPE_HOST);
  OK(memory.Advise(CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, OnDevice()));
  BOOST_TEST(memory.Get(kPreferred) == CU_DEVICE_INVALID);
}

BOOST_AUTO_TEST_CASE(processors_are_advised_to_access_memory) {
  const Managed memory;
  OK(memory.Advise(CU_MEM_ADVISE_SET_ACCESSED_BY, OnDevice()));
  BOOST_TEST(Is(memory.AccessedBy(3), {0, CU_DEVICE_INVALID, CU_DEVICE_INVALID}));
  OK(memory.Advise(CU_MEM_ADVISE_SET_ACCESSED_BY, OnHost(), 0, kPageSize));
  BOOST_TEST(Is(memory.AccessedBy(2), {0, CU_DEVICE_INVALID}));
  const std::vector<int> both = memory.AccessedBy(2, 0, kPageSize);
  BOOST_TEST((Is(both, {CU_DEVICE_CPU, 0}) || Is(both, {0, CU_DEVICE_CPU})));
  BOOST_TEST(memory.AccessedBy(1, 0, kPageSize)[0] != CU_DEVICE_INVALID);  // any of the two
  OK(memory.Advise(CU_MEM_ADVISE_UNSET_ACCESSED_BY, OnDevice(), 7 * kPageSize, 1));
  BOOST_TEST(Is(memory.AccessedBy(1), {CU_DEVICE_INVALID}));
}

BOOST_AUTO_TEST_CASE(the_last_prefetch_is_known_at_once) {
  const Managed memory;
  constexpr auto kLast = CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION;
  {
    Hold hold(memory.stream);
    OK(memory.Prefetch(OnDevice()));
    BOOST_TEST(memory.Get(kLast) == 0);
    BOOST_TEST(memory.Get(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE) ==
               CU_MEM_LOCATION_TYPE_DEVICE);
    IS(RAW(cuStreamQuery)(memory.stream), NOT_READY);
  }
  OK(RAW(cuStreamSynchronize)(memory.stream));
  OK(memory.Prefetch(OnHost(), kPageSize, kPageSize));
  BOOST_TEST(memory.Get(kLast) == CU_DEVICE_INVALID);
  BOOST_TEST(memory.Get(kLast, kPageSize, kPageSize) == CU_DEVICE_CPU);
  BOOST_TEST(memory.Get(kLast, 2 * kPageSize, kPageSize) == 0);
  OK(RAW(cuStreamSynchronize)(memory.stream));
}

BOOST_AUTO_TEST_CASE(the_first_forms_take_a_device) {
  const Managed memory;
  using Advise = CUresult (*)(CUdeviceptr, size_t, CUmem_advise, CUdevice);
  using Prefetch = CUresult (*)(CUdeviceptr, size_t, CUdevice, CUstream);
  const auto advise = RAW_AS(Advise, "cuMemAdvise");
  const auto prefetch = RAW_AS(Prefetch, "cuMemPrefetchAsync");
  OK(advise(memory.address, kSize, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
  BOOST_TEST(memory.Get(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == CU_DEVICE_CPU);
  OK(advise(memory.address, kSize, CU_MEM_ADVISE_SET_READ_MOSTLY, 99));  // ignored
  IS(advise(memory.address, kSize, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 99), INVALID_DEVICE);
  OK(prefetch(memory.address, kSize, 0, memory.stream));
  BOOST_TEST(memory.Get(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) == 0);
  IS(prefetch(memory.address, kSize, 99, memory.stream), INVALID_DEVICE);
  OK(RAW(cuStreamSynchronize)(memory.stream));
}

BOOST_AUTO_TEST_CASE(attributes_are_asked_for_together) {
  const Managed memory;
  OK(memory.Advise(CU_MEM_ADVISE_SET_READ_MOSTLY, OnHost()));
  int read_mostly = 77;
  int processors[2] = {77, 77};
  void* data[] = {&read_mostly, processors};
  size_t sizes[] = {sizeof(read_mostly), sizeof(processors)};
  CUmem_range_attribute attributes[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                                        CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY};
  const auto get = [&](size_t count) {
    return RAW(cuMemRangeGetAttributes)(data, sizes, attributes, count, memory.address, kSize);
  };
  OK(get(2));
  BOOST_TEST(read_mostly == 1);
  BOOST_TEST(processors[0] == CU_DEVICE_INVALID);
  IS(get(0), INVALID_VALUE);
  sizes[0] = 3;
  IS(get(2), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(advice_goes_with_its_memory) {
  Managed memory;
  for (int i = 0; i < 4; ++i) {
    BOOST_TEST(memory.Get(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 0);
    OK(memory.Advise(CU_MEM_ADVISE_SET_READ_MOSTLY, OnHost()));
    OK(RAW(cuMemFree)(memory.address));
    OK(RAW(cuMemAllocManaged)(&memory.address, kSize, CU_MEM_ATTACH_GLOBAL));
  }
}

BOOST_AUTO_TEST_CASE(only_managed_memory_is_advised) {
  const Managed memory;
  CUdeviceptr device = 0;
  int value = 0;
  OK(RAW(cuMemAlloc)(&device, kSize));
  const auto advise = RAW_AS(decltype(&cuMemAdvise), "cuMemAdvise_v2");
  const auto prefetch = RAW_AS(decltype(&cuMemPrefetchAsync), "cuMemPrefetchAsync_v2");
  constexpr auto kReadMostly = CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY;
  IS(advise(device, kSize, CU_MEM_ADVISE_SET_READ_MOSTLY, OnHost()), INVALID_VALUE);
  IS(prefetch(device, kSize, OnDevice(), 0, memory.stream), INVALID_VALUE);
  IS(RAW(cuMemRangeGetAttribute)(&value, 4, kReadMostly, device, kSize), INVALID_VALUE);
  IS(memory.Advise(CU_MEM_ADVISE_SET_READ_MOSTLY, OnHost(), 0, 0), INVALID_VALUE);
  IS(memory.Advise(OutOfRange<CUmem_advise>(99), OnHost()), INVALID_VALUE);
  IS(memory.Advise(CU_MEM_ADVISE_SET_PREFERRED_LOCATION, OnDevice(99)), INVALID_VALUE);
  IS(memory.Advise(CU_MEM_ADVISE_SET_ACCESSED_BY, OnDevice(99)), INVALID_VALUE);
  IS(memory.Advise(CU_MEM_ADVISE_SET_ACCESSED_BY, On(CU_MEM_LOCATION_TYPE_HOST_NUMA)),
     INVALID_VALUE);
  IS(memory.Prefetch(OnDevice(99)), INVALID_DEVICE);
  IS(memory.Prefetch(OnDevice(), 0, kSize, 1), INVALID_VALUE);
  IS(RAW(cuMemRangeGetAttribute)(&value, 8, kReadMostly, memory.address, kSize), INVALID_VALUE);
  IS(RAW(cuMemRangeGetAttribute)(nullptr, 4, kReadMostly, memory.address, kSize), INVALID_VALUE);
  OK(RAW(cuMemFree)(device));
}

BOOST_AUTO_TEST_CASE(a_prefetch_is_not_captured, *cudasim_test::OnlySim()) {
  const Managed memory;
  OK(Begin(memory.stream));
  IS(memory.Prefetch(OnDevice()), STREAM_CAPTURE_UNSUPPORTED);
  IS(End(memory.stream), STREAM_CAPTURE_INVALIDATED);
}

BOOST_AUTO_TEST_SUITE_END()

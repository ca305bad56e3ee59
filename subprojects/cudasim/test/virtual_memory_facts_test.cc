// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Virtual memory: reserved, created, mapped and made accessible, all without a context. To
// unmap, or to take access away, while a fill or a copy may still be under way loses the
// device (LAUNCH_FAILED), so each is waited for.

#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(virtual_memory_facts)

using namespace cudasim_facts;

namespace {

constexpr size_t kUnit = size_t{2} << 20;  // the granularity
constexpr unsigned kReadWrite = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

using Handle = CUmemGenericAllocationHandle;

CUmemAllocationProp Properties() {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return properties;
}

Handle Create(size_t size = kUnit) {
  const CUmemAllocationProp properties = Properties();
  Handle handle = 0;
  OK(RAW(cuMemCreate)(&handle, size, &properties, 0));
  return handle;
}

CUresult SetAccess(CUdeviceptr address, size_t size,
                   CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
  const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, flags};
  return RAW(cuMemSetAccess)(address, size, &access, 1);
}

unsigned long long GetAccess(CUdeviceptr address) {
  const CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  unsigned long long flags = 77;
  OK(RAW(cuMemGetAccess)(&flags, &location, address));
  return flags;
}

// A reserved range; whatever is mapped in it is unmapped at the end.
struct Range {
  explicit Range(size_t bytes) : size(bytes) { OK(RAW(cuMemAddressReserve)(&base, size, 0, 0, 0)); }
  ~Range() {
    OK(RAW(cuMemUnmap)(base, size));
    OK(RAW(cuMemAddressFree)(base, size));
  }

  // Maps an allocation of its own that goes with the mapping.
  void Map(size_t offset, size_t bytes = kUnit) const {
    const Handle handle = Create(bytes);
    OK(RAW(cuMemMap)(base + offset, bytes, 0, handle, 0));
    OK(RAW(cuMemRelease)(handle));
  }
  // The same, accessible.
  void MapWithAccess(size_t offset, size_t bytes = kUnit) const {
    Map(offset, bytes);
    OK(SetAccess(base + offset, bytes));
  }

  size_t size;
  CUdeviceptr base = 0;
};

void CheckIsMapped(const Range& range, CUdeviceptr pointer) {
  BOOST_CHECK(Attribute<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, pointer) == nullptr);
  BOOST_TEST(Attribute<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer) == 0);
  BOOST_TEST(Attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer) ==
             unsigned{CU_MEMORYTYPE_DEVICE});
  BOOST_TEST(!Attribute<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer));
  BOOST_TEST(Attribute<bool>(CU_POINTER_ATTRIBUTE_MAPPED, pointer));
  BOOST_TEST(Attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, pointer) == range.base);
  BOOST_TEST(Attribute<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, pointer) == range.size);
  BOOST_TEST(Attribute<size_t>(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, pointer) == kUnit);
  BOOST_TEST(Attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, pointer) ==
             pointer / kUnit * kUnit);
  BOOST_CHECK(Attribute<CUmemoryPool>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer) == nullptr);
}

// The byte at an address, in a context of its own.
void Write(CUcontext context, CUdeviceptr pointer, unsigned char value) {
  OK(RAW(cuCtxPushCurrent)(context));
  OK(RAW(cuMemsetD8)(pointer, value, 1));
  OK(RAW(cuCtxSynchronize)());
  OK(RAW(cuCtxPopCurrent)(nullptr));
}

int Read(CUcontext context, CUdeviceptr pointer) {
  unsigned char value = 0;
  OK(RAW(cuCtxPushCurrent)(context));
  OK(RAW(cuMemcpyDtoH)(&value, pointer, 1));
  OK(RAW(cuCtxPopCurrent)(nullptr));
  return value;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_granularity_is_2_mib) {
  CUmemAllocationProp properties = Properties();
  size_t size = 0;
  for (const auto option :
       {CU_MEM_ALLOC_GRANULARITY_MINIMUM, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED}) {
    OK(RAW(cuMemGetAllocationGranularity)(&size, &properties, option));
    BOOST_TEST(size == kUnit);
    IS(RAW(cuMemGetAllocationGranularity)(nullptr, &properties, option), INVALID_VALUE);
    IS(RAW(cuMemGetAllocationGranularity)(&size, nullptr, option), INVALID_VALUE);
  }
  properties.location.id = 77;
  OK(RAW(cuMemGetAllocationGranularity)(&size, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  IS(RAW(cuMemGetAllocationGranularity)(&size, &properties,
                                        OutOfRange<CUmemAllocationGranularity_flags>(7)),
     INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(nothing_needs_a_context_or_makes_one) {
  const Range range(2 * kUnit);
  range.MapWithAccess(0);
  BOOST_TEST(GetAccess(range.base) == kReadWrite);
  CheckIsMapped(range, range.base);
  BOOST_CHECK(CurrentContext() == nullptr);
  BOOST_TEST(!IsActive(0));
}

BOOST_AUTO_TEST_CASE(reserve_and_free_check_their_arguments) {
  const auto reserve = RAW(cuMemAddressReserve);
  CUdeviceptr out = 0x77;
  IS(reserve(&out, kUnit + 1, 0, 0, 0), INVALID_VALUE);
  IS(reserve(&out, kUnit / 2, 0, 0, 0), INVALID_VALUE);
  IS(reserve(&out, 0, 0, 0, 0), INVALID_VALUE);
  IS(reserve(nullptr, kUnit, 0, 0, 0), INVALID_VALUE);
  IS(reserve(&out, kUnit, 3, 0, 0), INVALID_VALUE);
  IS(reserve(&out, kUnit, 0, 0, 1), INVALID_VALUE);
  BOOST_TEST(out == 0x77u);
  OK(reserve(&out, 2 * kUnit, 4096, 0, 0));
  BOOST_TEST(out % kUnit == 0u);
  IS(RAW(cuMemAddressFree)(out, kUnit), INVALID_VALUE);
  IS(RAW(cuMemAddressFree)(out + kUnit, kUnit), INVALID_VALUE);
  IS(RAW(cuMemAddressFree)(0, kUnit), INVALID_VALUE);
  OK(RAW(cuMemAddressFree)(out, 2 * kUnit));
  IS(RAW(cuMemAddressFree)(out, 2 * kUnit), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(a_range_may_be_asked_for_by_alignment_and_place) {
  CUdeviceptr aligned = 0;
  constexpr size_t kAlignment = size_t{1} << 30;
  OK(RAW(cuMemAddressReserve)(&aligned, kUnit, kAlignment, 0, 0));
  BOOST_TEST(aligned % kAlignment == 0u);
  CUdeviceptr elsewhere = 0;
  OK(RAW(cuMemAddressReserve)(&elsewhere, kUnit, 0, aligned, 0));
  BOOST_TEST(elsewhere != aligned);
  IS(RAW(cuMemAddressReserve)(&aligned, kUnit, 0, elsewhere + 5, 0), INVALID_VALUE);
  OK(RAW(cuMemAddressFree)(elsewhere, kUnit));
  CUdeviceptr again = 0;
  OK(RAW(cuMemAddressReserve)(&again, kUnit, 0, elsewhere, 0));
  BOOST_TEST(again == elsewhere);
  OK(RAW(cuMemAddressFree)(again, kUnit));
  OK(RAW(cuMemAddressFree)(aligned, kUnit));
}

BOOST_AUTO_TEST_CASE(create_checks_its_arguments) {
  const auto create = RAW(cuMemCreate);
  CUmemAllocationProp properties = Properties();
  Handle handle = 0;
  IS(create(nullptr, kUnit, &properties, 0), INVALID_VALUE);
  IS(create(&handle, kUnit, nullptr, 0), INVALID_VALUE);
  IS(create(&handle, kUnit + 1, &properties, 0), INVALID_VALUE);
  IS(create(&handle, 0, &properties, 0), INVALID_VALUE);
  IS(create(&handle, kUnit, &properties, 1), INVALID_VALUE);
  IS(create(&handle, size_t{1} << 50, &properties, 0), OUT_OF_MEMORY);
  properties.location.id = 77;
  IS(create(&handle, kUnit, &properties, 0), INVALID_DEVICE);
  properties = Properties();
  properties.type = CU_MEM_ALLOCATION_TYPE_INVALID;
  IS(create(&handle, kUnit, &properties, 0), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(a_handle_tells_its_properties) {
  const Handle handle = Create();
  CUmemAllocationProp properties = {};
  OK(RAW(cuMemGetAllocationPropertiesFromHandle)(&properties, handle));
  BOOST_TEST(properties.type == CU_MEM_ALLOCATION_TYPE_PINNED);
  BOOST_TEST(properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE);
  BOOST_TEST(properties.location.id == 0);
  IS(RAW(cuMemGetAllocationPropertiesFromHandle)(nullptr, handle), INVALID_VALUE);
  IS(RAW(cuMemGetAllocationPropertiesFromHandle)(&properties, 0), INVALID_VALUE);
  OK(RAW(cuMemRelease)(handle));
  IS(RAW(cuMemRelease)(0), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(creating_takes_the_room) {
  const OwnContext context;
  SetStack({context.get()});
  size_t before = 0;
  size_t after = 0;
  size_t total = 0;
  OK(RAW(cuMemGetInfo)(&before, &total));
  const Handle handle = Create(32 * kUnit);
  OK(RAW(cuMemGetInfo)(&after, &total));
  BOOST_TEST(before - after >= 16 * kUnit);
  OK(RAW(cuMemRelease)(handle));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(map_checks_its_arguments) {
  const Range range(4 * kUnit);
  const auto map = RAW(cuMemMap);
  const Handle handle = Create();
  IS(map(range.base, kUnit, 1, handle, 0), NOT_SUPPORTED);
  IS(map(range.base, 2 * kUnit, 0, handle, 0), NOT_SUPPORTED);
  IS(map(range.base, kUnit, 0, handle, 1), INVALID_VALUE);
  IS(map(range.base + 1, kUnit, 0, handle, 0), INVALID_VALUE);
  IS(map(0x1000, kUnit, 0, handle, 0), INVALID_VALUE);
  IS(map(range.base, kUnit, 0, 0, 0), INVALID_VALUE);
  OK(map(range.base, kUnit, 0, handle, 0));
  IS(map(range.base, kUnit, 0, handle, 0), INVALID_VALUE);
  IS(RAW(cuMemAddressFree)(range.base, range.size), INVALID_VALUE);
  OK(RAW(cuMemRelease)(handle));
  const Handle two = Create(2 * kUnit);
  IS(map(range.base + kUnit, kUnit, kUnit, two, 0), NOT_SUPPORTED);
  IS(map(range.base + kUnit, kUnit, 0, two, 0), NOT_SUPPORTED);
  OK(map(range.base + kUnit, 2 * kUnit, 0, two, 0));
  OK(RAW(cuMemRelease)(two));
}

BOOST_AUTO_TEST_CASE(unmap_takes_whole_mappings_or_none) {
  const Range range(4 * kUnit);
  OK(RAW(cuMemUnmap)(range.base, kUnit));
  OK(RAW(cuMemUnmap)(range.base + 4096, kUnit));
  range.Map(0, 2 * kUnit);
  range.Map(2 * kUnit);
  IS(RAW(cuMemUnmap)(range.base, kUnit), INVALID_VALUE);
  IS(RAW(cuMemUnmap)(range.base, 0), INVALID_VALUE);
  IS(RAW(cuMemUnmap)(0, kUnit), INVALID_VALUE);
  int local = 0;
  IS(RAW(cuMemUnmap)(reinterpret_cast<CUdeviceptr>(&local), kUnit), INVALID_VALUE);
  OK(RAW(cuMemUnmap)(range.base, range.size));
  BOOST_TEST(!IsKnown(range.base));
}

BOOST_AUTO_TEST_CASE(access_is_set_from_mapping_to_mapping) {
  const Range range(4 * kUnit);
  IS(SetAccess(range.base, kUnit), INVALID_VALUE);
  range.Map(0);
  range.Map(2 * kUnit);
  BOOST_TEST(GetAccess(range.base) == 0u);
  IS(SetAccess(range.base, 2 * kUnit), INVALID_VALUE);
  IS(SetAccess(range.base, kUnit / 2), INVALID_VALUE);
  IS(SetAccess(range.base + 4096, kUnit), INVALID_VALUE);
  IS(SetAccess(range.base, kUnit, OutOfRange<CUmemAccess_flags>(7)), INVALID_VALUE);
  OK(SetAccess(range.base, 3 * kUnit));  // succeeds, but stops at the hole
  BOOST_TEST(GetAccess(range.base + 100) == kReadWrite);
  BOOST_TEST(GetAccess(range.base + 2 * kUnit) == 0u);
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  IS(RAW(cuMemSetAccess)(range.base, kUnit, nullptr, 1), INVALID_VALUE);
  IS(RAW(cuMemSetAccess)(range.base, kUnit, &access, 0), INVALID_VALUE);
  access.location.id = 77;
  IS(RAW(cuMemSetAccess)(range.base, kUnit, &access, 1), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(get_access_checks_its_arguments) {
  const Range range(2 * kUnit);
  range.Map(0);
  CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  unsigned long long flags = 77;
  IS(RAW(cuMemGetAccess)(&flags, &location, range.base + kUnit), INVALID_VALUE);
  BOOST_TEST(flags == 0u);
  IS(RAW(cuMemGetAccess)(nullptr, &location, range.base), INVALID_VALUE);
  IS(RAW(cuMemGetAccess)(&flags, nullptr, range.base), INVALID_VALUE);
  location.id = 77;
  IS(RAW(cuMemGetAccess)(&flags, &location, range.base), INVALID_DEVICE);
}

BOOST_AUTO_TEST_CASE(without_access_nothing_is_copied) {
  const OwnContext context;
  const Range range(2 * kUnit);
  char bytes[64] = {};
  SetStack({context.get()});
  IS(RAW(cuMemcpyHtoD)(range.base, bytes, 64), INVALID_VALUE);
  range.Map(0);
  IS(RAW(cuMemcpyHtoD)(range.base, bytes, 64), INVALID_VALUE);
  IS(RAW(cuMemcpyDtoH)(bytes, range.base, 64), INVALID_VALUE);
  IS(RAW(cuMemsetD8)(range.base, 1, 64), INVALID_VALUE);
  IS(RAW(cuMemcpy)(reinterpret_cast<CUdeviceptr>(bytes), range.base, 64), INVALID_VALUE);
  OK(SetAccess(range.base, kUnit));
  OK(RAW(cuMemcpyHtoD)(range.base, bytes, 64));
  IS(RAW(cuMemcpyHtoD)(range.base + kUnit - 10, bytes, 64), INVALID_VALUE);
  IS(RAW(cuMemsetD8)(range.base + kUnit - 10, 1, 64), INVALID_VALUE);
  OK(RAW(cuCtxSynchronize)());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(mappings_side_by_side_are_one_range) {
  const OwnContext context;
  const Range range(2 * kUnit);
  range.MapWithAccess(0);
  range.MapWithAccess(kUnit);
  CheckIsMapped(range, range.base);
  CheckIsMapped(range, range.base + kUnit);
  char bytes[200] = {};
  SetStack({context.get()});
  OK(RAW(cuMemcpyHtoD)(range.base + kUnit - 100, bytes, 200));
  OK(RAW(cuMemsetD8)(range.base + kUnit - 100, 1, 200));
  OK(RAW(cuCtxSynchronize)());
  IS(RAW(cuMemcpyHtoD)(range.base + 2 * kUnit - 100, bytes, 200), INVALID_VALUE);
  CUdeviceptr base = 0;
  size_t size = 0;
  OK(RAW(cuMemGetAddressRange)(&base, &size, range.base + kUnit + 10));
  BOOST_TEST(base == range.base + kUnit);
  BOOST_TEST(size == kUnit);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(two_mappings_of_one_allocation_share_its_bytes) {
  const OwnContext context;
  const Range range(2 * kUnit);
  const Handle handle = Create();
  OK(RAW(cuMemMap)(range.base, kUnit, 0, handle, 0));
  OK(RAW(cuMemMap)(range.base + kUnit, kUnit, 0, handle, 0));
  OK(SetAccess(range.base, kUnit));
  BOOST_TEST(GetAccess(range.base + kUnit) == 0u);
  OK(SetAccess(range.base, 2 * kUnit));
  Write(context.get(), range.base, 5);
  BOOST_TEST(Read(context.get(), range.base + kUnit) == 5);
  OK(RAW(cuMemRelease)(handle));
}

BOOST_AUTO_TEST_CASE(a_mapping_keeps_its_allocation) {
  const Range range(2 * kUnit);
  const Handle handle = Create();
  OK(RAW(cuMemMap)(range.base, kUnit, 0, handle, 0));
  Handle same = 0;
  OK(RAW(cuMemRetainAllocationHandle)(&same, reinterpret_cast<void*>(range.base + 100)));
  BOOST_TEST(same == handle);
  OK(RAW(cuMemRelease)(handle));
  OK(RAW(cuMemRelease)(handle));
  OK(RAW(cuMemRetainAllocationHandle)(&same, reinterpret_cast<void*>(range.base)));
  BOOST_TEST(same == handle);
  OK(RAW(cuMemRelease)(same));
  CheckIsMapped(range, range.base);
  int local = 0;
  IS(RAW(cuMemRetainAllocationHandle)(&same, reinterpret_cast<void*>(range.base + kUnit)),
     INVALID_VALUE);
  IS(RAW(cuMemRetainAllocationHandle)(&same, &local), INVALID_VALUE);
  IS(RAW(cuMemRetainAllocationHandle)(nullptr, reinterpret_cast<void*>(range.base)), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(reserved_is_not_known_but_has_a_range) {
  const Range range(2 * kUnit);
  const CUdeviceptr pointer = range.base + 10;
  BOOST_TEST(!IsKnown(pointer));
  CUdeviceptr out = 0;
  IS(GetAttribute(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, pointer, &out), INVALID_VALUE);
  BOOST_TEST(PluralAttribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, pointer, 77) ==
             range.base);
  BOOST_TEST(PluralAttribute<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, pointer, 77) == range.size);
  BOOST_TEST(PluralAttribute<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer, 77) ==
             int{CU_DEVICE_INVALID});
  BOOST_TEST(PluralAttribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer, 77) == 0u);
}

BOOST_AUTO_TEST_CASE(the_device_pointer_needs_a_current_context_and_access) {
  const OwnContext context;
  const Range range(2 * kUnit);
  range.Map(0);
  CUdeviceptr out = 0x77;
  size_t size = 0;
  const auto attribute = CU_POINTER_ATTRIBUTE_DEVICE_POINTER;
  IS(GetAttribute(attribute, range.base, &out), INVALID_CONTEXT);
  SetStack({context.get()});
  IS(GetAttribute(attribute, range.base, &out), INVALID_VALUE);
  BOOST_TEST(PluralAttribute(attribute, range.base, out) == 0u);
  IS(RAW(cuMemGetAddressRange)(&out, &size, range.base), NOT_FOUND);
  OK(SetAccess(range.base, kUnit));
  BOOST_TEST(Attribute<CUdeviceptr>(attribute, range.base + 10) == range.base + 10);
  unsigned long long access = 0;
  OK(GetAttribute(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, range.base, &access));
  BOOST_TEST(access == kReadWrite);
  SetStack({});
  access = 0;
  OK(GetAttribute(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, range.base, &access));
  BOOST_TEST(access == 0u);
}

BOOST_AUTO_TEST_CASE(mapped_memory_is_not_freed_or_registered) {
  const OwnContext context;
  const Range range(kUnit);
  range.MapWithAccess(0);
  SetStack({context.get()});
  void* const pointer = reinterpret_cast<void*>(range.base);
  IS(RAW(cuMemFree)(range.base), INVALID_VALUE);
  IS(RAW(cuMemFreeAsync)(range.base, nullptr), INVALID_VALUE);
  IS(RAW(cuMemFreeHost)(pointer), INVALID_VALUE);
  IS(RAW(cuMemHostRegister)(pointer, kUnit, 0), INVALID_VALUE);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(it_outlives_every_context) {
  const Range range(kUnit);
  range.MapWithAccess(0);
  {
    const OwnContext context;
    Write(context.get(), range.base, 6);
  }
  CheckIsMapped(range, range.base);
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  BOOST_TEST(Read(primary, range.base) == 6);
  Write(primary, range.base, 8);
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  CheckIsMapped(range, range.base);
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
  const OwnContext context;
  BOOST_TEST(Read(context.get(), range.base) == 8);
}

BOOST_AUTO_TEST_SUITE_END()

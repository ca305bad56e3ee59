// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stream-ordered memory: it belongs to a pool of a device, and to no context.

#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(pool_facts)

using namespace cudasim_facts;

namespace {

constexpr size_t kBytes = 1000;
constexpr size_t kUnit = size_t{32} << 20;  // in which a pool grows

CUmemoryPool DefaultPool() {
  CUmemoryPool pool = nullptr;
  OK(RAW(cuDeviceGetDefaultMemPool)(&pool, 0));
  return pool;
}

CUmemPoolProps Properties() {
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return properties;
}

CUmemoryPool CreatePool() {
  const CUmemPoolProps properties = Properties();
  CUmemoryPool pool = nullptr;
  OK(RAW(cuMemPoolCreate)(&pool, &properties));
  return pool;
}

cuuint64_t SizeOf(CUmemoryPool pool, CUmemPool_attribute attribute) {
  cuuint64_t size = 0;
  OK(RAW(cuMemPoolGetAttribute)(pool, attribute, &size));
  return size;
}

// A context with a stream; not current.
struct Owner {
  Owner() {
    SetStack({context.get()});
    OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    SetStack({});
  }

  CUdeviceptr Allocate(size_t bytes = kBytes) const {
    CUdeviceptr pointer = 0;
    OK(RAW(cuMemAllocAsync)(&pointer, bytes, stream));
    return pointer;
  }
  void Free(CUdeviceptr pointer) const {
    OK(RAW(cuMemFreeAsync)(pointer, stream));
    OK(RAW(cuStreamSynchronize)(stream));
  }

  OwnContext context;
  CUstream stream = nullptr;
};

void CheckIsPoolMemory(CUdeviceptr pointer, CUmemoryPool pool, CUdeviceptr base) {
  BOOST_CHECK(Attribute<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, pointer) == nullptr);
  BOOST_TEST(Attribute<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer) == 0);
  BOOST_TEST(Attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer) ==
             unsigned{CU_MEMORYTYPE_DEVICE});
  BOOST_TEST(!Attribute<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer));
  BOOST_TEST(Attribute<bool>(CU_POINTER_ATTRIBUTE_MAPPED, pointer));
  BOOST_TEST(!Attribute<bool>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, pointer));
  BOOST_TEST(Attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, pointer) == base);
  BOOST_TEST(Attribute<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, pointer) == kBytes);
  BOOST_CHECK(Attribute<CUmemoryPool>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer) == pool);
  CUcontext none = reinterpret_cast<CUcontext>(0x77);
  none = PluralAttribute(CU_POINTER_ATTRIBUTE_CONTEXT, pointer, none);
  BOOST_CHECK(none == nullptr);
  BOOST_TEST(PluralAttribute<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer, 77) == 0);
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_device_has_a_default_pool_without_a_context) {
  CUmemoryPool pool = nullptr;
  OK(RAW(cuDeviceGetMemPool)(&pool, 0));
  BOOST_CHECK(pool == DefaultPool());
  IS(RAW(cuDeviceGetDefaultMemPool)(nullptr, 0), INVALID_VALUE);
  IS(RAW(cuDeviceGetDefaultMemPool)(&pool, 77), INVALID_DEVICE);
  IS(RAW(cuDeviceGetMemPool)(nullptr, 0), INVALID_VALUE);
  IS(RAW(cuDeviceGetMemPool)(&pool, 77), INVALID_VALUE);
  IS(RAW(cuMemPoolDestroy)(DefaultPool()), INVALID_VALUE);
  BOOST_TEST(!IsActive(0));
}

BOOST_AUTO_TEST_CASE(a_context_comes_first) {
  CUdeviceptr out = 0x77;
  for (const CUstream stream : {CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    out = 0x77;
    IS(RAW(cuMemAllocAsync)(&out, kBytes, stream), INVALID_CONTEXT);
    BOOST_TEST(out == 0u);
    IS(RAW(cuMemFreeAsync)(0, stream), INVALID_CONTEXT);
  }
  IS(RAW(cuMemAllocAsync)(nullptr, kBytes, nullptr), INVALID_CONTEXT);
  IS(RAW(cuMemAllocAsync)(&out, 0, nullptr), INVALID_CONTEXT);
  IS(RAW(cuMemAllocFromPoolAsync)(&out, kBytes, DefaultPool(), nullptr), INVALID_CONTEXT);
  BOOST_TEST(!IsActive(0));
}

BOOST_AUTO_TEST_CASE(arguments) {
  const Owner owner;
  CUdeviceptr out = 0x77;
  IS(RAW(cuMemAllocAsync)(nullptr, kBytes, owner.stream), INVALID_VALUE);
  OK(RAW(cuMemAllocAsync)(&out, 0, owner.stream));
  BOOST_TEST(out == 0u);
  out = 0x77;
  IS(RAW(cuMemAllocAsync)(&out, size_t{1} << 60, owner.stream), OUT_OF_MEMORY);
  BOOST_TEST(out == 0u);
  IS(RAW(cuMemAllocFromPoolAsync)(&out, kBytes, nullptr, owner.stream), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(a_stream_is_enough_and_the_primary_is_not_needed) {
  const Owner owner;
  const CUdeviceptr pointer = owner.Allocate();
  CheckIsPoolMemory(pointer, DefaultPool(), pointer);
  CheckIsPoolMemory(pointer + kBytes - 1, DefaultPool(), pointer);
  BOOST_TEST(!IsKnown(pointer + kBytes));
  BOOST_TEST(!IsActive(0));
  BOOST_CHECK(CurrentContext() == nullptr);
  owner.Free(pointer);
  BOOST_TEST(!IsKnown(pointer));
}

BOOST_AUTO_TEST_CASE(it_is_the_same_in_every_context) {
  const Owner owner;
  const Owner other;
  const CUdeviceptr pointer = owner.Allocate();
  OK(RAW(cuStreamSynchronize)(owner.stream));
  SetStack({other.context.get()});
  CheckIsPoolMemory(pointer, DefaultPool(), pointer);
  char bytes[kBytes + 1];
  OK(RAW(cuMemsetD8)(pointer, 1, kBytes));
  OK(RAW(cuMemsetD8Async)(pointer, 1, kBytes, other.stream));
  OK(RAW(cuCtxSynchronize)());
  OK(RAW(cuMemcpyDtoH)(bytes, pointer, kBytes));
  IS(RAW(cuMemcpyDtoH)(bytes, pointer, kBytes + 1), INVALID_VALUE);
  IS(RAW(cuMemsetD8)(pointer, 1, kBytes + 1), INVALID_VALUE);
  CUdeviceptr base = 0;
  size_t size = 0;
  OK(RAW(cuMemGetAddressRange)(&base, &size, pointer + 10));
  BOOST_TEST(base == pointer);
  BOOST_TEST(size == kBytes);
  OK(RAW(cuMemFreeAsync)(pointer, other.stream));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(free_takes_any_stream_and_either_call) {
  const Owner owner;
  const Owner other;
  OK(RAW(cuMemFreeAsync)(0, owner.stream));
  OK(RAW(cuMemFree)(owner.Allocate()));
  OK(RAW(cuMemFreeAsync)(owner.Allocate(), other.stream));
  SetStack({other.context.get()});
  for (const CUstream stream : {CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    CUdeviceptr pointer = 0;
    OK(RAW(cuMemAllocAsync)(&pointer, kBytes, stream));
    CheckIsPoolMemory(pointer, DefaultPool(), pointer);
    OK(RAW(cuMemFreeAsync)(pointer, stream));
    OK(RAW(cuMemFreeAsync)(owner.Allocate(), stream));
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(free_wants_the_beginning_once) {
  const Owner owner;
  const CUdeviceptr pointer = owner.Allocate();
  int local = 0;
  IS(RAW(cuMemFreeAsync)(pointer + 16, owner.stream), INVALID_VALUE);
  IS(RAW(cuMemFreeAsync)(0x1000, owner.stream), INVALID_VALUE);
  IS(RAW(cuMemFreeAsync)(reinterpret_cast<CUdeviceptr>(&local), owner.stream), INVALID_VALUE);
  owner.Free(pointer);
  IS(RAW(cuMemFreeAsync)(pointer, owner.stream), INVALID_VALUE);
  IS(RAW(cuMemFree)(pointer), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(other_memory_is_freed_too_or_not) {
  const Owner owner;
  CUdeviceptr device = 0;
  CUdeviceptr managed = 0;
  void* host = nullptr;
  SetStack({owner.context.get()});
  OK(RAW(cuMemAlloc)(&device, 64));
  OK(RAW(cuMemAllocManaged)(&managed, 64, CU_MEM_ATTACH_GLOBAL));
  OK(RAW(cuMemHostAlloc)(&host, 64, 0));
  IS(RAW(cuMemFreeAsync)(managed, owner.stream), NOT_SUPPORTED);
  IS(RAW(cuMemFreeAsync)(reinterpret_cast<CUdeviceptr>(host), owner.stream), INVALID_VALUE);
  owner.Free(device);
  IS(RAW(cuMemFree)(device), INVALID_VALUE);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(it_outlives_the_context_of_its_stream) {
  CUdeviceptr pointer = 0;
  {
    const Owner owner;
    pointer = owner.Allocate();
    SetStack({owner.context.get()});
    OK(RAW(cuMemsetD8)(pointer, 9, kBytes));
    SetStack({});
  }
  CheckIsPoolMemory(pointer, DefaultPool(), pointer);
  const Owner other;
  SetStack({other.context.get()});
  unsigned char byte = 0;
  OK(RAW(cuMemcpyDtoH)(&byte, pointer, 1));
  BOOST_TEST(byte == 9);
  SetStack({});
  OK(RAW(cuMemFree)(pointer));
}

BOOST_AUTO_TEST_CASE(it_outlives_a_reset_and_the_last_release_of_the_primary) {
  CUcontext primary = nullptr;
  CUdeviceptr pointers[2] = {};
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  SetStack({primary});
  for (CUdeviceptr& pointer : pointers) OK(RAW(cuMemAllocAsync)(&pointer, kBytes, nullptr));
  SetStack({});
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
  BOOST_TEST(!IsActive(0));
  CheckIsPoolMemory(pointers[0], DefaultPool(), pointers[0]);
  OK(RAW(cuMemFree)(pointers[0]));
  BOOST_TEST(!IsActive(0));
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  SetStack({primary});
  OK(RAW(cuMemsetD8)(pointers[1], 0, kBytes));
  OK(RAW(cuCtxSynchronize)());
  OK(RAW(cuMemFreeAsync)(pointers[1], nullptr));
  SetStack({});
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
}

BOOST_AUTO_TEST_CASE(the_device_pointer_needs_a_living_current_context) {
  Owner owner;
  const CUdeviceptr pointer = owner.Allocate();
  CUdeviceptr device = 0x77;
  IS(GetAttribute(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, pointer, &device), INVALID_CONTEXT);
  BOOST_TEST(PluralAttribute(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, pointer, device) == 0u);
  CUdeviceptr base = 0;
  size_t size = 0;
  IS(RAW(cuMemGetAddressRange)(&base, &size, pointer), INVALID_CONTEXT);
  SetStack({owner.context.get()});
  BOOST_TEST(Attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, pointer) == pointer);
  PushDeadContext();
  IS(GetAttribute(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, pointer, &device), INVALID_CONTEXT);
  IS(RAW(cuMemGetAddressRange)(&base, &size, pointer), CONTEXT_IS_DESTROYED);
  IS(RAW(cuMemFree)(pointer), CONTEXT_IS_DESTROYED);
  SetStack({});
  owner.Free(pointer);
}

BOOST_AUTO_TEST_CASE(device_memory_has_no_host_pointer) {
  const Owner owner;
  SetStack({owner.context.get()});
  CUdeviceptr device = 0;
  OK(RAW(cuMemAlloc)(&device, 64));
  const CUdeviceptr pool = owner.Allocate();
  for (const CUdeviceptr pointer : {device, pool}) {
    void* host = &device;
    IS(GetAttribute(CU_POINTER_ATTRIBUTE_HOST_POINTER, pointer, &host), INVALID_VALUE);
    host = PluralAttribute(CU_POINTER_ATTRIBUTE_HOST_POINTER, pointer, host);
    BOOST_CHECK(host == nullptr);
    unsigned long long access = 0;
    OK(GetAttribute(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, pointer, &access));
    BOOST_TEST(access == unsigned{CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
  }
  BOOST_CHECK(Attribute<CUmemoryPool>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, device) == nullptr);
  OK(RAW(cuMemFree)(device));
  owner.Free(pool);
  SetStack({});
}

// The plural form succeeds for any address: what it writes, and what it does not.
BOOST_AUTO_TEST_CASE(the_plural_on_an_unknown_pointer) {
  int local = 0;
  for (const CUdeviceptr pointer : {CUdeviceptr{0}, reinterpret_cast<CUdeviceptr>(&local)}) {
    BOOST_TEST(PluralAttribute<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer, 77) ==
               int{CU_DEVICE_INVALID});
    BOOST_TEST(PluralAttribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_HOST_POINTER, pointer, 77) ==
               pointer);
    BOOST_TEST(PluralAttribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, pointer, 77) ==
               77u);
    BOOST_TEST(PluralAttribute<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, pointer, 77) == 77u);
    BOOST_TEST(PluralAttribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, pointer, 77) ==
               0u);
    BOOST_TEST(!PluralAttribute<bool>(CU_POINTER_ATTRIBUTE_MAPPED, pointer, true));
  }
}

BOOST_AUTO_TEST_CASE(a_pool_of_ones_own) {
  const Owner owner;
  const CUmemoryPool pool = CreatePool();
  BOOST_TEST(!IsActive(0));
  CUdeviceptr pointer = 0;
  OK(RAW(cuMemAllocFromPoolAsync)(&pointer, kBytes, pool, owner.stream));
  CheckIsPoolMemory(pointer, pool, pointer);
  owner.Free(pointer);
  OK(RAW(cuMemPoolDestroy)(pool));
}

BOOST_AUTO_TEST_CASE(create_checks_its_arguments) {
  CUmemoryPool pool = nullptr;
  CUmemPoolProps properties = Properties();
  IS(RAW(cuMemPoolCreate)(nullptr, &properties), INVALID_VALUE);
  IS(RAW(cuMemPoolCreate)(&pool, nullptr), INVALID_VALUE);
  properties.location.id = 77;
  IS(RAW(cuMemPoolCreate)(&pool, &properties), INVALID_VALUE);
  properties = Properties();
  properties.location.type = CU_MEM_LOCATION_TYPE_INVALID;
  IS(RAW(cuMemPoolCreate)(&pool, &properties), INVALID_VALUE);
  properties = Properties();
  properties.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
  IS(RAW(cuMemPoolCreate)(&pool, &properties), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(a_pool_may_have_a_limit) {
  const Owner owner;
  CUmemPoolProps properties = Properties();
  properties.maxSize = kUnit;
  CUmemoryPool pool = nullptr;
  OK(RAW(cuMemPoolCreate)(&pool, &properties));
  CUdeviceptr pointer = 0;
  IS(RAW(cuMemAllocFromPoolAsync)(&pointer, 2 * kUnit, pool, owner.stream), OUT_OF_MEMORY);
  OK(RAW(cuMemPoolDestroy)(pool));
}

BOOST_AUTO_TEST_CASE(a_devices_pool_can_be_replaced) {
  const Owner owner;
  const CUmemoryPool pool = CreatePool();
  IS(RAW(cuDeviceSetMemPool)(0, nullptr), INVALID_VALUE);
  IS(RAW(cuDeviceSetMemPool)(77, pool), INVALID_VALUE);
  OK(RAW(cuDeviceSetMemPool)(0, pool));
  CUmemoryPool current = nullptr;
  OK(RAW(cuDeviceGetMemPool)(&current, 0));
  BOOST_CHECK(current == pool);
  const CUdeviceptr pointer = owner.Allocate();
  CheckIsPoolMemory(pointer, pool, pointer);
  owner.Free(pointer);
  OK(RAW(cuMemPoolDestroy)(pool));  // falls back to the default
  OK(RAW(cuDeviceGetMemPool)(&current, 0));
  BOOST_CHECK(current == DefaultPool());
}

// So the documentation of cuMemPoolDestroy. A driver (580.159.04) does it, and crashes now and then
// when another pool is destroyed later.
BOOST_AUTO_TEST_CASE(memory_outlives_its_pool, *cudasim_test::OnlySim()) {
  OwnContext::DestroyIdle();
  const Owner owner;
  const CUmemoryPool pool = CreatePool();
  CUdeviceptr pointer = 0;
  OK(RAW(cuMemAllocFromPoolAsync)(&pointer, kBytes, pool, owner.stream));
  OK(RAW(cuMemPoolDestroy)(pool));
  CheckIsPoolMemory(pointer, pool, pointer);
  SetStack({owner.context.get()});
  OK(RAW(cuMemsetD8)(pointer, 0, kBytes));
  OK(RAW(cuCtxSynchronize)());
  SetStack({});
  owner.Free(pointer);
  BOOST_TEST(!IsKnown(pointer));
}

BOOST_AUTO_TEST_CASE(null_is_no_pool) {
  cuuint64_t size = 0;
  const auto attribute = CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
  IS(RAW(cuMemPoolGetAttribute)(nullptr, attribute, &size), INVALID_VALUE);
  IS(RAW(cuMemPoolSetAttribute)(nullptr, attribute, &size), INVALID_VALUE);
  IS(RAW(cuMemPoolDestroy)(nullptr), INVALID_VALUE);
  IS(RAW(cuMemPoolTrimTo)(nullptr, 0), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(attributes_of_a_pool) {
  const CUmemoryPool pool = CreatePool();
  int reuse = 0;
  cuuint64_t size = 12345;
  OK(RAW(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &reuse));
  BOOST_TEST(reuse == 1);
  reuse = 0;
  OK(RAW(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &reuse));
  reuse = 77;
  OK(RAW(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &reuse));
  BOOST_TEST(reuse == 0);
  BOOST_TEST(SizeOf(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == 0u);
  OK(RAW(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &size));
  BOOST_TEST(SizeOf(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == 12345u);
  IS(RAW(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &size), INVALID_VALUE);
  IS(RAW(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &size), INVALID_VALUE);
  size = 0;
  OK(RAW(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &size));
  OK(RAW(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &size));
  IS(RAW(cuMemPoolGetAttribute)(pool, OutOfRange<CUmemPool_attribute>(77), &size), INVALID_VALUE);
  IS(RAW(cuMemPoolSetAttribute)(pool, OutOfRange<CUmemPool_attribute>(77), &size), INVALID_VALUE);
  IS(RAW(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, nullptr), INVALID_VALUE);
  OK(RAW(cuMemPoolDestroy)(pool));
}

BOOST_AUTO_TEST_CASE(a_pool_keeps_what_its_threshold_says) {
  const Owner owner;
  const CUmemoryPool pool = CreatePool();
  cuuint64_t threshold = 2 * kUnit;
  OK(RAW(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  constexpr size_t kFirst = kUnit + kUnit / 4;
  constexpr size_t kSecond = 3 * kUnit;
  CUdeviceptr first = 0;
  CUdeviceptr second = 0;
  OK(RAW(cuMemAllocFromPoolAsync)(&first, kFirst, pool, owner.stream));
  BOOST_TEST(SizeOf(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 2 * kUnit);
  BOOST_TEST(SizeOf(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == kFirst);
  OK(RAW(cuMemAllocFromPoolAsync)(&second, kSecond, pool, owner.stream));
  BOOST_TEST(SizeOf(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == kFirst + kSecond);
  owner.Free(second);
  BOOST_TEST(SizeOf(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == kFirst + kSecond);
  cuuint64_t reset = 0;  // to what is in use
  OK(RAW(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &reset));
  BOOST_TEST(SizeOf(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == kFirst);
  BOOST_TEST(SizeOf(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 2 * kUnit);
  owner.Free(first);
  BOOST_TEST(SizeOf(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 2 * kUnit);
  BOOST_TEST(SizeOf(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0u);
  BOOST_TEST(SizeOf(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == kFirst);
  OK(RAW(cuMemPoolTrimTo)(pool, size_t{1} << 20));
  BOOST_TEST(SizeOf(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == kUnit);
  OK(RAW(cuMemPoolDestroy)(pool));
}

BOOST_AUTO_TEST_CASE(the_own_device_always_has_access) {
  const CUmemoryPool pool = CreatePool();
  CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  OK(RAW(cuMemPoolGetAccess)(&flags, pool, &location));
  BOOST_TEST(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CUmemAccessDesc access = {location, CU_MEM_ACCESS_FLAGS_PROT_NONE};
  IS(RAW(cuMemPoolSetAccess)(pool, &access, 1), INVALID_DEVICE);
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  IS(RAW(cuMemPoolSetAccess)(pool, &access, 1), NOT_SUPPORTED);
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  OK(RAW(cuMemPoolSetAccess)(pool, &access, 1));
  IS(RAW(cuMemPoolSetAccess)(pool, nullptr, 0), INVALID_VALUE);
  IS(RAW(cuMemPoolGetAccess)(nullptr, pool, &location), INVALID_VALUE);
  location.id = 77;
  access.location = location;
  IS(RAW(cuMemPoolGetAccess)(&flags, pool, &location), INVALID_VALUE);
  IS(RAW(cuMemPoolSetAccess)(pool, &access, 1), INVALID_DEVICE);
  OK(RAW(cuMemPoolDestroy)(pool));
}

// -----------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(another_device_needs_access, *cudasim_test::NeedsDevices(2)) {
  const Owner owner;
  const CUmemoryPool pool = CreatePool();
  CUdeviceptr memory = 0;
  OK(RAW(cuMemAllocFromPoolAsync)(&memory, kBytes, pool, owner.stream));
  OK(RAW(cuStreamSynchronize)(owner.stream));
  CUcontext other = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&other, 1));
  SetStack({other});
  CUdeviceptr there = 0;
  CUstream stream = nullptr;
  OK(RAW(cuMemAlloc)(&there, kBytes));
  OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  char host[kBytes] = {};
  CUDA_MEMCPY2D area = {};
  area.srcMemoryType = area.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  area.srcDevice = memory;
  area.dstDevice = there;
  area.WidthInBytes = area.srcPitch = area.dstPitch = 64;
  area.Height = 1;
  const auto check = [&](CUresult expected) {
    BOOST_CHECK_EQUAL(RAW(cuMemcpyDtoH)(host, memory, kBytes), expected);
    BOOST_CHECK_EQUAL(RAW(cuMemcpyHtoD)(memory, host, kBytes), expected);
    BOOST_CHECK_EQUAL(RAW(cuMemcpyDtoD)(there, memory, kBytes), expected);
    BOOST_CHECK_EQUAL(RAW(cuMemcpyDtoD)(memory, there, kBytes), expected);
    BOOST_CHECK_EQUAL(RAW(cuMemcpy)(there, memory, kBytes), expected);
    BOOST_CHECK_EQUAL(RAW(cuMemcpyDtoDAsync)(there, memory, kBytes, stream), expected);
    BOOST_CHECK_EQUAL(RAW(cuMemcpy2D)(&area), expected);
    BOOST_CHECK_EQUAL(RAW(cuMemsetD8)(memory, 1, kBytes), expected);
    BOOST_CHECK_EQUAL(RAW(cuMemsetD8Async)(memory, 1, kBytes, stream), expected);
    const CUresult found = expected == CUDA_SUCCESS ? expected : CUDA_ERROR_NOT_FOUND;
    CUdeviceptr base = 0;
    BOOST_CHECK_EQUAL(RAW(cuMemGetAddressRange)(&base, nullptr, memory), found);
    // By a peer copy, and with the pool's device current, there is always a way.
    OK(RAW(cuMemcpyPeer)(there, other, memory, owner.context.get(), kBytes));
    OK(RAW(cuMemcpyPeerAsync)(there, other, memory, owner.context.get(), kBytes, stream));
    OK(RAW(cuStreamSynchronize)(stream));
    OK(RAW(cuCtxPushCurrent)(owner.context.get()));
    OK(RAW(cuMemcpyDtoD)(there, memory, kBytes));
    OK(RAW(cuMemcpyDtoD)(memory, there, kBytes));
    OK(RAW(cuCtxPopCurrent)(nullptr));
  };
  check(CUDA_ERROR_INVALID_VALUE);
  const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 1},
                                  CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  OK(RAW(cuMemPoolSetAccess)(pool, &access, 1));
  check(CUDA_SUCCESS);
  OK(RAW(cuMemFree)(there));
  OK(RAW(cuStreamDestroy)(stream));
  SetStack({});
  OK(RAW(cuDevicePrimaryCtxRelease)(1));
  owner.Free(memory);
  OK(RAW(cuMemPoolDestroy)(pool));
}

// As <cuda.h> describes it, and not measured: every device with a driver of today has pools.
BOOST_AUTO_TEST_CASE(a_device_may_have_no_pools, *cudasim_test::OnlySim()) {
  const Owner owner;
  int has_pools = 0;
  const auto ask = [&] {
    OK(RAW(cuDeviceGetAttribute)(&has_pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0));
    return has_pools;
  };
  BOOST_TEST(ask() == 1);
  cudasim::Sim::SupportMemoryPools(false);
  BOOST_TEST(ask() == 0);
  CUdeviceptr pointer = 0;
  IS(RAW(cuMemAllocAsync)(&pointer, 16, owner.stream), NOT_SUPPORTED);
  cudasim::Sim::SupportMemoryPools(true);
  OK(RAW(cuMemAllocAsync)(&pointer, 16, owner.stream));
  OK(RAW(cuMemFreeAsync)(pointer, owner.stream));
}

BOOST_AUTO_TEST_SUITE_END()

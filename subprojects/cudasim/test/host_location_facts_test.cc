// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of the host, or of one of its NUMA nodes, from cuMemCreate and from pools. The program
// prints what the driver says of it, too: NUMA nodes differ between machines.

#include <cstdio>
#include <string>

#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(host_location_facts)

using namespace cudasim_facts;

namespace {

constexpr size_t kUnit = size_t{2} << 20;

using Handle = CUmemGenericAllocationHandle;

struct Place {
  const char* name;
  CUmemLocation location;
};

const Place kPlaces[] = {
    {"device 0", {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
    {"host", {CU_MEM_LOCATION_TYPE_HOST, 0}},
    {"NUMA node 0", {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}},
    {"this thread's NUMA node", {CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0}},
};

int DeviceAttribute(int attribute) {
  int value = -77;
  const CUresult code =
      RAW(cuDeviceGetAttribute)(&value, OutOfRange<CUdevice_attribute>(attribute), 0);
  return code == CUDA_SUCCESS ? value : -static_cast<int>(code);
}

void PrintAccess(CUdeviceptr pointer) {
  for (const Place& place : kPlaces) {
    unsigned long long flags = 77;
    const CUresult code = RAW(cuMemGetAccess)(&flags, &place.location, pointer);
    std::printf("    access of %s: %llu (%d)\n", place.name, flags, code);
  }
}

void Print(const char* what, CUdeviceptr pointer) {
  std::printf("  %s, at 0x%llx:\n", what, static_cast<unsigned long long>(pointer));
  const auto print = [&](const char* name, CUpointer_attribute attribute, bool is_int) {
    unsigned long long one = 0x7777777777777777;
    const CUresult code = RAW(cuPointerGetAttribute)(&one, attribute, pointer);
    unsigned long long plural = 0x7777777777777777;
    void* data = &plural;
    const CUresult all = RAW(cuPointerGetAttributes)(1, &attribute, &data, pointer);
    const auto number = [&](unsigned long long value) {
      return is_int ? std::to_string(static_cast<int>(value)) : std::to_string(value);
    };
    std::printf("    %-16s %s (%d), plural %s (%d)\n", name, number(one).c_str(), code,
                number(plural).c_str(), all);
  };
  print("CONTEXT", CU_POINTER_ATTRIBUTE_CONTEXT, false);
  print("MEMORY_TYPE", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, true);
  print("DEVICE_POINTER", CU_POINTER_ATTRIBUTE_DEVICE_POINTER, false);
  print("HOST_POINTER", CU_POINTER_ATTRIBUTE_HOST_POINTER, false);
  print("IS_MANAGED", CU_POINTER_ATTRIBUTE_IS_MANAGED, true);
  print("DEVICE_ORDINAL", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, true);
  print("RANGE_START", CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, false);
  print("RANGE_SIZE", CU_POINTER_ATTRIBUTE_RANGE_SIZE, false);
  print("MAPPED", CU_POINTER_ATTRIBUTE_MAPPED, true);
  print("ACCESS_FLAGS", CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, true);
  print("MEMPOOL_HANDLE", CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, false);
  print("MAPPING_SIZE", CU_POINTER_ATTRIBUTE_MAPPING_SIZE, false);
  print("MAPPING_BASE", CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, false);
  CUdeviceptr base = 0;
  size_t size = 0;
  const CUresult code = RAW(cuMemGetAddressRange)(&base, &size, pointer);
  std::printf("    %-16s 0x%llx, %zu (%d)\n", "address range",
              static_cast<unsigned long long>(base), size, code);
  PrintAccess(pointer);
  std::fflush(stdout);
}

// Of what lies on the host and no context owns.
void CheckIsHosts(CUdeviceptr pointer) {
  BOOST_CHECK(Attribute<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, pointer) == nullptr);
  BOOST_TEST(Attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer) ==
             unsigned{CU_MEMORYTYPE_HOST});
  BOOST_TEST(!Attribute<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer));
  BOOST_TEST(Attribute<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer) == 0);
}

void PrintWithout(const char* what, CUdeviceptr pointer) {
  SetStack({});
  Print((std::string(what) + ", no context current").c_str(), pointer);
}

CUresult SetAccess(CUdeviceptr base, const CUmemLocation& location) {
  const CUmemAccessDesc access = {location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  return RAW(cuMemSetAccess)(base, kUnit, &access, 1);
}

// What works of it: fills and copies in a context of the device.
void PrintUse(CUcontext context, CUdeviceptr pointer) {
  SetStack({context});
  unsigned char byte = 7;
  std::printf("    fill %d", RAW(cuMemsetD8)(pointer, 1, 16));
  std::printf(", to the device %d", RAW(cuMemcpyHtoD)(pointer, &byte, 1));
  std::printf(", to the host %d", RAW(cuMemcpyDtoH)(&byte, pointer, 1));
  std::printf(", on it %d", RAW(cuMemcpyDtoD)(pointer + 64, pointer, 1));
  std::printf(", synchronize %d\n", RAW(cuCtxSynchronize)());
  SetStack({});
}

void PrintVirtual(const OwnContext& context, const Place& place) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = place.location;
  size_t granularity = 0;
  const CUresult granular = RAW(cuMemGetAllocationGranularity)(&granularity, &properties,
                                                               CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  Handle handle = 0;
  const CUresult created = RAW(cuMemCreate)(&handle, kUnit, &properties, 0);
  std::printf("virtual memory of %s: granularity %zu (%d), cuMemCreate %d\n", place.name,
              granularity, granular, created);
  if (created != CUDA_SUCCESS) return;
  CUdeviceptr base = 0;
  OK(RAW(cuMemAddressReserve)(&base, kUnit, 0, 0, 0));
  OK(RAW(cuMemMap)(base, kUnit, 0, handle, 0));
  OK(RAW(cuMemRelease)(handle));
  PrintWithout("mapped", base);
  const CUresult device = SetAccess(base, {CU_MEM_LOCATION_TYPE_DEVICE, 0});
  std::printf("  access for device 0: %d\n", device);
  PrintWithout("for the device", base + 64);
  const bool is_hosts = place.location.type != CU_MEM_LOCATION_TYPE_DEVICE;
  CUdeviceptr address = 0;
  if (is_hosts) {
    CheckIsHosts(base + 64);
    BOOST_TEST(Attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, base + 64) == base);
    IS(GetAttribute(CU_POINTER_ATTRIBUTE_HOST_POINTER, base + 64, &address), INVALID_VALUE);
  }
  const CUresult host = SetAccess(base, place.location);
  std::printf("  access for %s: %d\n", place.name, host);
  if (host != CUDA_SUCCESS) {
    std::printf("  access for the host: %d\n", SetAccess(base, {CU_MEM_LOCATION_TYPE_HOST, 0}));
    std::printf("  access for the node: %d\n",
                SetAccess(base, {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}));
  }
  PrintWithout("for both", base + 64);
  if (is_hosts && host == CUDA_SUCCESS) {
    BOOST_TEST(Attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_HOST_POINTER, base + 64) == base + 64);
  }
  SetStack({context.get()});
  Print("for both, a context current", base + 64);
  if (device == CUDA_SUCCESS) PrintUse(context.get(), base);
  OK(RAW(cuMemUnmap)(base, kUnit));
  OK(RAW(cuMemAddressFree)(base, kUnit));
}

void PrintPool(const OwnContext& context, const Place& place, CUmemAllocationType type) {
  CUmemPoolProps properties = {};
  properties.allocType = type;
  properties.location = place.location;
  CUmemoryPool pool = nullptr;
  const CUresult created = RAW(cuMemPoolCreate)(&pool, &properties);
  std::printf("pool of %s, type %d: cuMemPoolCreate %d\n", place.name, type, created);
  if (created != CUDA_SUCCESS) return;
  SetStack({context.get()});
  CUstream stream = nullptr;
  OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr pointer = 0;
  const CUresult allocated = RAW(cuMemAllocFromPoolAsync)(&pointer, 4096, pool, stream);
  OK(RAW(cuStreamSynchronize)(stream));
  std::printf("  cuMemAllocFromPoolAsync %d\n", allocated);
  if (allocated == CUDA_SUCCESS) {
    PrintWithout("allocated", pointer + 64);
    const bool is_hosts =
        place.location.type != CU_MEM_LOCATION_TYPE_DEVICE && type == CU_MEM_ALLOCATION_TYPE_PINNED;
    if (is_hosts) {
      char byte = 0;
      CheckIsHosts(pointer + 64);
      BOOST_CHECK(Attribute<CUmemoryPool>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer) == pool);
      BOOST_TEST(Attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, pointer) == 0u);
      BOOST_TEST(Attribute<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, pointer) == 4096u);
      BOOST_TEST(Attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_HOST_POINTER, pointer) == pointer);
      SetStack({context.get()});
      IS(RAW(cuMemsetD8)(pointer, 1, 16), INVALID_VALUE);  // no device has access yet
      IS(RAW(cuMemcpyHtoD)(pointer, &byte, 1), INVALID_VALUE);
      IS(RAW(cuMemcpyDtoH)(&byte, pointer, 1), INVALID_VALUE);
    }
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                    CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const CUresult shared = RAW(cuMemPoolSetAccess)(pool, &access, 1);
    std::printf("  access for device 0: %d\n", shared);
    PrintWithout("for the device", pointer + 64);
    SetStack({context.get()});
    Print("for the device, a context current", pointer);
    if (shared == CUDA_SUCCESS) PrintUse(context.get(), pointer);
    if (is_hosts) {
      char byte = 0;
      OK(shared);
      SetStack({context.get()});
      OK(RAW(cuMemsetD8)(pointer, 1, 16));
      IS(RAW(cuMemcpyHtoD)(pointer, &byte, 1), INVALID_VALUE);
      IS(RAW(cuMemcpyDtoH)(&byte, pointer, 1), INVALID_VALUE);
    }
    SetStack({context.get()});
    OK(RAW(cuMemFree)(pointer));
  }
  SetStack({context.get()});
  OK(RAW(cuStreamDestroy)(stream));
  OK(RAW(cuMemPoolDestroy)(pool));
  SetStack({});
}

}  // namespace

BOOST_AUTO_TEST_CASE(virtual_memory) {
  for (const int attribute : {134, 141, 142, 144, 145}) {
    std::printf("attribute %d of device 0: %d\n", attribute, DeviceAttribute(attribute));
  }
  const OwnContext context;
  for (const Place& place : kPlaces) PrintVirtual(context, place);
}

BOOST_AUTO_TEST_CASE(pools) {
  const OwnContext context;
  for (const Place& place : kPlaces) PrintPool(context, place, CU_MEM_ALLOCATION_TYPE_PINNED);
}

// By which it is known where an allocation begins and ends.
BOOST_AUTO_TEST_CASE(host_pool_allocations_have_buffer_ids, *cudasim_test::NeedsHostPools()) {
  const OwnContext context;
  CUmemoryPool pool = nullptr;
  OK(cudasim_test::CreateHostPool(&pool));
  SetStack({context.get()});
  CUdeviceptr pointers[2] = {};
  unsigned long long ids[2] = {};
  for (const int i : {0, 1}) {
    OK(RAW(cuMemAllocFromPoolAsync)(&pointers[i], 4096, pool, CU_STREAM_PER_THREAD));
    OK(RAW(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
    const auto id_at = [&](CUdeviceptr offset) {
      unsigned long long id = 0;
      CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_BUFFER_ID;
      void* value = &id;
      OK(RAW(cuPointerGetAttributes)(1, &attribute, &value, pointers[i] + offset));
      return id;
    };
    ids[i] = id_at(0);
    BOOST_TEST(ids[i] != 0u);
    // It is told no address where it starts: the first one of the pool 0, the second 0x1000.
    const auto start = Attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, pointers[i]);
    BOOST_TEST(start == (i == 0 ? 0u : 4096u));
    BOOST_TEST(Attribute<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, pointers[i]) == 4096u);
    BOOST_TEST(id_at(256) == ids[i]);
    BOOST_TEST(id_at(4095) == ids[i]);
    BOOST_TEST(id_at(4096) != ids[i]);
  }
  BOOST_TEST(ids[0] != ids[1]);
  for (const CUdeviceptr pointer : pointers) OK(RAW(cuMemFree)(pointer));
  OK(RAW(cuMemPoolDestroy)(pool));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(managed_pools) {
  const OwnContext context;
  for (const Place& place : kPlaces) PrintPool(context, place, CU_MEM_ALLOCATION_TYPE_MANAGED);
}

BOOST_AUTO_TEST_SUITE_END()

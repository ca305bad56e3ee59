// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory as the runtime sees it: what it says of a pointer, what it frees, and what it
// copies, whichever API and context made it.

#include <vector>

#include "test/runtime_facts.h"

BOOST_AUTO_TEST_SUITE(runtime_memory_facts)

using namespace cudasim_facts;

namespace {

constexpr size_t kBytes = 4096;
alignas(4096) char page[kBytes];
char plain[kBytes];

// One pointer of every kind, made with the primary current, but those of a user context.
struct Zoo : Retained {
  Zoo() {
    SetStack({PrimaryHandle()});
    RT_OK(cudaMalloc(&runtime, kBytes));
    OK(RAW(cuMemAlloc)(&driver, kBytes));
    RT_OK(cudaMallocManaged(&managed, kBytes, cudaMemAttachGlobal));
    RT_OK(cudaMallocHost(&pinned, kBytes));
    RT_OK(cudaHostRegister(page, kBytes, cudaHostRegisterDefault));
    RT_OK(cudaMallocAsync(&pool, kBytes, nullptr));
    RT_OK(cudaStreamSynchronize(nullptr));
    SetStack({a.get()});
    OK(RAW(cuMemAlloc)(&of_a, kBytes));
    SetStack({});
  }

  // What a case has not freed.
  ~Zoo() {
    SetStack({PrimaryHandle()});
    for (void* pointer : {runtime, ToPointer(driver), managed, pool, ToPointer(of_a)}) {
      if (pointer != nullptr) RT_OK(cudaFree(pointer));
    }
    if (pinned != nullptr) RT_OK(cudaFreeHost(pinned));
    RT_OK(cudaHostUnregister(page));
  }

  static void* ToPointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }
  void* Interior() const { return static_cast<char*>(runtime) + 64; }

  // Whatever the driver takes for the device's.
  std::vector<void*> OnDevice() const {
    return {runtime, Interior(), ToPointer(driver), managed, pool, ToPointer(of_a)};
  }
  std::vector<void*> Accessible() const {
    std::vector<void*> all = OnDevice();
    all.insert(all.end(), {pinned, page});
    return all;
  }

  const OwnContext a;
  void* runtime = nullptr;
  CUdeviceptr driver = 0;
  void* managed = nullptr;
  void* pinned = nullptr;
  void* pool = nullptr;
  CUdeviceptr of_a = 0;
};

cudaPointerAttributes AttributesOf(const void* pointer) {
  cudaPointerAttributes attributes;
  std::memset(&attributes, 0x55, sizeof(attributes));
  RT_OK(cudaPointerGetAttributes(&attributes, pointer));
  return attributes;
}

void CheckAttributes(const void* pointer, cudaMemoryType type, int device, const void* on_device,
                     const void* on_host) {
  const cudaPointerAttributes attributes = AttributesOf(pointer);
  BOOST_CHECK_EQUAL(attributes.type, type);
  BOOST_TEST(attributes.device == device);
  BOOST_TEST(attributes.devicePointer == on_device);
  BOOST_TEST(attributes.hostPointer == on_host);
}

}  // namespace

BOOST_AUTO_TEST_CASE(attributes_say_kind_and_device_in_every_context) {
  const Zoo zoo;
  const std::vector<Entries> stacks = {{PrimaryHandle()}, {zoo.a.get()}};
  for (const Entries& stack : stacks) {
    SetStack(stack);
    for (void* pointer : {zoo.runtime, zoo.Interior(), Zoo::ToPointer(zoo.driver), zoo.pool,
                          Zoo::ToPointer(zoo.of_a)}) {
      CheckAttributes(pointer, cudaMemoryTypeDevice, 0, pointer, nullptr);
    }
    CheckAttributes(zoo.managed, cudaMemoryTypeManaged, 0, zoo.managed, zoo.managed);
    CheckAttributes(zoo.pinned, cudaMemoryTypeHost, 0, zoo.pinned, zoo.pinned);
    CheckAttributes(page, cudaMemoryTypeHost, 0, page, page);
    CheckAttributes(plain, cudaMemoryTypeUnregistered, cudaInvalidDeviceId, nullptr, plain);
    CheckAttributes(nullptr, cudaMemoryTypeUnregistered, cudaInvalidDeviceId, nullptr, nullptr);
  }
}

// The kind is known, the address on the device is not.
BOOST_AUTO_TEST_CASE(attributes_with_nothing_current_have_no_device_pointer) {
  const Zoo zoo;
  CheckAttributes(zoo.runtime, cudaMemoryTypeDevice, 0, nullptr, nullptr);
  CheckAttributes(zoo.managed, cudaMemoryTypeManaged, 0, nullptr, zoo.managed);
  CheckAttributes(zoo.pinned, cudaMemoryTypeHost, 0, nullptr, zoo.pinned);
  CheckAttributes(plain, cudaMemoryTypeUnregistered, cudaInvalidDeviceId, nullptr, plain);
  BOOST_CHECK(GetStack().empty());
}

BOOST_AUTO_TEST_CASE(free_takes_device_memory_of_every_api_and_context) {
  Zoo zoo;
  SetStack({zoo.a.get()});
  RT_IS(cudaFree(zoo.Interior()), InvalidValue);
  RT_IS(cudaFree(zoo.pinned), InvalidValue);
  RT_IS(cudaFree(page), InvalidValue);
  RT_IS(cudaFree(plain), InvalidValue);
  RT_OK(cudaFree(nullptr));
  RT_OK(cudaFree(zoo.runtime));
  RT_OK(cudaFree(Zoo::ToPointer(zoo.driver)));
  RT_OK(cudaFree(zoo.managed));
  RT_OK(cudaFree(zoo.pool));
  SetStack({PrimaryHandle()});
  RT_OK(cudaFree(Zoo::ToPointer(zoo.of_a)));
  RT_IS(cudaFree(zoo.runtime), InvalidValue);
  zoo.runtime = zoo.managed = zoo.pool = nullptr;
  zoo.driver = zoo.of_a = 0;
}

BOOST_AUTO_TEST_CASE(free_with_nothing_current_frees_and_binds_the_primary) {
  Zoo zoo;
  RT_OK(cudaFree(Zoo::ToPointer(zoo.of_a)));
  BOOST_CHECK(GetStack() == Entries{PrimaryHandle()});
  zoo.of_a = 0;
}

BOOST_AUTO_TEST_CASE(free_host_takes_what_was_allocated_pinned) {
  Zoo zoo;
  SetStack({zoo.a.get()});
  for (void* pointer : zoo.OnDevice()) RT_IS(cudaFreeHost(pointer), InvalidValue);
  RT_IS(cudaFreeHost(page), InvalidValue);
  RT_IS(cudaFreeHost(plain), InvalidValue);
  RT_IS(cudaFreeHost(static_cast<char*>(zoo.pinned) + 8), InvalidValue);
  RT_OK(cudaFreeHost(nullptr));
  RT_OK(cudaFreeHost(zoo.pinned));
  zoo.pinned = nullptr;
  SetStack({});
}

BOOST_AUTO_TEST_CASE(free_async_takes_device_memory_but_not_managed) {
  Zoo zoo;
  SetStack({PrimaryHandle()});
  RT_IS(cudaFreeAsync(zoo.managed, nullptr), NotSupported);
  RT_IS(cudaFreeAsync(zoo.pinned, nullptr), InvalidValue);
  RT_IS(cudaFreeAsync(plain, nullptr), InvalidValue);
  RT_IS(cudaFreeAsync(zoo.Interior(), nullptr), InvalidValue);
  RT_OK(cudaFreeAsync(nullptr, nullptr));
  RT_OK(cudaFreeAsync(zoo.pool, nullptr));
  RT_OK(cudaFreeAsync(zoo.runtime, nullptr));
  RT_OK(cudaFreeAsync(Zoo::ToPointer(zoo.driver), nullptr));
  RT_OK(cudaFreeAsync(Zoo::ToPointer(zoo.of_a), nullptr));
  RT_OK(cudaStreamSynchronize(nullptr));
  zoo.pool = zoo.runtime = nullptr;
  zoo.driver = zoo.of_a = 0;
}

// Memory has one size, whichever API allocated it.
BOOST_AUTO_TEST_CASE(the_driver_frees_what_the_runtime_allocated) {
  Zoo zoo;
  CUdeviceptr base = 0;
  size_t size = 0;
  SetStack({PrimaryHandle()});
  OK(RAW(cuMemGetAddressRange)(&base, &size, reinterpret_cast<CUdeviceptr>(zoo.Interior())));
  BOOST_TEST(Zoo::ToPointer(base) == zoo.runtime);
  BOOST_TEST(size == kBytes);
  OK(RAW(cuMemFree)(base));
  OK(RAW(cuMemFreeHost)(zoo.pinned));
  zoo.runtime = zoo.pinned = nullptr;
}

BOOST_AUTO_TEST_CASE(pinned_memory_is_mapped_unasked) {
  const Zoo zoo;
  SetStack({PrimaryHandle()});
  unsigned flags = 0;
  void* address = nullptr;
  RT_OK(cudaHostGetFlags(&flags, zoo.pinned));
  BOOST_TEST(flags == unsigned{cudaHostAllocMapped});
  RT_OK(cudaHostGetFlags(&flags, page));
  BOOST_TEST(flags == unsigned{cudaHostRegisterMapped});
  RT_OK(cudaHostGetDevicePointer(&address, zoo.pinned, 0));
  BOOST_TEST(address == zoo.pinned);
}

BOOST_AUTO_TEST_CASE(default_copies_between_all_kinds) {
  const Zoo zoo;
  SetStack({PrimaryHandle()});
  std::vector<void*> all = zoo.Accessible();
  all.push_back(plain);
  for (void* to : all) {
    for (void* from : all) {
      void* const source = from == to ? static_cast<char*>(from) + 512 : from;
      RT_OK(cudaMemcpy(to, source, 256, cudaMemcpyDefault));
      RT_OK(cudaMemcpyAsync(to, source, 256, cudaMemcpyDefault, nullptr));
    }
  }
  RT_OK(cudaDeviceSynchronize());
}

// A direction is held against the device's side only.
BOOST_AUTO_TEST_CASE(directions_refuse_pageable_memory_on_the_devices_side) {
  const Zoo zoo;
  SetStack({PrimaryHandle()});
  char other[64] = {};
  for (void* device : zoo.Accessible()) {
    RT_OK(cudaMemcpy(device, plain, 16, cudaMemcpyHostToDevice));
    RT_OK(cudaMemcpy(plain, device, 16, cudaMemcpyDeviceToHost));
    RT_OK(cudaMemcpy(device, plain, 16, cudaMemcpyHostToHost));
    RT_IS(cudaMemcpy(plain, device, 16, cudaMemcpyHostToDevice), InvalidValue);
    RT_IS(cudaMemcpy(device, plain, 16, cudaMemcpyDeviceToHost), InvalidValue);
    RT_IS(cudaMemcpy(device, plain, 16, cudaMemcpyDeviceToDevice), InvalidValue);
    RT_IS(cudaMemcpyAsync(plain, device, 16, cudaMemcpyDeviceToDevice, nullptr), InvalidValue);
  }
  RT_OK(cudaMemcpy(plain, other, 16, cudaMemcpyHostToHost));
  RT_IS(cudaMemcpy(plain, other, 16, cudaMemcpyHostToDevice), InvalidValue);
  RT_IS(cudaMemcpy(plain, other, 16, OutOfRange<cudaMemcpyKind>(77)), InvalidMemcpyDirection);
  RT_IS(cudaMemcpy(nullptr, other, 16, cudaMemcpyHostToHost), InvalidValue);
  RT_IS(cudaMemcpy(zoo.runtime, zoo.managed, 2 * kBytes, cudaMemcpyDeviceToDevice), InvalidValue);
}

BOOST_AUTO_TEST_CASE(values_travel) {
  const Zoo zoo;
  SetStack({zoo.a.get()});
  const int sent = 0x1234567;
  int received = 0;
  RT_OK(cudaMemcpy(zoo.runtime, &sent, sizeof(sent), cudaMemcpyHostToDevice));
  OK(RAW(cuMemcpyDtoD)(zoo.of_a, reinterpret_cast<CUdeviceptr>(zoo.runtime), sizeof(sent)));
  RT_OK(cudaMemcpyPeer(zoo.pool, 0, Zoo::ToPointer(zoo.of_a), 0, sizeof(sent)));
  RT_OK(cudaMemcpy(&received, zoo.pool, sizeof(received), cudaMemcpyDefault));
  BOOST_TEST(received == sent);
  RT_OK(cudaMemset(zoo.pool, 0xff, sizeof(sent)));
  RT_OK(cudaMemcpy(&received, zoo.pool, sizeof(received), cudaMemcpyDeviceToHost));
  BOOST_TEST(received == -1);
  RT_IS(cudaMemset(plain, 0, 16), InvalidValue);
  RT_IS(cudaMemset(zoo.runtime, 0, 2 * kBytes), InvalidValue);
  RT_IS(cudaMemcpyPeer(zoo.pool, 0, zoo.runtime, 99, 16), InvalidDevice);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(pools_of_both_apis_are_the_same) {
  const Retained retained;
  cudaMemPool_t runtime = nullptr;
  CUmemoryPool driver = nullptr;
  RT_OK(cudaDeviceGetDefaultMemPool(&runtime, 0));
  OK(RAW(cuDeviceGetDefaultMemPool)(&driver, 0));
  BOOST_CHECK(runtime == driver);
  RT_IS(cudaDeviceGetDefaultMemPool(&runtime, 99), InvalidDevice);
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  RT_OK(cudaMemPoolCreate(&runtime, &properties));
  SetStack({PrimaryHandle()});
  void* pointer = nullptr;
  RT_OK(cudaMallocFromPoolAsync(&pointer, 64, runtime, nullptr));
  RT_OK(cudaFreeAsync(pointer, nullptr));
  RT_OK(cudaStreamSynchronize(nullptr));
  OK(RAW(cuMemPoolDestroy)(runtime));
}

BOOST_AUTO_TEST_CASE(rows_are_padded_to_the_pitch) {
  const Retained retained;
  void* pointer = nullptr;
  size_t pitch = 0;
  RT_OK(cudaMallocPitch(&pointer, &pitch, 100, 3));
  BOOST_TEST(pitch == 512u);
  RT_OK(cudaFree(pointer));
  cudaPitchedPtr pitched = {};
  RT_OK(cudaMalloc3D(&pitched, cudaExtent{100, 3, 2}));
  BOOST_TEST(pitched.pitch == 512u);
  BOOST_TEST(pitched.xsize == 100u);
  BOOST_TEST(pitched.ysize == 3u);
  RT_OK(cudaFree(pitched.ptr));
}

BOOST_AUTO_TEST_SUITE_END()
